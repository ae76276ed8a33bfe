// The entries of device_traces as events, made while the pickle is read: the entries themselves are never held. What
// they become is what ReadDeviceTraces makes of them, to the numbers of their stacks.
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_STREAM_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/trace/event.h"
#include "allocator/trace/event_list.h"
#include "analyzer/readers/pickle/pickle_stream.h"
#include "analyzer/readers/torch/torch_context.h"

namespace ashlar::readers {

class TraceStream final : public pickle::ItemSink {
 public:
  // `file_bytes` is the length of the whole file.
  TraceStream(TorchContext* context, std::uint64_t file_bytes) : context_(*context), file_bytes_(file_bytes) {}

  bool Take(std::uint64_t list, const pickle::Value* begin, const pickle::Value* end) override;
  std::uint64_t Known(const pickle::Value& container) const override;
  void CutBack(const pickle::Document::Place& to) override;
  void Rename(std::uint64_t known, std::uint64_t container) override;

  // The whole pickle is read: from here on the other parts are.
  void Finish();
  // The events of the list, which is the next that has any; their stacks are numbered now.
  trace::EventList TakeNext(const pickle::Value& list);
  // Each list was taken once, in order, and nothing else was asked of them.
  bool IsWhole() const { return !is_out_of_order_ && next_ == lists_.size(); }

 private:
  struct List {
    std::uint64_t container = 0;
    std::vector<trace::Event> events;
    std::uint64_t first_byte = 0;
  };
  void MakeRoom(List& list, std::size_t count, std::uint64_t byte) const;

  TorchContext& context_;
  const std::uint64_t file_bytes_;
  std::vector<List> lists_;
  std::size_t next_ = 0;
  bool is_out_of_order_ = false;
};

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_STREAM_H_
