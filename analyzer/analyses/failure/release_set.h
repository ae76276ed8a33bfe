// The live blocks with the fewest bytes whose release makes room for a failed request. Private to the examination of
// failed requests; what is and is not covered is said there.
#ifndef ASHLAR_ANALYZER_ANALYSES_FAILURE_RELEASE_SET_H_
#define ASHLAR_ANALYZER_ANALYSES_FAILURE_RELEASE_SET_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/analyses/failure/request_lane.h"

namespace ashlar::analyses {

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
