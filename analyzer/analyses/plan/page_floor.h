// What a run needs at least where memory comes in pages and no page holds blocks of two lanes: the most, at one time,
// of the sum of each lane's bytes in use, rounded up to pages. A stream's pages serve no other stream, and small blocks
// lie apart from large ones, so a run of many streams that hold little needs more than it holds, however well it is
// packed.
#ifndef ASHLAR_ANALYZER_ANALYSES_PLAN_PAGE_FLOOR_H_
#define ASHLAR_ANALYZER_ANALYSES_PLAN_PAGE_FLOOR_H_

#include <cstdint>

#include "absl/types/span.h"
#include "analyzer/analyses/plan/lane_requests.h"

namespace ashlar::analyses {

// Bytes. O(n log n).
std::uint64_t PageFloor(absl::Span<const LaneRequests> lanes, std::uint64_t page_bytes);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PLAN_PAGE_FLOOR_H_
