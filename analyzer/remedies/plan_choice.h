// Which plan of a run is worth following. Where steps differ from one to the next, what fits the run may need more than
// no plan in another run, so a plan is taken that needs no more than none, in the run itself and in runs of steps that
// it was not made of (held_out_steps.h): one of all that the run asks for, else one of what outlives its step.
//
//   std::optional<PlanChoice> choice = ChoosePlan({requests, settings, lanes, step_begins, max_steps});
#ifndef ASHLAR_ANALYZER_REMEDIES_PLAN_CHOICE_H_
#define ASHLAR_ANALYZER_REMEDIES_PLAN_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "allocator/policy/options.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/plan/lane_requests.h"
#include "analyzer/analyses/plan/make_plan.h"
#include "analyzer/remedies/device_need.h"
#include "analyzer/remedies/held_out_steps.h"

namespace ashlar::remedies {

// All of it outlives the choice.
struct PlannedRun {
  const trace::RequestTrace& requests;
  const policy::Options& settings;                 // without a plan
  absl::Span<const analyses::LaneRequests> lanes;  // of the requests
  absl::Span<const std::int64_t> step_begins;      // as for MakePlan
  std::uint64_t max_steps = 0;                     // of the search for a packing
  bool repeats = false;                            // runs that follow ask for the same: no step is held out
};

struct PlanChoice {
  analyses::MadePlan made = {};  // no lanes: no plan helps
  std::uint64_t peak_allocated_bytes = 0;
  MemoryNeed without = {};
  MemoryNeed with = {};
  std::optional<HeldOutSteps> held_out = {};  // of the last plan tried; nullopt: none could be held out, or none should
  bool lasting_only = false;                  // what its step frees has no place in the plan
};

// The settings beside a plan: plain segments, and PyTorch's policy.
policy::Options Following(const policy::Options& settings, const policy::PlacementPlan& plan);

// nullopt where the requests cannot be replayed.
std::optional<PlanChoice> ChoosePlan(const PlannedRun& run);

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_PLAN_CHOICE_H_
