// What a plan does to runs that it was not made of, told from one run: some of the run's steps are left out of the
// plan, and a run of those alone is replayed under it and without. So are six halves of the steps: each second one,
// each second pair and each second four, and the rest. The first step is in all of them, for it makes what stays.
//
//   steps      1   2   3   4   5   6   7   8
//   plan of    x       x       x       x            its run   1   2   4   6   8
//   plan of    x   x           x   x                its run   1   3   4   7   8
#ifndef ASHLAR_ANALYZER_REMEDIES_HELD_OUT_STEPS_H_
#define ASHLAR_ANALYZER_REMEDIES_HELD_OUT_STEPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "allocator/policy/options.h"
#include "allocator/trace/request.h"

namespace ashlar::remedies {

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

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_HELD_OUT_STEPS_H_
