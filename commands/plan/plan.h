// The answer of `ashlar plan`: where the blocks of a run go, and how small a device then serves it
// (docs/guide/plan.md).
#ifndef ASHLAR_COMMANDS_PLAN_PLAN_H_
#define ASHLAR_COMMANDS_PLAN_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/whatif/plan_choice.h"
#include "analyzer/whatif/what_if.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {

struct PlanSearch {
  std::uint64_t max_steps = 0;  // of a packing
  // The runs that follow the plan ask for what this one asks for, and no more: no step is held out.
  bool repeats = false;
};

struct PlanAnswer : whatif::PlanChoice {
  std::string input = {};
  std::string source = {};
  std::string output = {};  // the plan's file
  std::uint64_t steps = 0;
  // The most that its streams and pools hold at one time in whole pages, small blocks apart from large ones: no
  // allocator of plain segments needs less (analyses/plan/make_plan.h).
  std::uint64_t page_floor_bytes = 0;
  std::vector<trace::Note> notes = {};

  // Of the smallest device: what of it is allocated at the peak. 0 where it was not looked for.
  double Utilisation(const whatif::MemoryNeed& need) const;
};

// FailedPrecondition where the trace has no requests, or no plan helps: not the run itself, or not steps of it that the
// plan was not made of.
absl::StatusOr<PlanAnswer> PlanOfTrace(std::string input, const TracedRun& run, const PlanSearch& search,
                                       const whatif::Progress& progress = {});

}  // namespace ashlar::answers

namespace ashlar::report {

// The answer of `ashlar plan` as text, and as JSON by PlanSchema, which is docs/schemas/plan.schema.json.

std::string ToText(const answers::PlanAnswer& answer);
std::string ToJson(const answers::PlanAnswer& answer);
std::string PlanSchema();

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_PLAN_PLAN_H_
