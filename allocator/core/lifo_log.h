// The newest allocations of one desk, so that undoing and repeating them costs almost nothing and changes nothing.
//
// Best fit is a function of the lanes' state. Freeing the newest block leads back to the state before it was allocated,
// and a request of the same size from there leads to the same block. So such a free only steps a counter back, and such
// a request steps it forward:
//
//   entries:   A  B  C  D            allocated in this order and, as far as the lanes know, all live
//                    ^ depth         the caller has freed D, then C
//
//   free B          steps back         allocate, size of C   steps forward: C again
//   anything else   first makes the frees of D and C real, newest first (the owner does, CachingAllocator)
//
// It holds the last 64 allocations, of whatever streams; what it drops stays allocated. Not thread-safe: the desk's
// lock guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_LIFO_LOG_H_
#define ASHLAR_ALLOCATOR_CORE_LIFO_LOG_H_

#include <array>
#include <cstdint>

#include "allocator/policy/block.h"

namespace ashlar::core {

struct Engine;

class LifoLog {
 public:
  struct alignas(64) Entry {
    policy::Block* block = nullptr;
    const Engine* engine = nullptr;
    std::uint64_t address = 0;
    std::uint64_t rounded_bytes = 0;  // of the request
    std::int64_t block_bytes = 0;
    std::int64_t split_bytes = 0;  // what the allocation added to the inactive split blocks; its free takes it back
    std::int32_t split_blocks = 0;
    bool is_named = false;     // its address is in the pointer map
    std::int64_t repeats = 0;  // times it was freed and allocated again, not yet in the statistics
  };

  // The newest entry that is live; nullptr when none is known.
  Entry* Newest() { return depth_ == bottom_ ? nullptr : &entries_[(depth_ - 1) % kEntries]; }
  // The entry that was freed last; nullptr when none waits.
  Entry* Undone() { return depth_ == top_ ? nullptr : &entries_[depth_ % kEntries]; }
  void StepBack() { --depth_; }
  void StepForward() { ++depth_; }

  void CountRepeat(Entry& entry) {
    ++entry.repeats;
    has_repeats_ = true;
  }

  bool empty() const { return bottom_ == top_; }
  bool has_undone() const { return depth_ != top_; }
  template <typename Visit>
  void ForEachUndone(Visit visit) {
    for (std::uint32_t i = depth_; i != top_; ++i) visit(entries_[i % kEntries]);
  }
  // Newest first: the entry at the top leaves.
  Entry& Top() { return entries_[(top_ - 1) % kEntries]; }
  void DropTop() { --top_; }

  // Nothing may be undone. The slot for a new entry, all of which is to be set; `drop` takes the oldest if it must go.
  template <typename Drop>
  Entry& Append(Drop drop) {
    if (top_ - bottom_ == kEntries) drop(entries_[bottom_++ % kEntries]);
    depth_ = ++top_;
    return entries_[(top_ - 1) % kEntries];
  }
  // Forgets every entry, which stay allocated; `drop` takes those that were repeated, and maybe others.
  template <typename Drop>
  void Clear(Drop drop) {
    for (; has_repeats_ && bottom_ != top_; ++bottom_) drop(entries_[bottom_ % kEntries]);
    has_repeats_ = false;
    bottom_ = depth_ = top_;
  }

 private:
  static constexpr std::uint32_t kEntries = 64;

  std::uint32_t bottom_ = 0;  // these count on and wrap
  std::uint32_t depth_ = 0;
  std::uint32_t top_ = 0;
  bool has_repeats_ = false;  // an entry may have been repeated
  std::array<Entry, kEntries> entries_;
};
static_assert(sizeof(LifoLog::Entry) == 64);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_LIFO_LOG_H_
