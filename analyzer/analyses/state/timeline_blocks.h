// The blocks of a timeline at one moment, and their lifetimes.
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_TIMELINE_BLOCKS_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_TIMELINE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/trace/request.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// The blocks in use (live or pending) at one moment as indices in Timeline::blocks(), by ascending address: the order
// in which Timeline::StateAt lists them, segment by segment. For analyses that need what a state leaves out: when a
// block was allocated, which one it is.
//
//   const std::vector<std::size_t> active = ActiveBlocks(timeline, moment);
//   std::size_t at = 0;
//   for (const timeline::StateSegment& segment : timeline.StateAt(moment).segments)
//     for (const timeline::StateBlock& block : segment.blocks) Use(block, timeline.blocks()[active[at++]]);

std::vector<std::size_t> ActiveBlocks(const timeline::Timeline& timeline, timeline::EventIndex moment);

// The blocks of a timeline as lifetimes: from the event that allocated a block to the one that gave its memory back,
// counted so that 0 is before the first event. Sizes are what was requested, and block sizes where the trace does not
// say.
struct BlockLifetimes {
  std::vector<trace::Lifetime> in_use;  // until the free completed: what an allocator must work with
  std::uint64_t live_bytes_peak = 0;    // greatest sum until the free was requested: what the program needed
  std::uint64_t unknown_requests = 0;   // blocks that count with their block size
};

BlockLifetimes LifetimesOf(const timeline::Timeline& timeline);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_TIMELINE_BLOCKS_H_
