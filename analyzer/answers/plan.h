// The answer of `ashlar plan`: where the blocks of a run go, and how small a device then serves it
// (docs/guide/plan.md).
#ifndef ASHLAR_ANALYZER_ANSWERS_PLAN_H_
#define ASHLAR_ANALYZER_ANSWERS_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/plan/make_plan.h"
#include "analyzer/answers/traced_run.h"
#include "analyzer/remedies/what_if.h"

namespace ashlar::answers {

// Replayed from an empty allocator.
struct MemoryNeed {
  std::uint64_t peak_reserved_bytes = 0;               // in memory that does not run out
  std::optional<std::uint64_t> smallest_device_bytes;  // that serves every request; nullopt: not looked for
};

struct PlanAnswer {
  std::string input;
  std::string source;
  std::string output = {};  // the plan's file
  std::uint64_t steps = 0;
  std::uint64_t peak_allocated_bytes = 0;
  // The most that its streams and pools hold at one time in whole pages, small blocks apart from large ones: no
  // allocator of plain segments needs less (analyses/plan/page_floor.h).
  std::uint64_t page_floor_bytes = 0;
  MemoryNeed without = {};  // under the settings of the trace
  MemoryNeed with = {};     // under the plan beside them
  std::vector<trace::Note> notes = {};
  analyses::MadePlan made = {};

  // Of the smallest device: what of it is allocated at the peak. 0 where it was not looked for.
  double Utilisation(const MemoryNeed& need) const;
};

// FailedPrecondition where the trace has no requests, or none that a plan places.
absl::StatusOr<PlanAnswer> PlanOfTrace(std::string input, const TracedRun& run, std::uint64_t max_steps,
                                       const remedies::Progress& progress = {});

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PLAN_H_
