#include "analyzer/analyses/causes/cause_context.h"

namespace ashlar::analyses {

timeline::EventIndex MomentOf(const timeline::Timeline& timeline) {
  if (!timeline.oom_events().empty()) return timeline.oom_events().back();
  return timeline.event_count() == 0 ? timeline::kBeforeWindow : timeline.allocated_peak().event;
}

namespace {

std::optional<FailedRequest> FailureOf(const timeline::Timeline& timeline, const policy::Options* options) {
  if (timeline.oom_events().empty() || options == nullptr) return std::nullopt;
  return ExamineFailure(timeline, timeline.oom_events().back(), *options);
}

}  // namespace

CauseContext::CauseContext(const timeline::Timeline& timeline, const CauseFacts& facts)
    : state_(timeline.StateAt(MomentOf(timeline))),
      pins_(BlamePins(timeline, MomentOf(timeline))),
      steps_(FindSteps(timeline, facts.stacks, facts.annotations)),
      growths_(AvoidableGrowths(timeline, facts.options != nullptr ? *facts.options : policy::Options{})),
      failed_(FailureOf(timeline, facts.options)),
      ranks_(facts.ranks) {
  input_.timeline = &timeline;
  input_.moment = MomentOf(timeline);
  input_.state = &state_;
  input_.stacks = facts.stacks;
  input_.options = facts.options;
  input_.settings = facts.settings;
  input_.total_bytes = facts.total_bytes;
  input_.device_used_bytes = facts.device_used_bytes;
  input_.pins = &pins_;
  input_.steps = &steps_;
  if (failed_.has_value()) input_.failed = &*failed_;
  input_.growths = growths_;
  input_.ranks = ranks_;
}

}  // namespace ashlar::analyses
