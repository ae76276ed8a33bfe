// The rival: best fit over a std::set, in the shape of PyTorch's own allocator. Blocks made by new and delete, free
// blocks in one std::set by (stream, size, address), live ones in a hash map in 67 shards with a mutex each, a
// recursive mutex around everything, every statistic kept for all, small and large. Written from the policy,
// for the default settings; segments come from a counter. Addresses equal those of core::CachingAllocator over a
// SimDevice that never runs out.
//
//   RivalSetEngine engine;
//   std::uint64_t address = engine.Allocate(300 * kMiB, Stream{0});
//   engine.Free(address);
//
// Thread-safe, as its model is.
#ifndef ASHLAR_BENCH_RIVAL_SET_ENGINE_H_
#define ASHLAR_BENCH_RIVAL_SET_ENGINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "allocator/base/units.h"

namespace ashlar::bench {

class RivalSetEngine {
 public:
  RivalSetEngine() = default;
  ~RivalSetEngine();
  RivalSetEngine(const RivalSetEngine&) = delete;
  RivalSetEngine& operator=(const RivalSetEngine&) = delete;

  // bytes > 0.
  std::uint64_t Allocate(std::uint64_t bytes, Stream stream);
  // `address` is that of a live block.
  void Free(std::uint64_t address);

  std::int64_t requested_bytes() const { return requested_bytes_[0].current; }
  std::int64_t peak_reserved_bytes() const { return reserved_bytes_[0].peak; }

 private:
  struct Block;
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  struct Pool {
    std::set<Block*, BySize> free;
    bool is_small = false;
  };
  struct Block {
    std::uint64_t stream = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;
    std::uint64_t address = 0;
    Pool* pool = nullptr;
    Block* prev = nullptr;
    Block* next = nullptr;
    bool is_allocated = false;
    bool IsSplit() const { return prev != nullptr || next != nullptr; }
  };
  struct Stat {
    std::int64_t current = 0;
    std::int64_t peak = 0;
    std::int64_t allocated = 0;
    std::int64_t freed = 0;
  };
  using Stats = std::array<Stat, 3>;  // all, small pool, large pool
  struct Shard {
    std::mutex mutex;
    absl::flat_hash_map<std::uint64_t, Block*> blocks;
  };

  static void Update(Stats& stats, const Pool& pool, std::int64_t amount);
  static bool ShouldSplit(const Block& block, std::uint64_t size_bytes);
  Shard& ShardOf(std::uint64_t address) { return shards_[(address / 512) % shards_.size()]; }
  Block* TakeBestFit(Pool& pool, std::uint64_t size_bytes, Stream stream);
  Block* NewSegment(Pool& pool, std::uint64_t size_bytes, Stream stream);
  Block* Split(Block* block, std::uint64_t size_bytes);
  std::uint64_t TryMerge(Block* block, Block* neighbour);

  std::recursive_mutex mutex_;
  Pool small_{{}, true};
  Pool large_;
  absl::flat_hash_set<Block*> active_;
  std::array<Shard, 67> shards_;
  std::uint64_t next_segment_ = 0x7f0000000000;
  Stats allocation_, segment_, active_count_, inactive_split_;
  Stats allocated_bytes_, reserved_bytes_, active_bytes_, inactive_split_bytes_, requested_bytes_;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_RIVAL_SET_ENGINE_H_
