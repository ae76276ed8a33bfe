// Causes that show within one training step: logits, the optimizer's state and its temporaries.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

// Logits are seldom felt below this share of what is allocated: a vocabulary of 10,000 beside a 400 M model is 1 %.
constexpr double kLeastLogitsShare = 0.15;

bool IsLossFrame(const trace::Frame& frame) {
  static constexpr std::array<absl::string_view, 8> kWords = {
      "cross_entropy", "crossentropy", "log_softmax", "logsoftmax", "nll_loss", "nllloss", "lm_head", "logits"};
  const std::string name = absl::AsciiStrToLower(frame.function);
  return name == "loss" || name == "compute_loss" || name == "loss_fn" ||
         std::any_of(kWords.begin(), kWords.end(),
                     [&](absl::string_view word) { return absl::StrContains(name, word); });
}

bool IsForeachFrame(const trace::Frame& frame) {
  return absl::StartsWith(frame.function, "_multi_tensor_") || absl::StrContains(frame.function, "_foreach_");
}

template <typename Predicate>
std::vector<LiveBlock> SelectBlocks(const std::vector<LiveBlock>& blocks, Predicate predicate) {
  std::vector<LiveBlock> out;
  std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(out), predicate);
  return out;
}

// Begins of the optimizer's phases up to the moment.
std::vector<EventIndex> OptimizerPhases(const CauseContext& context) {
  std::vector<EventIndex> out;
  for (const Phase& phase : context.history->steps.phases) {
    if (phase.name == ProgramPartName(ProgramPart::kOptimizer) && phase.events.begin <= context.history->moment) {
      out.push_back(phase.events.begin);
    }
  }
  return out;
}

EventIndex FirstPhaseEnd(const CauseContext& context, EventIndex begin) {
  EventIndex out = begin;
  for (const Phase& phase : context.history->steps.phases) {
    if (phase.events.begin == begin) out = std::max(out, phase.events.end);
  }
  return out;
}

}  // namespace

CauseFinding DetectLogitsSpike(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kLogitsSpike;
  const std::vector<LiveBlock> loss = SelectBlocks(LiveBlocks(context), [&](const LiveBlock& live) {
    return live.block->alloc_event >= 0 && AnyFrame(context, live.block->stack, IsLossFrame);
  });
  const std::uint64_t bytes = BytesOf(loss);
  const std::uint64_t allocated = context.history->timeline->TotalsAfter(context.history->moment).allocated_bytes;
  const std::string share = ShareText(bytes, allocated);
  if (!IsMaterial(context, bytes) || static_cast<double>(bytes) < kLeastLogitsShare * static_cast<double>(allocated)) {
    return Absent(kKind, absl::StrCat("blocks of the language model's head and the loss hold ", FormatBytes(bytes),
                                      ", ", share, " of what is allocated"));
  }
  std::uint64_t largest = 0;
  for (const LiveBlock& live : loss) largest = std::max(largest, live.block->size_bytes);
  const auto alike = std::count_if(loss.begin(), loss.end(), [&](const LiveBlock& live) {
    return live.block->size_bytes == largest || 2 * live.block->size_bytes == largest;
  });
  CauseFinding out = Found(kKind, alike >= 2 ? Confidence::kLikely : Confidence::kPossible, bytes);
  out.stacks = StacksOf(loss);
  out.evidence.push_back(absl::StrCat("the head and the loss hold ", FormatBytes(bytes), ", ", share,
                                      " of what is allocated; ", MostFrom(context, loss)));
  out.evidence.push_back(
      absl::StrCat(alike, " live blocks are of the size of the logits, ", FormatBytes(largest), ", or half of it"));
  return out;
}

CauseFinding DetectOptimizerState(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kOptimizerState;
  const std::vector<EventIndex> phases = OptimizerPhases(context);
  if (phases.empty()) return Absent(kKind, "no optimizer step was recorded before that moment");
  if (phases.size() > 2) {
    return Absent(kKind, absl::StrCat("that moment comes after ", phases.size() - 1, " other optimizer steps"));
  }
  const EventIndex first_end = phases.size() > 1 ? phases[1] : timeline::kNever;
  std::uint64_t older = 0;
  const std::vector<LiveBlock> state = SelectBlocks(LiveBlocks(context), [&](const LiveBlock& live) {
    if (live.part != ProgramPart::kOptimizer) return false;
    if (live.block->alloc_event < 0) older += live.block->size_bytes;
    return live.block->alloc_event >= phases[0] && live.block->alloc_event < first_end &&
           live.block->free_requested_event == timeline::kNever &&
           !AnyFrame(context, live.block->stack, IsForeachFrame);
  });
  // A step that makes its state anew frees that of the step before: what is older than the window and goes meanwhile.
  std::uint64_t replaced = 0;
  for (const timeline::BlockSpan& block : context.history->timeline->blocks()) {
    const EventIndex freed = block.free_requested_event;
    if (block.alloc_event < 0 && freed >= phases[0] && freed < FirstPhaseEnd(context, phases[0]))
      replaced += block.size_bytes;
  }
  const std::uint64_t made = BytesOf(state);
  const std::uint64_t bytes = made - std::min(made, replaced);
  if (older > 0) {
    return Absent(kKind, absl::StrCat(FormatBytes(older), " of optimizer state are older than the recording"));
  }
  if (!IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("the first optimizer step keeps ", FormatBytes(bytes)));
  }
  const bool is_oom = ShortageAt(context).has_value();
  const bool is_inside =
      phases.size() == 1 && absl::EndsWith(PhaseOf(context.history->steps, context.history->moment), "optimizer");
  CauseFinding out = Found(kKind, is_oom && is_inside ? Confidence::kProven : Confidence::kLikely, bytes);
  out.stacks = StacksOf(state);
  out.evidence.push_back(absl::StrCat("the first optimizer step made ", FormatBytes(made), " in ", state.size(),
                                      " blocks that are never freed; ", MostFrom(context, state)));
  out.evidence.push_back(is_inside ? "that moment lies inside this first step"
                                   : "that moment lies in the step after it, the first that has the state");
  return out;
}

CauseFinding DetectOptimizerTemporaries(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kOptimizerTemporaries;
  const std::vector<LiveBlock> lists = SelectBlocks(LiveBlocks(context), [&](const LiveBlock& live) {
    const bool is_kept = live.block->free_requested_event == timeline::kNever && !ShortageAt(context).has_value();
    return live.part == ProgramPart::kOptimizer && live.block->alloc_event >= 0 && !is_kept &&
           AnyFrame(context, live.block->stack, IsForeachFrame);
  });
  const std::uint64_t bytes = BytesOf(lists);
  if (lists.size() < 2 || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("multi-tensor optimizer functions hold ", FormatBytes(bytes), " in temporaries"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.stacks = StacksOf(lists);
  out.evidence.push_back(absl::StrCat("multi-tensor optimizer functions hold ", FormatBytes(bytes), " in ",
                                      lists.size(), " temporaries at once; ", MostFrom(context, lists)));
  return out;
}

}  // namespace ashlar::analyses
