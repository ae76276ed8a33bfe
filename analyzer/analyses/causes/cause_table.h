// The table of causes: one row each, beside its detector in the causes_*.cc of its theme.
//
// To add a cause: its kind in cause.h, and in the causes_*.cc of its theme its detector and its row. A detector sees
// what its row says that it needs: where that is missing, FindCauses answers kNotInTrace by itself.
//
//   CauseFinding DetectRounding(const CauseContext& context) {
//     if (!IsMaterial(context, bytes)) return Absent(CauseKind::kRounding, "rounding takes 0.4 %");
//     CauseFinding out = Found(CauseKind::kRounding, Confidence::kLikely, bytes);
//     out.evidence.push_back(...);
//     return out;
//   }
//
// What lies in the program goes by the parts that the stacks name (steps/program_part.h), by its steps and by
// lifetimes; a program whose names say nothing raises no alarm.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_TABLE_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_TABLE_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/changes/program_changes.h"

namespace ashlar::analyses {

// What a detector cannot do without.
enum class CauseNeeds : std::uint8_t {
  kAnything,  // looks for itself
  kState,     // a history
  kEvents,    // and allocations in its window
  kStacks,    // and stacks of them
};

// What a cause says of holes.
enum class CauseHoles : std::uint8_t {
  kNothing,
  kMade,  // where they come from
  kSeen,  // that there are some, and not where from: one that says that comes before it
};

struct CauseSpec {
  CauseKind kind;
  absl::string_view name;
  absl::string_view sentence;
  CauseNeeds needs;
  CauseFinding (*detect)(const CauseContext& context);
  std::array<CauseFix, 2> fixes = {};  // that a replay can make, in the order in which they are tried; kNone fills up
  const ProgramChange* change = nullptr;  // nullptr: nothing in the program is against it
  double curable_share = 1;               // of its bytes, what can go at all; `change` may save less
  CauseHoles holes = CauseHoles::kNothing;
  bool frees_nothing = false;  // its bytes are not what a cure frees, so they are never a trifle

  // Of its bytes, what its cure frees.
  double FreedShare() const { return change == nullptr ? curable_share : curable_share * change->saves_at_most; }
};

// In the order of CauseKind.
absl::Span<const CauseSpec> CauseTable();
const CauseSpec& SpecOf(CauseKind kind);

// The rows of each theme.
absl::Span<const CauseSpec> ActivationsCauses();  // what a pass keeps
absl::Span<const CauseSpec> CopiesCauses();       // several sets of the same weights
absl::Span<const CauseSpec> DeviceCauses();       // the device, what lies outside, limits, ranks
absl::Span<const CauseSpec> HistoryCauses();      // what happens over time
absl::Span<const CauseSpec> HolesCauses();        // holes behind blocks in use; pools and streams
absl::Span<const CauseSpec> LeaksCauses();        // what stays from step to step
absl::Span<const CauseSpec> LongLivedCauses();    // huge tensors from the setup on
absl::Span<const CauseSpec> OptimizerCauses();
absl::Span<const CauseSpec> PhasesCauses();  // beside the training
absl::Span<const CauseSpec> SettingsCauses();

// Parts of the detectors of CauseKind::kEvalAccumulates and kEvalWithoutNoGrad: causes_leaks.cc.
CauseFinding DetectEvalOutputs(const CauseContext& context);
CauseFinding DetectEvalGraphs(const CauseContext& context);  // by their owners alone

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_TABLE_H_
