#include "ashlar/statistics.h"

#include "allocator/core/memory_stats.h"
#include "allocator/core/open_metrics.h"

namespace ashlar {

std::vector<std::pair<std::string, std::int64_t>> TorchStatistics(const Stats& stats, const Options& options) {
  return core::MemoryStats(stats, options);
}

std::string OpenMetrics(absl::Span<const MetricsSource> sources) { return core::OpenMetricsText(sources); }

}  // namespace ashlar
