// The statistics as OpenMetrics text (version 1.0.0), for Prometheus and what else reads it:
//
//   # TYPE ashlar_allocated_bytes gauge
//   # UNIT ashlar_allocated_bytes bytes
//   # HELP ashlar_allocated_bytes Bytes of the blocks handed out and not freed yet.
//   ashlar_allocated_bytes{device="0",pool="all"} 314572800
//   ...
//   # EOF
//
// For each statistic of memory_stats.h its current value, its peak since the start (..._peak...), and the sums of its
// increases and decreases as counters. Pools are "all", "small" and "large"; peaks of "all" are no sum of the others'.
// Serve it as application/openmetrics-text; version=1.0.0; charset=utf-8.
#ifndef ASHLAR_ALLOCATOR_CORE_OPEN_METRICS_H_
#define ASHLAR_ALLOCATOR_CORE_OPEN_METRICS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "allocator/core/stats.h"
#include "allocator/policy/options.h"

namespace ashlar::core {

using ashlar::MetricsSource;

std::string OpenMetricsText(absl::Span<const MetricsSource> sources);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_OPEN_METRICS_H_
