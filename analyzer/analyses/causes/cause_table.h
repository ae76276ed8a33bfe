// The table of causes: one row each, in the order of CauseKind.
//
// To add a cause: its kind in cause.h, its detector declared here and defined in the causes_*.cc of its theme, its row
// in cause_table.cc. A detector sees what its row says that it needs: where that is missing, FindCauses answers
// kNotInTrace by itself.
//
//   CauseFinding DetectRounding(const CauseContext& context) {
//     if (!IsMaterial(context, bytes)) return Absent(CauseKind::kRounding, "rounding takes 0.4 %");
//     CauseFinding out = Found(CauseKind::kRounding, Confidence::kLikely, bytes);
//     out.evidence.push_back(...);
//     return out;
//   }
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_TABLE_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_TABLE_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "analyzer/analyses/causes/cause.h"

namespace ashlar::analyses {

// What a detector cannot do without.
enum class CauseNeeds : std::uint8_t {
  kAnything,  // looks for itself
  kState,     // a history
  kEvents,    // and allocations in its window
  kStacks,    // and stacks of them
};

struct CauseRow {
  CauseKind kind;
  absl::string_view name;
  absl::string_view sentence;
  CauseNeeds needs;
  CauseFinding (*detect)(const CauseContext& context);
  std::array<CauseFix, 2> fixes;
};

absl::Span<const CauseRow> CauseTable();

// --- the device's memory: causes_device.cc ---
CauseFinding DetectCapacity(const CauseContext& context);
// --- outside this allocator: causes_device.cc ---
CauseFinding DetectOtherProcess(const CauseContext& context);
CauseFinding DetectOtherRanksContexts(const CauseContext& context);
CauseFinding DetectWorkspaces(const CauseContext& context);
// --- a limit of its own: causes_device.cc ---
CauseFinding DetectMemoryFraction(const CauseContext& context);
// --- holes behind blocks in use: causes_holes.cc ---
CauseFinding DetectPinnedSegment(const CauseContext& context);
CauseFinding DetectSmallLargeSplit(const CauseContext& context);
CauseFinding DetectMediumRequests(const CauseContext& context);
// --- what happens over time: causes_history.cc ---
CauseFinding DetectGrowingSizes(const CauseContext& context);
CauseFinding DetectRecordStream(const CauseContext& context);
// --- pools and streams: causes_holes.cc ---
CauseFinding DetectStreamsDoNotShare(const CauseContext& context);
CauseFinding DetectPrivatePools(const CauseContext& context);
// --- settings: causes_settings.cc ---
CauseFinding DetectMaxSplitSize(const CauseContext& context);
CauseFinding DetectRounding(const CauseContext& context);
CauseFinding DetectNotExpandable(const CauseContext& context);

// What lies in the program goes by the parts that the stacks name (steps/program_part.h), by its steps and by
// lifetimes; a program whose names say nothing raises no alarm.
// --- what a pass keeps: causes_activations.cc ---
CauseFinding DetectActivationsSaved(const CauseContext& context);
CauseFinding DetectAttentionScores(const CauseContext& context);
CauseFinding DetectLogitsSpike(const CauseContext& context);
// --- what is there from the setup on: causes_copies.cc ---
CauseFinding DetectModelCopies(const CauseContext& context);
CauseFinding DetectLongLivedTensor(const CauseContext& context);
// --- the optimizer: causes_optimizer.cc ---
CauseFinding DetectOptimizerState(const CauseContext& context);
CauseFinding DetectOptimizerTemporaries(const CauseContext& context);
// --- from step to step: causes_leaks.cc, causes_history.cc ---
CauseFinding DetectRetryStorm(const CauseContext& context);
CauseFinding DetectGraphKeptAlive(const CauseContext& context);
CauseFinding DetectOutputsKept(const CauseContext& context);
CauseFinding DetectHooksKeepActivations(const CauseContext& context);
CauseFinding DetectKvCacheGrows(const CauseContext& context);
CauseFinding DetectEvalOutputs(const CauseContext& context);  // part of DetectEvalAccumulates
CauseFinding DetectGradientsKept(const CauseContext& context);
CauseFinding DetectExceptionHoldsFrames(const CauseContext& context);
CauseFinding DetectEmptyCacheEachStep(const CauseContext& context);
// --- between ranks: causes_device.cc ---
CauseFinding DetectRankImbalance(const CauseContext& context);
// --- beside the training: causes_phases.cc ---
CauseFinding DetectEvalWithoutNoGrad(const CauseContext& context);
CauseFinding DetectEvalAccumulates(const CauseContext& context);
CauseFinding DetectLoadedTwice(const CauseContext& context);
CauseFinding DetectCacheBetweenPhases(const CauseContext& context);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_TABLE_H_
