// Stats holds the statistics of one allocator, by the names and rules of torch.cuda.memory_stats.
//
//   ashlar::Stats stats = allocator.stats();
//   stats.reserved_bytes.all().peak;
//
//   allocated   + block size when handed out, - when the caller frees
//   active      the same, but - when the free completes (pending blocks count)
//   requested   + what was asked for, - when the free completes
//   reserved    segments, or mapped pages of expandable segments
//   inactive_split   free blocks that share a segment; expandable segments are not counted
//
// Units: bytes where the name says so, else counts. `freed` is `allocated - current`. Plain values: a copy made by
// Allocator::stats() is of one moment, whatever other threads do meanwhile. docs/library/statistics.md has every name.
#ifndef ASHLAR_STATISTICS_H_
#define ASHLAR_STATISTICS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ashlar/export.h"
#include "ashlar/options.h"

namespace ashlar {

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
  void ResetPeak() { peak = current; }
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
  void ResetPeaks() {
    for (Stat& stat : stats_) stat.ResetPeak();
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
  std::uint64_t num_stream_waits = 0;  // inserted by borrow_across_streams
  std::uint64_t num_device_alloc = 0;  // segments obtained and successful map calls
  std::uint64_t num_device_free = 0;

  // Every peak is the current value again.
  void ResetPeaks() {
    for (PoolStat* stat : {&allocation, &active, &segment, &inactive_split, &allocated_bytes, &active_bytes,
                           &requested_bytes, &reserved_bytes, &inactive_split_bytes})
      stat->ResetPeaks();
    for (Stat* stat : {&oversize_allocations, &oversize_segments}) stat->ResetPeak();
  }
};

// The 123 values of torch.cuda.memory_stats, by its names and in its order: {"active.all.allocated", 4}, ...
// Bytes where the name says so, else counts; max_split_size is bytes, -1 where there is none.
ASHLAR_EXPORT std::vector<std::pair<std::string, std::int64_t>> TorchStatistics(const Stats& stats,
                                                                                const Options& options);

struct MetricsSource {
  std::string device;  // the value of the label: "0", a UUID; any text, different for each source
  Stats stats;
  std::uint64_t max_split_size_bytes = kUnlimited;
};

// OpenMetrics text (version 1.0.0), for Prometheus and what else reads it. Serve it as application/openmetrics-text;
// version=1.0.0; charset=utf-8.
ASHLAR_EXPORT std::string OpenMetrics(absl::Span<const MetricsSource> sources);

}  // namespace ashlar

#endif  // ASHLAR_STATISTICS_H_
