// Where one thread works: the engines (engine.h) of the streams that it uses lie on its desk, under one lock and with
// one map of addresses and one set of sums. What a thread pays depends on its requests, not on
// how many streams they go to; and the World, which stops everything, stops desks, of which there are as many as
// threads, and the common one, for the engines that several threads use by turns: between desks of their own, blocks
// that one frees and the other allocates would carry the room below the peaks back and forth.
//
//   Desk desk(SeatOfThread());
//   const std::lock_guard<CountedLock> guard(desk.lock);
//   if (!desk.CountAllocation(is_small, block_bytes, requested_bytes, splits)) ...   // to the World
//
// Statistics over all engines have peaks, and a peak is a property of the sum. So that it stays exact without a shared
// counter, every desk has a share of the room below the peaks: of either size class, and of both together. As long as
// no desk outgrows its shares, no sum can pass its peak. One that would goes to the allocator's slow path, which stops
// all desks, adds everything up, raises the peaks and deals the room out anew. With one thread there is nothing to
// share: its desk has all the room there is, and only a request that does raise a peak goes there.
#ifndef ASHLAR_ALLOCATOR_CORE_DESK_H_
#define ASHLAR_ALLOCATOR_CORE_DESK_H_

#include <array>
#include <cstdint>

#include "allocator/core/counted_lock.h"
#include "allocator/core/pointer_map.h"
#include "allocator/core/seat.h"
#include "allocator/core/stats.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

// What one request changes. Blocks that wait for events are freed on the slow path; so here what is allocated is
// active.
enum DeskStat : std::uint8_t { kBlocks, kBlockBytes, kRequestedBytes, kSplitBlocks, kSplitBytes };
inline constexpr int kDeskStats = 5;
using Changes = std::array<std::int64_t, kDeskStats>;

// One size class of a desk. The sums are those since they were last folded into the allocator's statistics.
struct Side {
  Changes left{};  // of its share of the room, never negative: what was dealt minus all changes
  Changes increases{};
  Changes dealt{};
};

// How many times the World is left before a desk that nobody uses gets no more room.
inline constexpr int kRecentWorlds = 8;

// Two cache lines apart, so that neighbours do not slow each other down.
struct alignas(128) Desk {
  explicit Desk(const Seat* its_seat) : seat(its_seat) {}

  // Of the thread whose desk it is; goes to another when that has ended. nullptr: the common one.
  const Seat* const seat;
  CountedLock lock;
  std::uint64_t visits = 0;   // how often others than its owner used one of its engines
  Changes left{};             // of the room for both sides together
  std::array<Side, 2> sides;  // large, small
  int recent_uses = 0;        // counts down while others are used
  PointerMap pointers;        // of blocks of its engines that were handed out by address

  Side& SideOf(bool is_small) { return sides[is_small ? 1 : 0]; }
  // An allocation goes to the sums, if these stay below their peaks: without a branch for each.
  bool CountAllocation(bool is_small, std::int64_t block_bytes, std::int64_t requested_bytes,
                       const policy::SplitCounts& splits) {
    Side& side = SideOf(is_small);
    const std::array<std::int64_t, 3> amounts = {1, block_bytes, requested_bytes};
    std::int64_t lacking = Lacking(side, splits);
    for (int i = 0; i < kSplitBlocks; ++i) lacking |= (side.left[i] - amounts[i]) | (left[i] - amounts[i]);
    if (lacking < 0) return false;
    for (int i = 0; i < kSplitBlocks; ++i) {
      side.left[i] -= amounts[i];
      left[i] -= amounts[i];
      side.increases[i] += amounts[i];
    }
    CountSplits(side, splits);
    return true;
  }
  // A free raises nothing but the counts of inactive split blocks.
  bool CountFree(bool is_small, std::int64_t block_bytes, std::int64_t requested_bytes,
                 const policy::SplitCounts& splits) {
    Side& side = SideOf(is_small);
    if (Lacking(side, splits) < 0) return false;
    const std::array<std::int64_t, 3> amounts = {1, block_bytes, requested_bytes};
    for (int i = 0; i < kSplitBlocks; ++i) {
      side.left[i] += amounts[i];
      left[i] += amounts[i];
    }
    CountSplits(side, splits);
    return true;
  }

 private:
  // Negative when there is no room for them.
  std::int64_t Lacking(const Side& side, const policy::SplitCounts& splits) const {
    return (side.left[kSplitBlocks] - splits.blocks) | (left[kSplitBlocks] - splits.blocks) |
           (side.left[kSplitBytes] - splits.bytes) | (left[kSplitBytes] - splits.bytes);
  }
  void CountSplits(Side& side, const policy::SplitCounts& splits) {
    side.left[kSplitBlocks] -= splits.blocks;
    left[kSplitBlocks] -= splits.blocks;
    side.left[kSplitBytes] -= splits.bytes;
    left[kSplitBytes] -= splits.bytes;
    side.increases[kSplitBlocks] += splits.blocks > 0 ? splits.blocks : 0;
    side.increases[kSplitBytes] += splits.bytes > 0 ? splits.bytes : 0;
  }
};

// Where a thread remembers its desks: one for each allocator that it uses, found by the allocator's number.
struct alignas(32) DeskOfAllocator {  // a power of 2, so that one is found by a shift
  std::uint64_t allocator = 0;        // 0: nobody's
  Desk* desk = nullptr;
  Desk* first = nullptr;  // where it looks first: its own, or the common one while that has what the thread asks for
};
constinit inline thread_local std::array<DeskOfAllocator, 16> desks_of_thread{};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_DESK_H_
