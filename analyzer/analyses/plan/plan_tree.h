// The tree of a lane's requests, as a plan has it: the prologue, and each kind of step once.
#ifndef ASHLAR_ANALYZER_ANALYSES_PLAN_PLAN_TREE_H_
#define ASHLAR_ANALYZER_ANALYSES_PLAN_PLAN_TREE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "allocator/policy/placement_plan.h"
#include "analyzer/analyses/plan/lane_requests.h"

namespace ashlar::analyses {

struct PlanTree {
  policy::LanePlan lane = {};
  std::uint64_t step_kinds = 0;
};

// `step_begins`: positions in the trace at which a step begins, ascending; what comes before the first is the prologue.
// Empty: all is prologue. `left_out`: by number of the step, whether the tree is made without it; empty: of all.
PlanTree MakePlanTree(absl::Span<const LaneRequest> requests, absl::Span<const std::int64_t> step_begins,
                      const std::vector<bool>& left_out = {});

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PLAN_PLAN_TREE_H_
