#include <utility>
#include <vector>

#include "analyzer/analyses/causes/cause.h"

namespace ashlar::analyses {
namespace {

std::optional<FailedRequest> FailureOf(const timeline::Timeline& timeline, const policy::Options* options) {
  if (timeline.oom_events().empty() || options == nullptr) return std::nullopt;
  return ExamineFailure(timeline, timeline.oom_events().back(), *options);
}

}  // namespace

timeline::EventIndex MomentOf(const timeline::Timeline& timeline) {
  if (!timeline.oom_events().empty()) return timeline.oom_events().back();
  return timeline.event_count() == 0 ? timeline::kBeforeWindow : timeline.allocated_peak().event;
}

CauseContext ContextOf(const timeline::Timeline& timeline, const CauseFacts& facts) {
  const timeline::EventIndex moment = MomentOf(timeline);
  Steps steps = FindSteps(timeline, facts.stacks, facts.annotations);
  std::vector<LeakGrowth> leaks = FindLeakGrowths(timeline, moment, facts.stacks, steps);
  return {.history = CauseHistory{.timeline = &timeline,
                                  .moment = moment,
                                  .state = timeline.StateAt(moment),
                                  .stacks = facts.stacks,
                                  .options = facts.options,
                                  .settings = facts.settings,
                                  .steps = std::move(steps),
                                  .leaks = std::move(leaks),
                                  .pins = BlamePins(timeline, moment),
                                  .failed = FailureOf(timeline, facts.options),
                                  .growths = AvoidableGrowths(
                                      timeline, facts.options != nullptr ? *facts.options : policy::Options{})},
          .device = facts.device};
}

}  // namespace ashlar::analyses
