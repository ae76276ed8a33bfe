#include "analyzer/analyses/state/active_blocks.h"

#include <algorithm>

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

}  // namespace ashlar::analyses
