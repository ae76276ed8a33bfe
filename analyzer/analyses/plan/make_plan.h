// Makes a placement plan (allocator/policy/placement_plan.h) of a run's requests: the tree of what each lane asks
// for, and an offset for each, packed so that no two blocks that were in use together overlap. What lives across steps
// is packed with what each step makes: a request of a step has one offset, free in all the steps of the run (or a few,
// where its block outlives the next step's).
//
//   MadePlan made = MakePlan(lanes, step_begins, {});
//   made.plan.lanes[0].segment_bytes
#ifndef ASHLAR_ANALYZER_ANALYSES_PLAN_MAKE_PLAN_H_
#define ASHLAR_ANALYZER_ANALYSES_PLAN_MAKE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "allocator/base/units.h"
#include "allocator/policy/placement_plan.h"
#include "analyzer/analyses/packing/packing.h"

namespace ashlar::analyses {

// The requests of a run, as a plan sees them: by lane, each with the time that its block is in use, counted in requests
// of the trace. A lane is the large or the small blocks of one stream in one pool.
struct LaneRequest {
  std::int64_t begin = 0;        // position of the request in the trace
  std::int64_t end = 0;          // of the one before which its memory is free again; half-open
  std::uint64_t size_bytes = 0;  // rounded
};

struct LaneRequests {
  Stream stream{};
  PoolId pool = {};
  bool is_small = false;                   // of at most 1 MiB each, else of more
  std::vector<LaneRequest> requests = {};  // in order of begin
};

// What a run needs at least where memory comes in pages and no page holds blocks of two lanes: the most, at one time,
// of the sum of each lane's bytes in use, rounded up to pages. A stream's pages serve no other stream, and small blocks
// lie apart from large ones, so a run of many streams that hold little needs more than it holds, however well it is
// packed.

// Bytes. O(n log n).
std::uint64_t PageFloor(absl::Span<const LaneRequests> lanes, std::uint64_t page_bytes);

// The tree of a lane's requests, as a plan has it: the prologue, and each kind of step once.
struct PlanTree {
  policy::LanePlan lane = {};
  std::uint64_t step_kinds = 0;
};

// `step_begins`: positions in the trace at which a step begins, ascending; what comes before the first is the prologue.
// Empty: all is prologue. `left_out`: by number of the step, whether the tree is made without it; empty: of all.
PlanTree MakePlanTree(absl::Span<const LaneRequest> requests, absl::Span<const std::int64_t> step_begins,
                      const std::vector<bool>& left_out = {});

struct PlannedLane {
  Stream stream{};
  PoolId pool = {};
  bool is_small = false;
  std::uint64_t requests = 0;  // of the run
  std::uint64_t planned = 0;   // of those, that the plan places
  std::uint64_t prologue = 0;  // planned requests before the first step
  std::uint64_t step_kinds = 0;
  std::uint64_t lower_bound = 0;  // the most that they use at one time
  std::uint64_t segment_bytes = 0;
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
