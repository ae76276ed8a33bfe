// One stream's part of one pool as the threads see it: the lane, its lock, and what a request served from the cache
// changes besides. Two threads on different streams touch no common cache line.
//
// Statistics over all lanes have peaks, and a peak is a property of the sum. So that it stays exact without a shared
// counter, every engine has a share of the room below the peaks (`EngineStats`): as long as no engine outgrows its
// share, the sum cannot pass the peak. One that would goes to the allocator's slow path, which stops all engines, adds
// everything up, raises the peaks and deals the room out anew.
#ifndef ASHLAR_ALLOCATOR_CORE_ENGINE_H_
#define ASHLAR_ALLOCATOR_CORE_ENGINE_H_

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "allocator/base/spin_lock.h"
#include "allocator/base/units.h"
#include "allocator/core/pointer_map.h"
#include "allocator/core/stats.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

// A sum of one engine since it was last folded into the allocator's statistics.
struct EngineStat {
  std::int64_t change = 0;
  std::int64_t increases = 0;
  std::int64_t room = 0;  // `change` stays at or below it

  bool HasRoom(std::int64_t amount) const { return change + amount <= room; }
  void Add(std::int64_t amount) {
    change += amount;
    increases += amount > 0 ? amount : 0;
  }
};

// Blocks that wait for events are freed on the slow path; so here what is allocated is active.
struct EngineStats {
  EngineStat blocks;
  EngineStat block_bytes;
  EngineStat requested_bytes;
  EngineStat split_blocks;
  EngineStat split_bytes;
};

// How many times the World is left before an engine that nobody uses gets no more room.
inline constexpr int kRecentWorlds = 8;

struct EngineKey {
  PoolId pool;
  Stream stream{};
  bool is_small = false;

  bool operator==(const EngineKey&) const = default;
};

// Two cache lines apart, so that neighbours do not slow each other down.
struct alignas(128) Engine {
  explicit Engine(const EngineKey& its_key) : key(its_key) {}

  SpinLock lock;
  policy::Lane* lane = nullptr;  // nullptr while nobody uses the pool
  EngineStats stats;
  PointerMap pointers;  // of blocks handed out by address
  absl::flat_hash_map<const policy::Block*, absl::InlinedVector<Stream, 2>> recorded_streams;
  const EngineKey key;
  int recent_uses = 0;  // counts down while others are used
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_ENGINE_H_
