// The live blocks with the fewest bytes whose release makes room for a failed request. Private to the examination of
// failed requests; what is and is not covered is said there.
#ifndef ASHLAR_ANALYZER_ANALYSES_FAILURE_RELEASE_SET_H_
#define ASHLAR_ANALYZER_ANALYSES_FAILURE_RELEASE_SET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/analyses/failure/request_lane.h"

namespace ashlar::analyses {

// The cheapest items whose gains together reach a need (minimum knapsack cover): which segments to empty so that the
// device gets enough memory back, at the fewest bytes of live blocks.
//
//   CheapestCover({{.gain = 20, .cost = 3}, {.gain = 20, .cost = 5}, {.gain = 40, .cost = 7}}, 40)
//     -> items {2}, cost 7, lower_bound 7
//
// Exact by dynamic programming over the need in units of the gains' common divisor; where that table would be too large
// the best of several greedy covers, with the lower bound of the relaxed problem that may take parts of items. Gains
// and costs are bytes. Deterministic: among covers of equal cost the same one is found on every machine.
struct CoverItem {
  std::uint64_t gain = 0;
  std::uint64_t cost = 0;
};

struct Cover {
  std::vector<std::size_t> items = {};  // ascending indices
  std::uint64_t cost = 0;
  std::uint64_t lower_bound = 0;  // no cover costs less; equals cost where it was found exactly
};

// Cells of the exact table: about 50 ms and 2.5 MiB.
inline constexpr std::uint64_t kMostCoverCells = 20'000'000;

// nullopt when all items together do not reach `need`.
std::optional<Cover> CheapestCover(absl::Span<const CoverItem> items, std::uint64_t need,
                                   std::uint64_t most_cells = kMostCoverCells);

// What the device could give at the failure: known to the byte, or only that it was less than a segment (a limit).
struct DeviceRoom {
  std::uint64_t least_bytes = 0;
  std::uint64_t most_bytes = 0;
};

// `active` are the state's blocks as indices in Timeline::blocks(), in the state's order.
std::optional<ReleaseSet> FindReleaseSet(const RequestLane& lane, const timeline::State& state,
                                         absl::Span<const std::size_t> active, const DeviceRoom& room);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_FAILURE_RELEASE_SET_H_
