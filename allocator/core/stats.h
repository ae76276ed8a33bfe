// Statistics of one allocator, by the names and rules of torch.cuda.memory_stats.
//
//   allocated   + block size when handed out, - when the caller frees
//   active      the same, but - when the free completes (pending blocks count)
//   requested   + what was asked for, - when the free completes
//   reserved    segments, or mapped pages of expandable segments
//   inactive_split   free blocks that share a segment; expandable segments are not counted
//
// Units: bytes where the name says so, else counts. `freed` is `allocated - current`. Plain values: a copy made by
// CachingAllocator::stats() is consistent, whatever other threads do meanwhile.
#ifndef ASHLAR_ALLOCATOR_CORE_STATS_H_
#define ASHLAR_ALLOCATOR_CORE_STATS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace ashlar::core {

struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  // sum of all increases

  std::int64_t freed() const { return allocated - current; }
  void Add(std::int64_t amount) {
    current += amount;
    allocated += amount > 0 ? amount : 0;
    peak = current > peak ? current : peak;
  }
  void Subtract(std::int64_t amount) { current -= amount; }
  // Many changes at once, of which none took `current` above the peak.
  void Fold(std::int64_t change, std::int64_t increases) {
    current += change;
    allocated += increases;
  }
  std::int64_t Slack() const { return peak - current; }
};

enum class PoolKind : std::uint8_t { kAll, kSmall, kLarge };

// One statistic over both pools and each.
class PoolStat {
 public:
  void Add(bool is_small, std::int64_t amount) {
    stats_[0].Add(amount);
    stats_[is_small ? 1 : 2].Add(amount);
  }
  void Subtract(bool is_small, std::int64_t amount) {
    stats_[0].Subtract(amount);
    stats_[is_small ? 1 : 2].Subtract(amount);
  }
  void Fold(bool is_small, std::int64_t change, std::int64_t increases) {
    stats_[0].Fold(change, increases);
    stats_[is_small ? 1 : 2].Fold(change, increases);
  }
  const Stat& operator[](PoolKind kind) const { return stats_[static_cast<std::size_t>(kind)]; }
  const Stat& all() const { return stats_[0]; }

 private:
  std::array<Stat, 3> stats_;
};

struct Stats {
  PoolStat allocation;  // counts
  PoolStat active;
  PoolStat segment;
  PoolStat inactive_split;
  PoolStat allocated_bytes;
  PoolStat active_bytes;
  PoolStat requested_bytes;
  PoolStat reserved_bytes;
  PoolStat inactive_split_bytes;
  Stat oversize_allocations;  // blocks of at least max_split_size
  Stat oversize_segments;
  std::uint64_t num_alloc_retries = 0;
  std::uint64_t num_ooms = 0;
  std::uint64_t num_oom_rejections = 0;
  std::uint64_t num_sync_all_streams = 0;
  std::uint64_t num_device_alloc = 0;  // segments obtained and successful map calls
  std::uint64_t num_device_free = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_STATS_H_
