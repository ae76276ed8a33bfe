#include "analyzer/answers/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/plan/page_floor.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/remedies/lane_requests.h"
#include "analyzer/remedies/plan_choice.h"

namespace ashlar::answers {
namespace {

// The positions of the requests that the blocks of the timeline answer, by event. Blocks that stood there before the
// first event are asked for at the trace's beginning.
struct AnsweredRequest {
  timeline::EventIndex event = 0;
  std::int64_t position = 0;
};

std::vector<AnsweredRequest> AnsweredRequests(const TracedRun& run) {
  std::vector<std::pair<timeline::EventIndex, std::uint64_t>> blocks;
  for (const timeline::BlockSpan& block : run.timeline.blocks()) {
    if (block.alloc_event >= 0) blocks.emplace_back(block.alloc_event, block.AskedBytes());
  }
  std::sort(blocks.begin(), blocks.end());
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < run.requests.requests.size(); ++i) {
    if (run.requests.requests[i].kind == trace::OpKind::kAlloc) positions.push_back(static_cast<std::int64_t>(i));
  }
  if (positions.size() < blocks.size()) return {};
  const std::size_t before = positions.size() - blocks.size();
  std::vector<AnsweredRequest> out;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::int64_t position = positions[before + i];
    if (run.requests.requests[static_cast<std::size_t>(position)].bytes != blocks[i].second) return {};
    out.push_back({blocks[i].first, position});
  }
  return out;
}

// Where a step begins, and where the last of a row of steps ends, as positions in the requests.
std::vector<std::int64_t> StepBegins(const TracedRun& run, std::uint64_t& step_count) {
  const analyses::Steps steps = analyses::FindSteps(run.timeline, &run.stacks, run.annotations);
  const std::vector<AnsweredRequest> answered = AnsweredRequests(run);
  std::vector<std::int64_t> out;
  const auto add = [&](timeline::EventIndex event) {
    const auto at = std::lower_bound(answered.begin(), answered.end(), event,
                                     [](const AnsweredRequest& of, timeline::EventIndex e) { return of.event < e; });
    if (at != answered.end() && (out.empty() || at->position > out.back())) out.push_back(at->position);
  };
  for (const analyses::EventRange& step : steps.steps) {
    add(step.begin);
    add(step.end);
  }
  step_count = answered.empty() ? 0 : steps.steps.size();
  return out;
}

std::uint64_t BlocksBefore(const timeline::Timeline& timeline) {
  const auto& blocks = timeline.blocks();
  return static_cast<std::uint64_t>(std::count_if(blocks.begin(), blocks.end(), [](const timeline::BlockSpan& block) {
    return block.alloc_event == timeline::kBeforeWindow;
  }));
}

absl::Status NoPlanHelps(const PlanAnswer& answer) {
  if (!answer.held_out.has_value()) {
    return absl::FailedPreconditionError("without a plan it needs as little memory as with one");
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("its steps differ, and steps that a plan was not made of need %.1f %% more with it than without; "
                      "--repeats plans it for runs that ask for the same, and for others there is policy:ashlar",
                      (answer.held_out->worst - 1) * 100));
}

}  // namespace

double PlanAnswer::Utilisation(const remedies::MemoryNeed& need) const {
  const std::uint64_t bytes = need.smallest_device_bytes.value_or(0);
  return bytes == 0 ? 0 : static_cast<double>(peak_allocated_bytes) / static_cast<double>(bytes);
}

absl::StatusOr<PlanAnswer> PlanOfTrace(std::string input, const TracedRun& run, const PlanSearch& search,
                                       const remedies::Progress& progress) {
  if (run.requests.requests.empty()) {
    return absl::FailedPreconditionError("it has no requests of an allocator, and a plan is made of those");
  }
  PlanAnswer out;
  out.input = std::move(input);
  out.source = run.source;
  const policy::Options plain = remedies::Following(run.options, {});
  const absl::StatusOr<std::vector<analyses::LaneRequests>> lanes = remedies::LaneRequestsOf(run.requests, plain);
  if (!lanes.ok()) return lanes.status();
  out.page_floor_bytes = analyses::PageFloor(*lanes, policy::kRoundLargeBytes);
  const std::vector<std::int64_t> begins = StepBegins(run, out.steps);
  if (progress) progress("packing, and looking for the smallest device");
  policy::Options settings = run.options;
  settings.plan = nullptr;
  const std::optional<remedies::PlanChoice> choice =
      remedies::ChoosePlan({run.requests, settings, *lanes, begins, search.max_steps, search.repeats});
  if (!choice.has_value()) return absl::FailedPreconditionError("its requests cannot be replayed");
  static_cast<remedies::PlanChoice&>(out) = *choice;
  if (out.made.lanes.empty()) return NoPlanHelps(out);
  out.made.plan.made_of = out.source;
  out.notes = NotesOfSettings(run.options);
  if (out.lasting_only) {
    out.notes.push_back({"lasting_only", "its steps differ: only what outlives its step has a place in the plan", 1});
  }
  if (!out.with.smallest_device_bytes.has_value()) {
    out.notes.push_back({"device_not_searched", "the trace is long: the smallest device was not looked for", 1});
  }
  if (const std::uint64_t before = BlocksBefore(run.timeline); before > 0) {
    out.notes.push_back(
        {"starts_warm",
         "blocks that were there before the trace begins: what came before is not in the plan, so record "
         "the run from its start (dry-run --history N)",
         before});
  }
  if (begins.empty()) {
    out.notes.push_back({"no_steps", "no steps were found: the plan is of the whole run, once", 1});
  }
  return out;
}

}  // namespace ashlar::answers
