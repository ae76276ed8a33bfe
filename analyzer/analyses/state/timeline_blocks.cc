#include "analyzer/analyses/state/timeline_blocks.h"

#include <algorithm>

#include "analyzer/analyses/packing/packing.h"

namespace ashlar::analyses {

std::vector<std::size_t> ActiveBlocks(const timeline::Timeline& timeline, timeline::EventIndex moment) {
  const auto blocks = timeline.blocks();
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].IsActiveAfter(moment)) active.push_back(i);
  }
  std::sort(active.begin(), active.end(),
            [&blocks](std::size_t a, std::size_t b) { return blocks[a].address < blocks[b].address; });
  return active;
}

BlockLifetimes LifetimesOf(const timeline::Timeline& timeline) {
  BlockLifetimes out;
  std::vector<trace::Lifetime> live;
  const timeline::EventIndex end = timeline.event_count();
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    const std::uint64_t size = block.AskedBytes();
    if (!block.requested_bytes.has_value()) ++out.unknown_requests;
    if (size == 0) continue;
    const timeline::EventIndex begin = block.alloc_event + 1;
    out.in_use.push_back({begin, std::min<timeline::EventIndex>(block.free_completed_event, end) + 1, size});
    live.push_back({begin, std::min<timeline::EventIndex>(block.free_requested_event, end) + 1, size});
    // A block that was pending when the window began was no longer needed.
    if (live.back().upper <= begin) live.pop_back();
  }
  out.live_bytes_peak = LiveLowerBound(live);
  return out;
}

}  // namespace ashlar::analyses
