// Offline packing of lifetimes into one address range (dynamic storage allocation): who knows every request and every
// free in advance, how little memory does he need?
//
//   memory
//     ^   +-----+
//   8 |   |  2  +-----+        no offsets are lower than 8: at time 4 the buffers 1, 2 and 3 are all alive
//     | +-+-----+  3  |
//     | |    1  |     |        lower bound = greatest sum of sizes alive at one time  <=  optimum  <=  any packing
//     +-+-------+-----+--> time
//
// The packer is a search: it finds packings, and proves one optimal only where it meets the lower bound. Its offsets
// are the certificate, which CheckPacking verifies by other means. Everything counts steps, never time: the same input
// and effort give the same offsets on any machine. Sizes and offsets are bytes (or any other unit), times are event
// numbers; lifetimes are half-open.
#ifndef ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_H_
#define ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "allocator/trace/request.h"

namespace ashlar::analyses {

using trace::Lifetime;

// The greatest sum of sizes that are alive at one time. O(n log n).
std::uint64_t LiveLowerBound(absl::Span<const Lifetime> buffers);

struct Packing {
  std::vector<std::uint64_t> offsets = {};  // one a buffer
  std::uint64_t height = 0;                 // greatest offset + size
  std::uint64_t lower_bound = 0;
  std::uint64_t steps = 0;  // of the search

  bool IsOptimal() const { return height == lower_bound; }
};

struct PackOptions {
  // Search ends when this height is reached; nullopt: at the lower bound.
  std::optional<std::uint64_t> target_height = {};
  // A core of 2023 takes about three hundred million a second. The quick passes that come first are not counted.
  std::uint64_t max_steps = 1'000'000'000;
};

Packing Pack(absl::Span<const Lifetime> buffers, const PackOptions& options);

// Whether no two buffers alive at one time overlap and none ends above `height`; names the first two that do. Shares
// nothing with the packer. O(n log n).
absl::Status CheckPacking(absl::Span<const Lifetime> buffers, absl::Span<const std::uint64_t> offsets,
                          std::uint64_t height);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_H_
