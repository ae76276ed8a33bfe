#include "analyzer/remedies/plan_choice.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "analyzer/replay/ample_memory.h"

namespace ashlar::remedies {
namespace {

// Small blocks follow a plan where that saves more than a part in so many of the device.
constexpr std::uint64_t kLeastGain = 256;
// A plan that is only tried is packed in less time.
constexpr std::uint64_t kPartOfSteps = 8;

// The plan's lanes of large blocks alone: small ones keep the fast path.
analyses::MadePlan OfLargeBlocks(const analyses::MadePlan& made) {
  analyses::MadePlan out{{}, {}, made.search_steps};
  for (std::size_t i = 0; i < made.lanes.size(); ++i) {
    if (made.lanes[i].is_small) continue;
    out.lanes.push_back(made.lanes[i]);
    out.plan.lanes.push_back(made.plan.lanes[i]);
  }
  return out;
}

analyses::MadePlan Make(const PlannedRun& run, const analyses::PlanScope& scope) {
  const std::uint64_t max_steps = scope.left_out.empty() ? run.max_steps : run.max_steps / kPartOfSteps;
  return analyses::MakePlan(run.lanes, run.step_begins, {.target_height = {}, .max_steps = max_steps}, scope);
}

// Of all the plan's lanes and its large ones, those that need less; of nearly equals the fewest. Whether that is no
// more than without a plan.
bool HelpsItself(const PlannedRun& run, analyses::MadePlan made, PlanChoice& out) {
  const auto need_of = [&](const analyses::MadePlan& plan) {
    if (plan.lanes.empty()) return out.without;
    return NeedOf(run.requests, Following(run.settings, plan.plan), out.peak_allocated_bytes);
  };
  analyses::MadePlan large = OfLargeBlocks(made);
  out.with = need_of(large);
  if (large.lanes.size() < made.lanes.size()) {
    const MemoryNeed all = need_of(made);
    if (all.Bytes() + out.with.Bytes() / kLeastGain < out.with.Bytes()) {
      out.with = all;
      large = std::move(made);
    }
  }
  out.made = std::move(large);
  return !out.made.lanes.empty() && out.with.Bytes() <= out.without.Bytes();
}

bool HelpsOtherSteps(const PlannedRun& run, PlanChoice& out) {
  const bool has_small = std::any_of(out.made.lanes.begin(), out.made.lanes.end(),
                                     [](const analyses::PlannedLane& lane) { return lane.is_small; });
  std::vector<analyses::LaneRequests> lanes;
  for (const analyses::LaneRequests& lane : run.lanes) {
    if (has_small || !lane.is_small) lanes.push_back(lane);
  }
  PlannedRun part = run;
  part.lanes = lanes;
  const auto plan_without = [&](const std::vector<bool>& left_out) {
    return Following(run.settings, Make(part, {out.lasting_only, left_out}).plan);
  };
  out.held_out = HoldOutSteps(run.requests, run.step_begins, run.settings, plan_without);
  return !out.held_out.has_value() || out.held_out->worst <= 1;
}

}  // namespace

policy::Options Following(const policy::Options& settings, const policy::PlacementPlan& plan) {
  policy::Options out = settings;
  out.expandable_segments = false;
  out.policy = policy::Policy::kTorch;
  out.plan = plan.lanes.empty() ? nullptr : std::make_shared<const policy::PlacementPlan>(plan);
  return out;
}

std::optional<PlanChoice> ChoosePlan(const PlannedRun& run) {
  PlanChoice out;
  analyses::MadePlan all = Make(run, {});
  const std::optional<ServedRun> ample = Served(run.requests, Following(run.settings, {}), replay::kAmpleBytes);
  if (!ample.has_value()) return std::nullopt;
  // Blocks that nothing was split off from are larger than what was asked for: the plan's blocks are not.
  const std::optional<ServedRun> planned = Served(run.requests, Following(run.settings, all.plan), replay::kAmpleBytes);
  out.peak_allocated_bytes =
      std::min(ample->peak_active_bytes, planned.has_value() ? planned->peak_active_bytes : ample->peak_active_bytes);
  out.without = NeedOf(run.requests, run.settings, out.peak_allocated_bytes);
  const auto helps = [&](analyses::MadePlan made) {
    return HelpsItself(run, std::move(made), out) && (run.repeats || HelpsOtherSteps(run, out));
  };
  if (helps(std::move(all))) return out;
  out.lasting_only = !run.step_begins.empty();
  if (out.lasting_only && helps(Make(run, {.lasting_only = true}))) return out;
  out.made = {};
  return out;
}

}  // namespace ashlar::remedies
