// A desk is where one thread works. It holds the arenas (arena.h) of the streams that the thread uses, under one lock
// and with one map of addresses and one set of sums. So the cost of a thread depends on its requests, not on how many
// streams they go to. The exclusive section, which stops everything, stops desks: as many as there are threads, and the
// common one, which holds the arenas that several threads use by turns. Between desks of their own, blocks that one
// thread frees and the other allocates would carry the room below the peaks back and forth.
//
//   Desk desk(SeatOfThread());
//   const HeldLock held(desk.lock, is_mine);
//   if (!desk.CountAllocation(is_small, block_bytes, requested_bytes, splits)) ...   // to the exclusive section
//
// Statistics over all arenas have peaks, and a peak is a property of the sum. So that it stays exact without a shared
// counter, every desk has a share of the room below the peaks: of either size class, and of both together. As long as
// no desk outgrows its shares, no sum can pass its peak. One that would goes to the allocator's slow path, which stops
// all desks, adds everything up, raises the peaks and deals the room out anew. With one thread there is nothing to
// share: its desk has all the room there is, and only a request that does raise a peak goes there.
#ifndef ASHLAR_ALLOCATOR_CORE_DESK_H_
#define ASHLAR_ALLOCATOR_CORE_DESK_H_

#include <array>
#include <cstdint>

#include "allocator/core/changes.h"
#include "allocator/core/counted_lock.h"
#include "allocator/core/journal.h"
#include "allocator/core/newest_block.h"
#include "allocator/core/pointer_map.h"
#include "allocator/core/seat.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

// One size class of a desk. The sums are those since they were last folded into the allocator's statistics.
struct SizeClass {
  Changes left{};  // of its share of the room, never negative: what was dealt minus all changes
  Changes increases{};
  Changes dealt{};
};

// How many exclusive sections end before a desk that nobody uses gets no more room.
inline constexpr int kRecentSections = 8;

// Two cache lines apart, so that neighbours do not slow each other down.
struct alignas(128) Desk {
  explicit Desk(const Seat* its_seat) : seat(its_seat), lock(its_seat != nullptr) {}

  // Of the thread whose desk it is; goes to another when that has ended. nullptr: the common one.
  const Seat* const seat;
  CountedLock lock;
  Journal* journal = nullptr;             // where its events are recorded; nullptr: nobody records, or only in sections
  std::uint64_t visits = 0;               // how often others than its owner used one of its arenas
  Changes left{};                         // of the room for both size classes together
  std::array<SizeClass, 2> size_classes;  // large, small
  int recent_uses = 0;                    // counts down while others are used
  NewestBlock newest;                     // none in the exclusive section
  PointerMap pointers;                    // of blocks of its arenas that were handed out by address

  // Before a lane changes: there is no newest block any more, and what was put off is real and counted.
  void Settle() {
    if (!newest.IsSettled()) [[unlikely]]
      SettleNewest();
    newest.Forget();
  }

  SizeClass& SizeClassOf(bool is_small) { return size_classes[is_small ? 1 : 0]; }
  // An allocation goes to the sums, if these stay below their peaks: without a branch for each.
  bool CountAllocation(bool is_small, std::int64_t block_bytes, std::int64_t requested_bytes,
                       const policy::SplitCounts& splits) {
    SizeClass& sums = SizeClassOf(is_small);
    const std::array<std::int64_t, 3> amounts = {1, block_bytes, requested_bytes};
    std::int64_t lacking = Lacking(sums, splits);
    for (int i = 0; i < kSplitBlocks; ++i) lacking |= (sums.left[i] - amounts[i]) | (left[i] - amounts[i]);
    if (lacking < 0) return false;
    for (int i = 0; i < kSplitBlocks; ++i) {
      sums.left[i] -= amounts[i];
      left[i] -= amounts[i];
      sums.increases[i] += amounts[i];
    }
    CountSplits(sums, splits);
    return true;
  }
  // A free raises nothing but the counts of inactive split blocks.
  bool CountFree(bool is_small, std::int64_t block_bytes, std::int64_t requested_bytes,
                 const policy::SplitCounts& splits) {
    if (Lacking(SizeClassOf(is_small), splits) < 0) return false;
    CountFreeUnchecked(is_small, block_bytes, requested_bytes, splits);
    return true;
  }
  // The newest block again, for a request of so many bytes. The rest is counted by Settle.
  bool CountRepeat(bool is_small, std::int64_t bytes_before, std::int64_t requested_bytes) {
    SizeClass& sums = SizeClassOf(is_small);
    const std::int64_t more = requested_bytes - bytes_before;
    if (((sums.left[kRequestedBytes] - more) | (left[kRequestedBytes] - more)) < 0) return false;
    sums.left[kRequestedBytes] -= more;
    left[kRequestedBytes] -= more;
    sums.increases[kRequestedBytes] += requested_bytes;
    return true;
  }

 private:
  void SettleNewest();
  void CountRepeats(const policy::Block& block, const policy::SplitCounts& splits);
  void CountFreeUnchecked(bool is_small, std::int64_t block_bytes, std::int64_t requested_bytes,
                          const policy::SplitCounts& splits) {
    SizeClass& sums = SizeClassOf(is_small);
    const std::array<std::int64_t, 3> amounts = {1, block_bytes, requested_bytes};
    for (int i = 0; i < kSplitBlocks; ++i) {
      sums.left[i] += amounts[i];
      left[i] += amounts[i];
    }
    CountSplits(sums, splits);
  }
  // Negative when there is no room for them.
  std::int64_t Lacking(const SizeClass& sums, const policy::SplitCounts& splits) const {
    return (sums.left[kSplitBlocks] - splits.blocks) | (left[kSplitBlocks] - splits.blocks) |
           (sums.left[kSplitBytes] - splits.bytes) | (left[kSplitBytes] - splits.bytes);
  }
  void CountSplits(SizeClass& sums, const policy::SplitCounts& splits) {
    sums.left[kSplitBlocks] -= splits.blocks;
    left[kSplitBlocks] -= splits.blocks;
    sums.left[kSplitBytes] -= splits.bytes;
    left[kSplitBytes] -= splits.bytes;
    sums.increases[kSplitBlocks] += splits.blocks > 0 ? splits.blocks : 0;
    sums.increases[kSplitBytes] += splits.bytes > 0 ? splits.bytes : 0;
  }
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_DESK_H_
