// Which plan of a run is worth following. Where steps differ from one to the next, what fits the run may need more than
// no plan in another run, so a plan is taken that needs no more than none, in the run itself and in runs of steps that
// it was not made of: one of all that the run asks for, else one of what outlives its step.
//
//   std::optional<PlanChoice> choice = ChoosePlan({requests, settings, lanes, step_begins, max_steps});
#ifndef ASHLAR_ANALYZER_WHATIF_PLAN_CHOICE_H_
#define ASHLAR_ANALYZER_WHATIF_PLAN_CHOICE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/policy/options.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/plan/make_plan.h"

namespace ashlar::whatif {

// Which requests a run makes, lane by lane, and how long each block is in use: what a plan is made of.

// By order of the lanes' first request. The requests are replayed in memory that does not run out, under the
// options: frees that wait for other streams complete as they do there.
absl::StatusOr<std::vector<analyses::LaneRequests>> LaneRequestsOf(const trace::RequestTrace& trace,
                                                                   const policy::Options& options);

// The smallest device that serves every request of a run, by halving to a page of 2 MiB. Each try replays the run from
// an empty allocator.
//
//   MemoryNeed need = NeedOf(requests, options, peak_bytes);
//   need.Bytes()
struct MemoryNeed {
  std::uint64_t peak_reserved_bytes = 0;               // in memory that does not run out
  std::optional<std::uint64_t> smallest_device_bytes;  // that serves every request; nullopt: not looked for

  std::uint64_t Bytes() const { return smallest_device_bytes.value_or(peak_reserved_bytes); }
};

struct ServedRun {
  std::uint64_t peak_reserved_bytes = 0;
  std::uint64_t peak_active_bytes = 0;
};

// nullopt where a request failed.
std::optional<ServedRun> Served(const trace::RequestTrace& requests, const policy::Options& options,
                                std::uint64_t capacity_bytes);

// Of traces of more than a million requests the smallest device is not looked for. No device below `least_bytes` is
// tried. 0 where the requests cannot be replayed.
MemoryNeed NeedOf(const trace::RequestTrace& requests, const policy::Options& options, std::uint64_t least_bytes);

// What a plan does to runs that it was not made of, told from one run: some of the run's steps are left out of the
// plan, and a run of those alone is replayed under it and without. So are six halves of the steps: each second one,
// each second pair and each second four, and the rest. The first step is in all of them, for it makes what stays.
//
//   steps      1   2   3   4   5   6   7   8
//   plan of    x       x       x       x            its run   1   2   4   6   8
//   plan of    x   x           x   x                its run   1   3   4   7   8

// The run without the steps that are not kept: what lives there, or into the next step, is not asked for. What lives
// longer stays where it was. `step_begins`: positions at which a step begins, ascending.
trace::RequestTrace OnlySteps(const trace::RequestTrace& requests, absl::Span<const std::int64_t> step_begins,
                              const std::vector<bool>& kept);

// Smallest devices with a plan, as parts of those without.
struct HeldOutSteps {
  std::uint64_t runs = 0;
  double mean = 0;
  double worst = 0;
};

// The settings with a plan that is made without some steps.
using PlanWithout = std::function<policy::Options(const std::vector<bool>& left_out)>;

// nullopt where there are fewer than two steps beside the first. Ends with the first run that needs more than without.
std::optional<HeldOutSteps> HoldOutSteps(const trace::RequestTrace& requests,
                                         absl::Span<const std::int64_t> step_begins, const policy::Options& without,
                                         const PlanWithout& plan_without);

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

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_PLAN_CHOICE_H_
