// The entries of device_traces as events, made while the pickle is read: the entries themselves are never held. What
// they become is what ReadDeviceTraces makes of them, to the numbers of their stacks.
#ifndef ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_STREAM_H_
#define ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/event.h"
#include "allocator/trace/stack_table.h"
#include "allocator/trace/trace_tail.h"
#include "analyzer/formats/pickle/pickle.h"
#include "analyzer/formats/read_limits.h"
#include "analyzer/formats/torch/torch_parts.h"

namespace ashlar::formats {

// Which stack a list of frames is, by the bytes that it is written with: PyTorch makes a new list at every allocation,
// so that a file has the same hundred references to frames, in the same bytes, as often as a line of the program
// allocated.
//
//   ...  EMPTY_LIST MEMOIZE MARK  BINGET 25 BINGET 31 LONG_BINGET 533 ... APPENDS  ...
//                                 └──────────────── a run ────────────────────┘
//
// Holds while no index of the memo is written again: then Clear. Not thread-safe.
class StackRuns {
 public:
  struct Run {
    std::uint32_t begin = 0;  // in bytes_
    std::uint32_t size = 0;   // 0: no run
    trace::StackId stack = trace::kNoStack;
  };

  // The run that begins at `at`, nullptr where none is known.
  const Run* Find(const std::uint8_t* at, const std::uint8_t* end) {
    if (end - at < static_cast<std::ptrdiff_t>(kKeyBytes) || sets_.empty()) return nullptr;
    Set& set = SetOf(at);
    for (std::size_t way = 0; way < kWays; ++way) {
      const Run& run = set[way];
      if (run.size == 0) return nullptr;
      if (run.size > static_cast<std::size_t>(end - at)) continue;
      if (std::memcmp(at, bytes_.data() + run.begin, run.size) != 0) continue;
      if (way > 0) std::swap(set[way], set[way - 1]);
      return &set[way > 0 ? way - 1 : 0];
    }
    return nullptr;
  }

  void Add(const std::uint8_t* begin, std::size_t size, trace::StackId stack) {
    if (size < kKeyBytes || size > kMostBytes) return;
    if (bytes_.size() + size > kMostBytes) Clear();
    if (sets_.empty()) sets_.resize(kSets);
    Set& set = SetOf(begin);
    for (std::size_t way = kWays - 1; way > 0; --way) set[way] = set[way - 1];
    set[0] = {static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(size), stack};
    bytes_.insert(bytes_.end(), begin, begin + size);
  }

  void Clear() {
    bytes_.clear();
    sets_.clear();
  }

 private:
  // Frames are written innermost first, where many stacks are alike: shorter runs are read as fast as found, and a
  // set has several.
  static constexpr std::size_t kKeyBytes = 32;
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kSets = 2048;
  static constexpr std::size_t kMostBytes = 4 << 20;
  using Set = std::array<Run, kWays>;

  Set& SetOf(const std::uint8_t* at) {
    const absl::string_view key(reinterpret_cast<const char*>(at), kKeyBytes);
    return sets_[absl::HashOf(key) % kSets];
  }

  std::vector<std::uint8_t> bytes_;
  std::vector<Set> sets_;
};

// A trace entry read from its opcodes, without a value for each of them: what PyTorch and Python's pickler usually
// write. Everything else, and all that is an error or a note, is left to the pickle machine and ReadEntry, which say
// what an entry means; this says the same of those it takes, several times as fast.
//
//   EntryOpcodes entry(&context);
//   if (entry.Decode(item)) events.push_back(entry.Finish());
class EntryOpcodes {
 public:
  explicit EntryOpcodes(TorchContext* context) : context_(*context) {}

  // Goes past the entry. False: it is to be read by the machine; nothing has changed.
  bool Decode(pickle::DirectItem& item);
  // The event of the entry that was decoded last.
  const trace::Event& Finish();

 private:
  bool DecodeValue(Field field, pickle::DirectItem& item);
  bool DecodeAction(pickle::DirectItem& item);
  bool DecodeText(pickle::DirectItem& item, absl::string_view* out);
  bool DecodePool(pickle::DirectItem& item);
  bool DecodeFrames(pickle::DirectItem& item);
  bool DecodeRun(pickle::DirectItem& item);
  bool DecodeFrame(pickle::DirectItem& item);
  bool IsThere(const pickle::Value& container) const;
  bool Has(Field field) const { return (seen_ >> static_cast<unsigned>(field) & 1) != 0; }
  void FinishLabel();

  TorchContext& context_;
  StackRuns runs_;
  std::uint64_t runs_overwritten_ = 0;  // of the memo, when they were written

  // Of the entry at work.
  trace::Event event_;
  std::uint64_t seen_ = 0;                  // bit i: Field i
  std::array<absl::string_view, 3> label_;  // user_metadata, internal_metadata, compile_context
  bool is_new_stack_ = false;               // frames_ are to be interned
  std::vector<trace::FrameId> frames_;      // of the list
  const std::uint8_t* run_ = nullptr;       // their opcodes
  std::size_t run_bytes_ = 0;

  // The last label: most events have that of the one before.
  std::array<std::string, 3> last_label_texts_;
  trace::LabelId last_label_ = trace::kNoLabel;
};

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

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_STREAM_H_
