// Quick packings: one buffer after another, each at the lowest offset that those placed before leave free.
#ifndef ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_GREEDY_H_
#define ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_GREEDY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/lifetime.h"

namespace ashlar::analyses {

struct GreedyPacking {
  std::vector<std::uint64_t> offsets = {};
  std::uint64_t height = 0;
};

// In order of time, each into the smallest hole that serves it: what a perfect best fit without segments would do.
// O(n log n).
GreedyPacking PackInTimeOrder(absl::Span<const trace::Lifetime> buffers);

// Tries the largest area, size and length first, then moves what lies above `target` to the front and tries again,
// until the target is reached or about `max_pairs` pairs of buffers alive together were looked at; not at all where
// one pass would cost more.
GreedyPacking PackByPriority(absl::Span<const trace::Lifetime> buffers, std::uint64_t target, std::uint64_t max_pairs);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_GREEDY_H_
