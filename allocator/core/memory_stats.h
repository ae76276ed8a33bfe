// The allocator's statistics by the names of torch.cuda.memory_stats, so that a program that reads those reads these:
//
//   for (const auto& [name, value] : MemoryStats(allocator.stats(), allocator.options())) ...
//   active.all.allocated 4, active.all.current 2, ..., segment.small_pool.peak 1
//
// In the order of their names, as PyTorch gives them. Source of the names: torch/cuda/memory.py and
// torch/csrc/cuda/memory of PyTorch 2.6, and of its main branch of 2026 for num_oom_rejections. What they count:
// stats.h. Bytes where the name says so, else counts; max_split_size is bytes, -1 where there is none.
#ifndef ASHLAR_ALLOCATOR_CORE_MEMORY_STATS_H_
#define ASHLAR_ALLOCATOR_CORE_MEMORY_STATS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/core/stats.h"
#include "allocator/policy/options.h"

namespace ashlar::core {

std::vector<std::pair<std::string, std::int64_t>> MemoryStats(const Stats& stats, const policy::Options& options);

// --- the tables behind it, which allocator/core/open_metrics.cc prints in another form ---

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

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_MEMORY_STATS_H_
