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

// The first block of a forward pass in a range; its end if there is none.
EventIndex PassBegins(const timeline::Timeline& timeline, const TorchStacks& frames, EventRange range) {
  EventIndex out = range.end;
  for (const BlockSpan& block : timeline.blocks()) {
    const bool is_inside = range.begin <= block.alloc_event && block.alloc_event < range.end;
    if (is_inside && frames.Of(block.stack).is_forward) out = std::min(out, block.alloc_event);
  }
  return out;
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
    for (std::size_t i = 0; i < timeline.blocks().size(); ++i) {
      const BlockSpan& block = timeline.blocks()[i];
      if (begin <= block.alloc_event && block.alloc_event < failure && block.IsLiveAfter(moment)) out.push_back(i);
    }
    before = failure + 1;
  }
  return out;
}

}  // namespace ashlar::analyses
