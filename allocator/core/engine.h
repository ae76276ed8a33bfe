// One stream's part of one pool as the threads see it: its small and its large lane, their lock, and what a request
// served from the cache changes besides. Two threads on different streams touch no common cache line.
//
// Statistics over all engines have peaks, and a peak is a property of the sum. So that it stays exact without a shared
// counter, every engine has a share of the room below the peaks: of either size class, and of both together. As long as
// no engine outgrows its shares, no sum can pass its peak. One that would goes to the allocator's slow path, which
// stops all engines, adds everything up, raises the peaks and deals the room out anew.
#ifndef ASHLAR_ALLOCATOR_CORE_ENGINE_H_
#define ASHLAR_ALLOCATOR_CORE_ENGINE_H_

#include <array>
#include <cstdint>
#include <cstdlib>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "allocator/base/units.h"
#include "allocator/core/biased_lock.h"
#include "allocator/core/lifo_log.h"
#include "allocator/core/pointer_map.h"
#include "allocator/core/stats.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

// What one request changes. Blocks that wait for events are freed on the slow path; so here what is allocated is
// active.
enum EngineStat : std::uint8_t { kBlocks, kBlockBytes, kRequestedBytes, kSplitBlocks, kSplitBytes };
inline constexpr int kEngineStats = 5;
using Changes = std::array<std::int64_t, kEngineStats>;

// One size class of an engine. The sums are those since they were last folded into the allocator's statistics.
struct Side {
  policy::Lane* lane = nullptr;  // nullptr while nobody uses the pool
  Changes left{};                // of its share of the room, never negative: what was dealt minus all changes
  Changes increases{};
  Changes dealt{};
};

// How many times the World is left before an engine that nobody uses gets no more room.
inline constexpr int kRecentWorlds = 8;

struct EngineKey {
  PoolId pool;
  Stream stream{};

  bool operator==(const EngineKey&) const = default;
};

class CachingAllocator;

// Two cache lines apart, so that neighbours do not slow each other down.
struct alignas(128) Engine {
  explicit Engine(const EngineKey& its_key) : key(its_key) {}

  BiasedLock lock;
  const CachingAllocator* allocator = nullptr;  // whose engine it is
  Changes left{};             // of the room for both sides together
  std::array<Side, 2> sides;  // large, small
  PointerMap pointers;        // of blocks handed out by address
  LifoLog log;                // of both sides, since peaks are of both; empty whenever the World is entered
  absl::flat_hash_map<const policy::Block*, absl::InlinedVector<Stream, 2>> recorded_streams;
  const EngineKey key;
  int recent_uses = 0;  // counts down while others are used

  Side& SideOf(bool is_small) { return sides[is_small ? 1 : 0]; }
  // An allocation goes to the sums, if these stay below their peaks: without a branch for each.
  bool CountAllocation(Side& side, std::int64_t block_bytes, std::int64_t requested_bytes,
                       const policy::SplitCounts& splits) {
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
  bool CountFree(Side& side, std::int64_t block_bytes, std::int64_t requested_bytes,
                 const policy::SplitCounts& splits) {
    if (Lacking(side, splits) < 0) return false;
    CountFreeUnchecked(side, block_bytes, requested_bytes, splits);
    return true;
  }
  // A free that leads back to sums that were there before.
  void CountFreeUnchecked(Side& side, std::int64_t block_bytes, std::int64_t requested_bytes,
                          const policy::SplitCounts& splits) {
    const std::array<std::int64_t, 3> amounts = {1, block_bytes, requested_bytes};
    for (int i = 0; i < kSplitBlocks; ++i) {
      side.left[i] += amounts[i];
      left[i] += amounts[i];
    }
    CountSplits(side, splits);
  }
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
  // What the entry's repeats did goes to the sums.
  void Count(LifoLog::Entry& entry) {
    if (entry.repeats == 0) return;
    Changes& increases = SideOf(entry.block->is_small).increases;
    increases[kBlocks] += entry.repeats;
    increases[kBlockBytes] += entry.repeats * entry.block_bytes;
    increases[kSplitBlocks] += entry.repeats * std::abs(entry.split_blocks);
    increases[kSplitBytes] += entry.repeats * std::abs(entry.split_bytes);
    entry.repeats = 0;
  }
  // Makes the frees that the log holds back real.
  void ReleaseUndone();
  // The same, and the log is empty.
  void EmptyLog() {
    if (log.has_undone()) ReleaseUndone();
    log.Clear([this](LifoLog::Entry& entry) { Count(entry); });
  }
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_ENGINE_H_
