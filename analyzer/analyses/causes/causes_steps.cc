// Causes that show from step to step, and between ranks.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

constexpr double kLeastSpread = 0.05;  // between ranks, of the median peak
constexpr std::size_t kLeastGradients = 4;

// Where the pass of the moment began: its forward phase, or the backward phase of its optimizer step.
EventIndex PassBegin(const Steps& steps, EventIndex moment) {
  EventIndex out = 0;
  for (const Phase& phase : steps.phases) {
    const bool is_pass =
        phase.name == ProgramPartName(ProgramPart::kForward) || phase.name == ProgramPartName(ProgramPart::kBackward);
    if (is_pass && phase.events.begin <= moment) out = std::max(out, phase.events.begin);
  }
  return out;
}

// Backward phases up to the moment that no optimizer phase followed.
std::size_t MicroSteps(const Steps& steps, EventIndex moment) {
  std::size_t out = 0;
  for (const Phase& phase : steps.phases) {
    if (phase.events.begin > moment) break;
    if (phase.name == ProgramPartName(ProgramPart::kOptimizer)) out = 0;
    if (phase.name == ProgramPartName(ProgramPart::kBackward)) ++out;
  }
  return out;
}

}  // namespace

CauseFinding DetectGraphKeptAlive(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kGraphKeptAlive;
  if (context.history->steps.steps.size() < 4) {
    return NotInTrace(kKind, "four whole steps would tell: record a longer window");
  }
  std::set<trace::StackId> leaking;
  for (const Leak& leak : context.history->steps.leaks) leaking.insert(leak.stack);
  const std::optional<std::size_t> now = StepAt(context.history->steps, context.history->moment);
  const EventIndex before =
      now.has_value() ? context.history->steps.steps[*now].begin : context.history->steps.steps.back().begin;
  std::vector<LiveBlock> kept;
  std::set<trace::StackId> forward;
  for (const LiveBlock& live : LiveBlocks(context)) {
    const bool is_other = live.part == ProgramPart::kEvaluation || live.part == ProgramPart::kNoGrad ||
                          live.part == ProgramPart::kGeneration || live.part == ProgramPart::kOptimizer;
    if (is_other || leaking.count(live.block->stack) == 0) continue;
    if (live.block->alloc_event < context.history->steps.steps.front().begin || live.block->alloc_event >= before)
      continue;
    kept.push_back(live);
    if (live.part == ProgramPart::kForward) forward.insert(live.block->stack);
  }
  const std::uint64_t bytes = BytesOf(kept);
  if (!IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("older steps have left ", FormatBytes(bytes), " behind"));
  }
  Confidence confidence = Confidence::kPossible;
  if (!forward.empty()) confidence = forward.size() >= 2 ? Confidence::kProven : Confidence::kLikely;
  CauseFinding out = Found(kKind, confidence, bytes);
  out.stacks = StacksOf(kept);
  out.evidence.push_back(absl::StrCat("older steps have left ", FormatBytes(bytes), " behind in ", kept.size(),
                                      " blocks; ", MostFrom(context, kept)));
  if (!forward.empty()) {
    out.evidence.push_back(absl::StrCat(forward.size(), " of the stacks are of a forward pass, step after step"));
  } else {
    out.counter_evidence.push_back("no stack names a forward pass: it may be something else that the program collects");
  }
  return out;
}

CauseFinding DetectGradientsKept(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kGradientsKept;
  const EventIndex pass = PassBegin(context.history->steps, context.history->moment);
  std::vector<LiveBlock> gradients;
  for (const LiveBlock& live : LiveBlocks(context)) {
    if (live.part == ProgramPart::kBackward && live.block->alloc_event < pass) gradients.push_back(live);
  }
  const std::uint64_t bytes = BytesOf(gradients);
  if (gradients.size() < kLeastGradients || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("of earlier backward passes ", FormatBytes(bytes), " are alive"));
  }
  const std::size_t micro_steps = MicroSteps(context.history->steps, context.history->moment);
  CauseFinding out = Found(kKind, micro_steps >= 2 ? Confidence::kProven : Confidence::kLikely, bytes);
  out.stacks = StacksOf(gradients);
  out.evidence.push_back(absl::StrCat(FormatBytes(bytes), " in ", gradients.size(),
                                      " blocks come from an earlier backward pass and are still alive"));
  if (micro_steps >= 2) {
    out.evidence.push_back(absl::StrCat(micro_steps,
                                        " backward passes since the last optimizer step: gradients are "
                                        "accumulated over micro-steps"));
  } else {
    out.evidence.push_back("they live through the forward pass: zero_grad(set_to_none=True) before it would free them");
  }
  return out;
}

CauseFinding DetectRankImbalance(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kRankImbalance;
  if (context.device.ranks.size() < 2) {
    return NotInTrace(kKind, "the snapshots of several ranks would tell: one file is one process");
  }
  std::vector<RankPeak> ranks(context.device.ranks.begin(), context.device.ranks.end());
  std::sort(ranks.begin(), ranks.end(), [](const RankPeak& a, const RankPeak& b) {
    return std::pair(a.allocated_bytes, a.rank) < std::pair(b.allocated_bytes, b.rank);
  });
  const std::uint64_t median = ranks[(ranks.size() - 1) / 2].allocated_bytes;
  const std::uint64_t bytes = ranks.back().allocated_bytes - median;
  const std::string share = ShareText(bytes, median);
  if (static_cast<double>(bytes) < kLeastSpread * static_cast<double>(median) || bytes < kLeastMaterialBytes) {
    return Absent(kKind, absl::StrCat("the highest of ", ranks.size(), " ranks peaks ", share, " above the median"));
  }
  CauseFinding out = Found(kKind, Confidence::kProven, bytes);
  out.evidence.push_back(absl::StrCat("rank ", ranks.back().rank, " peaks at ",
                                      FormatBytes(ranks.back().allocated_bytes), " allocated, ", FormatBytes(bytes),
                                      " (", share, ") above the median of ", ranks.size(), " ranks"));
  return out;
}

}  // namespace ashlar::analyses
