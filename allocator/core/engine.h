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
  Changes change{};
  Changes increases{};
  Changes room{};  // `change` stays at or below it

  void Add(const Changes& amounts) {
    for (int i = 0; i < kEngineStats; ++i) {
      change[i] += amounts[i];
      increases[i] += amounts[i] > 0 ? amounts[i] : 0;
    }
  }
};

// How many times the World is left before an engine that nobody uses gets no more room.
inline constexpr int kRecentWorlds = 8;

struct EngineKey {
  PoolId pool;
  Stream stream{};

  bool operator==(const EngineKey&) const = default;
};

// Two cache lines apart, so that neighbours do not slow each other down.
struct alignas(128) Engine {
  explicit Engine(const EngineKey& its_key) : key(its_key) {}

  BiasedLock lock;
  Changes room{};             // the sum of both sides' changes stays at or below it
  std::array<Side, 2> sides;  // large, small
  PointerMap pointers;        // of blocks handed out by address
  LifoLog log;                // of both sides, since peaks are of both; empty whenever the World is entered
  absl::flat_hash_map<const policy::Block*, absl::InlinedVector<Stream, 2>> recorded_streams;
  const EngineKey key;
  int recent_uses = 0;                                   // counts down while others are used
  BiasedLock::Way world_way = BiasedLock::Way::kShared;  // how the World took the lock

  Side& SideOf(bool is_small) { return sides[is_small ? 1 : 0]; }
  // Whether these changes keep the sums below their peaks, without a branch for each.
  bool HasRoom(bool is_small, const Changes& amounts) const {
    const Side& side = sides[is_small ? 1 : 0];
    const Side& other = sides[is_small ? 0 : 1];
    std::int64_t lacking = 0;  // negative when any room is
    for (int i = 0; i < kEngineStats; ++i) {
      const std::int64_t sum = side.change[i] + amounts[i];
      lacking |= (side.room[i] - sum) | (room[i] - other.change[i] - sum);
    }
    return lacking >= 0;
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
