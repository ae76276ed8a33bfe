// Makes a placement plan (allocator/policy/placement_plan.h) of a run's requests: the tree of what each lane asks
// for, and an offset for each, packed so that no two blocks that were in use together overlap. What lives across steps
// is packed with what each step makes: a request of a step has one offset, free in all the steps of the run (or a few,
// where its block outlives the next step's).
//
//   MadePlan made = MakePlan(lanes, step_begins, {});
//   made.plan.lanes[0].arena_bytes
#ifndef ASHLAR_ANALYZER_ANALYSES_PLAN_MAKE_PLAN_H_
#define ASHLAR_ANALYZER_ANALYSES_PLAN_MAKE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "allocator/policy/placement_plan.h"
#include "analyzer/analyses/packing/packing.h"
#include "analyzer/analyses/plan/lane_requests.h"

namespace ashlar::analyses {

struct PlannedLane {
  Stream stream{};
  PoolId pool = {};
  bool is_small = false;
  std::uint64_t requests = 0;  // of the run
  std::uint64_t planned = 0;   // of those, that the plan places
  std::uint64_t prologue = 0;  // planned requests before the first step
  std::uint64_t step_kinds = 0;
  std::uint64_t lower_bound = 0;  // the most that they use at one time
  std::uint64_t arena_bytes = 0;
};

struct MadePlan {
  policy::PlacementPlan plan = {};
  std::vector<PlannedLane> lanes = {};  // as in the plan
  std::uint64_t search_steps = 0;
};

// What of a run gets places.
struct PlanScope {
  // Only what is asked for before the first step, or is in use after its step: the rest lies where the rules say.
  bool lasting_only = false;
  std::vector<bool> left_out = {};  // by number of the step: the plan is made without it; empty: of all steps
};

// In the order of the lanes. `step_begins` as for MakePlanTree.
MadePlan MakePlan(absl::Span<const LaneRequests> lanes, absl::Span<const std::int64_t> step_begins,
                  const PackOptions& options, const PlanScope& scope = {});

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PLAN_MAKE_PLAN_H_
