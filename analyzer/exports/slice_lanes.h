// Slices laid on lanes so that those of one lane nest or lie apart, as a track of a trace viewer needs them.
//
//   |---- a ----|  |-- c --|        lane 0
//        |----- b -----|            lane 1: overlaps a and c
//
//   std::vector<std::size_t> lanes = LanesOf(slices, /*may_nest=*/false);
#ifndef ASHLAR_ANALYZER_EXPORTS_SLICE_LANES_H_
#define ASHLAR_ANALYZER_EXPORTS_SLICE_LANES_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::exports {

struct LaneSlice {
  timeline::EventIndex begin = 0;
  timeline::EventIndex end = 0;  // not before begin
};

// The lane of each: the first that has room, longer slices first where they begin together. O(n lanes).
std::vector<std::size_t> LanesOf(absl::Span<const LaneSlice> slices, bool may_nest);

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_SLICE_LANES_H_
