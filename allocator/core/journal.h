// A thread cache's journal: the records of the events that it serves on its own (fast_path.h), as bytes, until the
// recorder collects them while everything stands still. So recording threads share nothing. What an event's time, stack
// and pool are is found here as the recorder finds it, and the order of the journals among themselves follows from the
// turns (trace/codec_format.h).
//
//   if (!journal.CanTake()) return nullptr;      // nothing was done: the exclusive section serves, and collects
//   journal.AddAllocation(block, lane, turn);    // 2 to 6 bytes; takes no memory
//
// Thread rule: the lock of its thread cache, or the exclusive section.
#ifndef ASHLAR_ALLOCATOR_CORE_JOURNAL_H_
#define ASHLAR_ALLOCATOR_CORE_JOURNAL_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/core/thread_slot.h"
#include "allocator/policy/heap.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/event.h"

namespace ashlar::core {

// The time of a recording: microseconds since 1970 when it began, and from then on those that passed. So it never goes
// back. Threads: any may read it.

// A clock is read for every so many events: an event's time is that of at most so many events before.
inline constexpr int kEventsOfOneTime = 64;

class RecordingClock {
 public:
  std::int64_t begin_us() const { return begin_us_; }
  std::int64_t NowMicroseconds() const {
    const auto passed = std::chrono::steady_clock::now() - begin_;
    return begin_us_ + std::chrono::duration_cast<std::chrono::microseconds>(passed).count();
  }

 private:
  const std::int64_t begin_us_ =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Where blocks were allocated: the stack of the block that was placed at an address last, for the addresses used last.
// Any number of threads write at once, each under its thread cache's lock; who reads stands still or takes what is
// whole: a place that two writers mixed is none.
//
//   PlaceTable places;
//   places.Keep(address, stack);           // nothing until places.Use()
//   StackId stack = places.StackAt(address);
class PlaceTable {
 public:
  // While everything stands still: takes its memory, 1 MiB. Not before the first stack: most programs have none.
  void Use() {
    if (places_ == nullptr) places_ = std::make_unique<Place[]>(std::size_t{1} << kBits);
  }
  bool IsUsed() const { return places_ != nullptr; }
  // A newer place displaces an older one. Only while it is used.
  void Keep(std::uint64_t address, trace::StackId stack) {
    Place& place = places_[IndexOf(address)];
    place.stack.store(stack, std::memory_order_relaxed);
    place.mixed.store(address ^ Spread(stack), std::memory_order_relaxed);
  }
  trace::StackId StackAt(std::uint64_t address) const {
    if (!IsUsed()) return trace::kNoStack;
    const Place& place = places_[IndexOf(address)];
    const std::uint64_t stack = place.stack.load(std::memory_order_relaxed);
    const bool is_its = (place.mixed.load(std::memory_order_relaxed) ^ Spread(stack)) == address;
    return is_its ? static_cast<trace::StackId>(stack) : trace::kNoStack;
  }

 private:
  static constexpr int kBits = 16;

  // Both of a place's words, or they do not fit.
  struct Place {
    std::atomic<std::uint64_t> mixed{0};
    std::atomic<std::uint64_t> stack{trace::kNoStack};
  };
  static std::size_t IndexOf(std::uint64_t address) {
    return static_cast<std::size_t>(((address >> 9) * 0x9e3779b97f4a7c15) >> (64 - kBits));
  }
  static std::uint64_t Spread(std::uint64_t stack) { return (stack + 1) * 0x9e3779b97f4a7c15; }

  std::unique_ptr<Place[]> places_;
};

// What the journals of one recorder share; it outlives them.
struct JournalsShare {
  explicit JournalsShare(std::uint64_t number) : recorder(number) {}

  const std::uint64_t recorder;  // its number, which no other of the process has
  const RecordingClock clock;
  PlaceTable places;
  std::atomic<bool> is_due{false};  // one is full, or it is time: who comes to the section next is to collect
  std::atomic<std::int64_t> next_time_us{kNever};  // when it is time

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
};

class Journal : private trace::codec::RecordWriter {
 public:
  Journal(JournalsShare& share, std::size_t bytes);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Whether an event of this thread can be added: there is room, it is not time to collect, and the thread's scopes
  // have their number already.
  bool CanTake() {
    if (at_ > last_begin_) [[unlikely]]
      return StartOver();
    return StackOfScopes(share_.recorder, stack_);
  }
  // Each only after CanTake.
  void AddAllocation(const policy::Block& block, const policy::Lane& lane, std::uint64_t turn) {
    Add(static_cast<unsigned>(trace::Action::kAlloc), block, lane, turn);
    event_count_ += 1;
    if (share_.places.IsUsed()) share_.places.Keep(block.address, stack_);
  }
  // Of a block that is live still.
  void AddFree(const policy::Block& block, const policy::Lane& lane, std::uint64_t turn) {
    Add(trace::codec::kFreed, block, lane, turn);
    event_count_ += 2;
  }
  // Of its last event; 0: none since it was collected.
  std::uint64_t turn() const { return turn_; }

  // --- while everything stands still ---
  absl::string_view records() const { return {buffer_.data(), static_cast<std::size_t>(at_ - buffer_.data())}; }
  std::uint64_t event_count() const { return event_count_; }
  std::int64_t time_us() const { return time_us_; }
  // Empty, from now on. Times begin here, or later.
  void Clear(std::int64_t time_us);
  // What is added from now on is kept, or, as at first, it is not.
  void SetKeeps(bool keeps);

 private:
  // Not in line: who records nothing is not to pay for the registers that it takes.
  [[gnu::noinline]] void Add(unsigned code, const policy::Block& block, const policy::Lane& lane, std::uint64_t turn) {
    if (--events_to_clock_ < 0 || &lane != lane_ || turn != turn_ || stack_ != context_.stack) [[unlikely]]
      PutContext(lane, turn);
    PutEvent(code, block.address, block.requested_bytes, block.size_bytes);
  }
  bool StartOver();
  void PutContext(const policy::Lane& lane, std::uint64_t turn);

  JournalsShare& share_;
  std::vector<char> buffer_;
  char* last_begin_;  // an event whose record begins here or before can be taken
  trace::StackId stack_ = trace::kNoStack;
  int events_to_clock_ = 0;
  const policy::Lane* lane_ = nullptr;  // of the last event; where the turn is another one, lanes may have gone
  std::uint64_t turn_ = 0;
  std::uint64_t event_count_ = 0;
  std::int64_t time_us_ = 0;
  bool keeps_ = false;
};

// Who gives thread caches their journals, and is asked before a request that needs the exclusive section.
class JournalKeeper {
 public:
  virtual ~JournalKeeper() = default;
  // The thread cache's, by its number from 0 on: always the same. Not called by two threads at once.
  virtual Journal* JournalOf(std::size_t cache) = 0;
  // Everything stands still and no decision is under way.
  virtual void OnStill() = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_JOURNAL_H_
