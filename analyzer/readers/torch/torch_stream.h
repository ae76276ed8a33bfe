// The entries of device_traces as events, made while the pickle is read: the entries themselves are never held. What
// they become is what ReadDeviceTraces makes of them, to the numbers of their stacks.
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_STREAM_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/trace/event.h"
#include "allocator/trace/event_list.h"
#include "allocator/trace/trace_sums.h"
#include "analyzer/readers/pickle/pickle_stream.h"
#include "analyzer/readers/read_limits.h"
#include "analyzer/readers/torch/torch_context.h"
#include "analyzer/readers/torch/torch_entry_opcodes.h"

namespace ashlar::readers {

class TraceStream final : public pickle::ItemSink {
 public:
  // `file_bytes` is the length of the whole file.
  TraceStream(TorchContext* context, std::uint64_t file_bytes, const ReadLimits& limits)
      : context_(*context), entry_(context), file_bytes_(file_bytes), limits_(limits) {}

  bool Take(std::uint64_t list, const pickle::Value* begin, const pickle::Value* end) override;
  bool Decode(pickle::DirectItem& item) override { return entry_.Decode(item); }
  bool TakeDecoded(std::uint64_t list, std::uint64_t container, pickle::DirectItem& item) override;
  std::uint64_t Known(const pickle::Value& container) const override;
  void CutBack(const pickle::Document::Place& to) override;
  void Rename(std::uint64_t known, std::uint64_t container) override;

  // The whole pickle is read: from here on the other parts are.
  void Finish();
  // The events of the list of a device, which is the next that has any; their stacks are numbered now. Where they are
  // not all of it, the snapshot says so; its segments were read before.
  trace::EventList TakeNext(const pickle::Value& list, std::size_t device);
  // Each list was taken once, in order, and nothing else was asked of them.
  bool IsWhole() const { return !is_out_of_order_ && next_ == lists_.size(); }
  // Entries that were read from their opcodes alone.
  std::uint64_t decoded() const { return decoded_; }

 private:
  struct List {
    std::uint64_t container = 0;
    std::vector<trace::Event> events;
    std::uint64_t first_byte = 0;
    std::size_t oldest = 0;      // where the events are as many as may be held: a ring
    trace::TraceSums sums = {};  // of all, where there is a limit
  };
  static std::uint64_t KnownList(trace::StackId stack);
  void Keep(List& list, const trace::Event& event) const;
  void NoteWindow(const List& list, std::size_t device);
  void MakeRoom(List& list, std::size_t count, std::uint64_t byte) const;

  TorchContext& context_;
  EntryOpcodes entry_;
  const std::uint64_t file_bytes_;
  const ReadLimits limits_;
  std::vector<List> lists_;
  std::size_t next_ = 0;
  bool is_out_of_order_ = false;
  std::uint64_t decoded_ = 0;
};

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_STREAM_H_
