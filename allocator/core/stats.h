// The statistics (ashlar/statistics.h), by the names that the allocator uses.
#ifndef ASHLAR_ALLOCATOR_CORE_STATS_H_
#define ASHLAR_ALLOCATOR_CORE_STATS_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/policy/options.h"
#include "ashlar/statistics.h"  // IWYU pragma: export

namespace ashlar::core {

using ashlar::PoolKind;
using ashlar::PoolStat;
using ashlar::Stat;
using ashlar::Stats;

// The changes of one served request in the statistics, as an array that can be added up. Blocks that wait for events
// are freed on the slow path; so here what is allocated is active.
//
//   Changes changes{};
//   changes[kBlocks] += 1;
//
// Units: counts and bytes as the names say. Plain values.

enum ChangeOf : std::uint8_t { kBlocks, kBlockBytes, kRequestedBytes, kSplitBlocks, kSplitBytes };
inline constexpr int kChangesOf = 5;
using Changes = std::array<std::int64_t, kChangesOf>;

// The allocator's statistics by the names of torch.cuda.memory_stats, so that a program that reads those reads these:
//
//   for (const auto& [name, value] : MemoryStats(allocator.stats(), allocator.options())) ...
//   active.all.allocated 4, active.all.current 2, ..., segment.small_pool.peak 1
//
// In the order of their names, as PyTorch gives them. Source of the names: torch/cuda/memory.py and
// torch/csrc/cuda/memory of PyTorch 2.6, and of its main branch of 2026 for num_oom_rejections. What they count:
// stats.h. Bytes where the name says so, else counts; max_split_size is bytes, -1 where there is none.

std::vector<std::pair<std::string, std::int64_t>> MemoryStats(const Stats& stats, const policy::Options& options);

// --- the tables behind it, which allocator/core/stats.cc prints in another form ---
struct PoolStatName {
  absl::string_view name;  // "allocated_bytes"
  absl::string_view help;  // for people: one sentence
  PoolStat Stats::*stat;
};
absl::Span<const PoolStatName> PoolStatNames();  // by name

struct SingleStatName {
  absl::string_view name;
  absl::string_view help;
  Stat Stats::*stat;
};
absl::Span<const SingleStatName> SingleStatNames();

struct CountName {
  absl::string_view name;
  absl::string_view help;
  std::uint64_t Stats::*count;
};
absl::Span<const CountName> CountNames();

// The statistics as OpenMetrics text (version 1.0.0), for Prometheus and what else reads it:
//
//   # TYPE ashlar_allocated_bytes gauge
//   # UNIT ashlar_allocated_bytes bytes
//   # HELP ashlar_allocated_bytes Bytes of the blocks handed out and not freed yet.
//   ashlar_allocated_bytes{device="0",pool="all"} 314572800
//   ...
//   # EOF
//
// For each statistic below its current value, its peak since the start (..._peak...), and the sums of its
// increases and decreases as counters. Pools are "all", "small" and "large"; peaks of "all" are no sum of the others'.
// Serve it as application/openmetrics-text; version=1.0.0; charset=utf-8.

using ashlar::MetricsSource;

std::string OpenMetricsText(absl::Span<const MetricsSource> sources);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_STATS_H_
