// The blocks in use (live or pending) at one moment as indices in Timeline::blocks(), by ascending address: the order
// in which Timeline::StateAt lists them, segment by segment. For analyses that need what a state leaves out: when a
// block was allocated, which one it is.
//
//   const std::vector<std::size_t> active = ActiveBlocks(timeline, moment);
//   std::size_t at = 0;
//   for (const timeline::StateSegment& segment : timeline.StateAt(moment).segments)
//     for (const timeline::StateBlock& block : segment.blocks) Use(block, timeline.blocks()[active[at++]]);
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_ACTIVE_BLOCKS_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_ACTIVE_BLOCKS_H_

#include <cstddef>
#include <vector>

#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

std::vector<std::size_t> ActiveBlocks(const timeline::Timeline& timeline, timeline::EventIndex moment);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_ACTIVE_BLOCKS_H_
