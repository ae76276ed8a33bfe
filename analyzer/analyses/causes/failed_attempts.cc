#include "analyzer/analyses/causes/failed_attempts.h"

#include <algorithm>

#include "analyzer/analyses/causes/torch_frames.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

// The end of the last whole step before an event.
EventIndex LastStepEnd(const Steps& steps, EventIndex before) {
  EventIndex out = 0;
  for (const EventRange& step : steps.steps) {
    if (step.end <= before) out = std::max(out, step.end);
  }
  return out;
}

// Blocks are in the order of their allocation.
std::size_t FirstFrom(const timeline::Timeline& timeline, EventIndex event) {
  const auto blocks = timeline.blocks();
  const auto at = std::lower_bound(blocks.begin(), blocks.end(), event,
                                   [](const BlockSpan& block, EventIndex e) { return block.alloc_event < e; });
  return static_cast<std::size_t>(at - blocks.begin());
}

// The first block of a forward pass in a range; its end if there is none.
EventIndex PassBegins(const timeline::Timeline& timeline, const TorchStacks& frames, EventRange range) {
  const auto blocks = timeline.blocks();
  for (std::size_t i = FirstFrom(timeline, range.begin); i < blocks.size(); ++i) {
    if (blocks[i].alloc_event >= range.end) break;
    if (frames.Of(blocks[i].stack).is_forward) return blocks[i].alloc_event;
  }
  return range.end;
}

}  // namespace

std::vector<std::size_t> BlocksOfFailedAttempts(const timeline::Timeline& timeline, EventIndex moment,
                                                const trace::StackTable* stacks, const Steps& steps) {
  std::vector<std::size_t> out;
  if (stacks == nullptr || timeline.oom_events().size() < 2) return out;
  const TorchStacks frames(timeline, stacks);
  EventIndex before = 0;
  for (const EventIndex failure : timeline.oom_events()) {
    if (failure >= moment) break;
    const EventIndex begin = PassBegins(timeline, frames, {std::max(before, LastStepEnd(steps, failure)), failure});
    for (std::size_t i = FirstFrom(timeline, begin); i < FirstFrom(timeline, failure); ++i) {
      if (timeline.blocks()[i].IsLiveAfter(moment)) out.push_back(i);
    }
    before = failure + 1;
  }
  return out;
}

}  // namespace ashlar::analyses
