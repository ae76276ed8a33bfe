// Causes that lie in what a pass forward keeps for its backward pass: activations, scores of attention, logits.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/activation_blocks.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/causes/program_memory.h"
#include "analyzer/analyses/holders/variables.h"
#include "analyzer/analyses/steps/program_part.h"

namespace ashlar::analyses {
namespace {

using Indices = std::vector<std::size_t>;

// Of what is allocated.
constexpr double kLeastActivationsShare = 0.3;
constexpr double kLeastScoresThatFit = 0.3;
constexpr double kLeastActiveOfFirstPass = 0.9;  // of what is reserved: where holes are more, they are what is wrong
// A pass that made so many times the blocks of the one before is not one pass: it repeats without a backward pass.
constexpr double kRepeatedPass = 2.5;

bool IsCheckpointedFrame(const trace::Frame& frame) {
  return absl::StrContains(frame.file, "torch/utils/checkpoint.py");
}

std::string MostOf(const CauseContext& context, const CauseFinding& finding) {
  if (finding.stacks.empty()) return "no line is known";
  std::uint64_t bytes = 0;
  for (const std::size_t index : finding.blocks) {
    const timeline::BlockSpan& block = context.history->timeline->blocks()[index];
    if (block.stack == finding.stacks.front()) bytes += block.size_bytes;
  }
  return absl::StrCat(FormatBytes(bytes), " of it from ", LabelOf(context, finding.stacks.front()));
}

// A loop of passes without a backward pass: what it keeps is not kept for one.
bool IsRepeatedPass(const ProgramMemory& memory) {
  const Pass& now = *memory.Current();
  const std::size_t at = static_cast<std::size_t>(&now - memory.passes().data());
  if (at == 0) return false;
  std::size_t most = 0;
  for (std::size_t i = 0; i < at; ++i) most = std::max(most, memory.passes()[i].forward_blocks);
  return static_cast<double>(now.forward_blocks) > kRepeatedPass * static_cast<double>(most);
}

// A program's first pass that failed before its backward pass, with few holes: it was to keep more, and how much more
// is not known. That the one request would have fitted without holes says nothing of the pass.
bool IsInFirstPass(const CauseContext& context, const ProgramMemory& memory) {
  const std::optional<Shortage> shortage = ShortageAt(context);
  const Pass& now = *memory.Current();
  const timeline::Totals& totals = context.history->timeline->TotalsAfter(context.history->moment);
  return shortage.has_value() && shortage->MissingBytes() > 0 && &now == &memory.passes().front() &&
         now.backward > context.history->moment &&
         IsShareOf(totals.active_bytes, kLeastActiveOfFirstPass, totals.reserved_bytes);
}

// Whole steps that begin in the pass.
std::size_t StepsInPass(const CauseContext& context, const Pass& pass) {
  const auto& steps = context.history->steps.steps;
  const timeline::EventIndex end = std::min(pass.backward, context.history->moment);
  return static_cast<std::size_t>(std::count_if(
      steps.begin(), steps.end(), [&](const EventRange& step) { return step.begin >= pass.begin && step.end <= end; }));
}

Indices Without(const Indices& all, Indices some) {
  std::sort(some.begin(), some.end());
  Indices out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&some](std::size_t index) { return !std::binary_search(some.begin(), some.end(), index); });
  return out;
}

std::uint64_t CheckpointedBytes(const CauseContext& context, const Indices& blocks) {
  std::uint64_t out = 0;
  for (const std::size_t index : blocks) {
    const timeline::BlockSpan& block = context.history->timeline->blocks()[index];
    if (block.stack != trace::kNoStack && AnyFrame(context, block.stack, IsCheckpointedFrame)) out += block.size_bytes;
  }
  return out;
}

// Whether an evaluation runs, and no graph has any of these blocks: it makes them and drops them.
bool IsOfEvaluation(const CauseContext& context, const Indices& blocks) {
  const HeldByName* const held = context.history->Owners();
  const timeline::EventIndex moment = context.history->moment;
  if (held == nullptr || moment < 0) return false;
  std::uint64_t in_eval = 0, all = 0;
  for (const std::size_t index : blocks) {
    const auto row = held->row_of.find(index);
    if (row == held->row_of.end()) continue;
    const trace::Holder& holder = held->rows[row->second].holder;
    if (RoleOf(holder) == OwnerRole::kGraph) return false;
    const std::uint64_t bytes = context.history->timeline->blocks()[index].size_bytes;
    all += bytes;
    in_eval += holder.mode == "eval" ? bytes : 0;
  }
  const ProgramParts parts(context.history->stacks);
  const trace::StackId at = context.history->timeline->events()[static_cast<std::size_t>(moment)].stack;
  return IsEvaluating(parts.Of(at)) || 2 * in_eval > all;
}

CauseFinding DetectActivationsSaved(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kActivationsSaved;
  const ProgramMemory memory(context);
  if (memory.Current() == nullptr) return Absent(kKind, "no pass forward was recorded before that moment");
  Indices others = FindAttentionScores(context, memory).blocks;
  const Indices logits = FindLogits(context, memory).blocks;
  others.insert(others.end(), logits.begin(), logits.end());
  const Indices failed = BlocksOfFailedAttempts(*context.history->timeline, context.history->moment,
                                                context.history->stacks, context.history->steps);
  others.insert(others.end(), failed.begin(), failed.end());  // an exception's, not this pass's
  const bool are_owners_known = context.history->Owners() != nullptr;
  const Indices piled = OwnedLeakBlocks(context);
  others.insert(others.end(), piled.begin(), piled.end());
  Indices saved = Without(memory.activations(), others);
  saved.insert(saved.end(), memory.recomputed().begin(), memory.recomputed().end());
  std::sort(saved.begin(), saved.end());
  const std::uint64_t bytes = memory.BytesOf(saved);
  const std::string sentence =
      absl::StrCat("the pass forward keeps ", FormatBytes(bytes), " in ", FormatCount(saved.size()), " blocks, ",
                   ShareText(bytes, AllocatedBytes(context)), " of what is allocated");
  if (!IsMaterial(context, bytes) || !IsShareOf(bytes, kLeastActivationsShare, AllocatedBytes(context))) {
    return Absent(kKind, sentence);
  }
  if (!IsShortOfMemory(context) && !IsInFirstPass(context, memory)) {
    return Absent(kKind,
                  absl::StrCat(sentence, ShortageAt(context).has_value() ? "; the request would have fitted beside it"
                                                                         : "; no request failed: a training needs it"));
  }
  if (IsOfEvaluation(context, saved)) {
    return Absent(kKind, absl::StrCat(sentence, "; no graph has any of it: an evaluation makes and drops it"));
  }
  const bool may_repeat = memory.IsOfInnerLoop() || are_owners_known;  // whose leaks are left out above
  if (!may_repeat && (IsRepeatedPass(memory) || StepsInPass(context, *memory.Current()) >= 2)) {
    return Absent(kKind, absl::StrCat(sentence, "; passes repeat without a backward pass that would use it"));
  }
  const std::uint64_t recomputed = memory.BytesOf(memory.recomputed());
  const std::uint64_t checkpointed = CheckpointedBytes(context, saved) - recomputed;
  const bool is_checkpointed = 2 * checkpointed > bytes;
  CauseFinding out = Found(kKind, is_checkpointed ? Confidence::kPossible : Confidence::kLikely, bytes);
  TakeBlocks(context, saved, out);
  if (!IsShortOfMemory(context)) out.yields_to_bytes = ShortageAt(context)->MissingBytes();
  if (2 * recomputed > bytes) {
    out.evidence.push_back(absl::StrCat("the backward pass runs what torch.utils.checkpoint spans again and keeps ",
                                        FormatBytes(recomputed), " of it at once, ",
                                        ShareText(recomputed, AllocatedBytes(context)),
                                        " of what is allocated: it spans too much; ", MostOf(context, out)));
    return out;
  }
  out.evidence.push_back(absl::StrCat(sentence, "; ", MostOf(context, out)));
  if (checkpointed == 0) {
    out.evidence.push_back("no stack of them goes through torch.utils.checkpoint");
  } else {
    out.counter_evidence.push_back(
        absl::StrCat(FormatBytes(checkpointed), " of it are made under torch.utils.checkpoint"));
  }
  return out;
}

// Whether PyTorch's scaled_dot_product_attention made a block: told by its own frames, by transformers' function that
// calls it, or by the line of the program.
bool IsOfFusedCall(const CauseContext& context, trace::StackId stack) {
  const trace::StackTable& stacks = *context.history->stacks;
  for (const trace::FrameId id : stacks.stack(stack)) {
    const trace::Frame& frame = stacks.frame(id);
    if (IsPythonFrame(frame)) {
      return frame.function == "sdpa_attention_forward" ||
             (context.device.calls_fused_attention && context.device.calls_fused_attention(frame));
    }
    if (absl::StrContains(frame.function, "scaled_dot_product_attention")) return true;
  }
  return false;
}

CauseFinding DetectAttentionScores(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kAttentionScores;
  const ProgramMemory memory(context);
  const AttentionScores scores = FindAttentionScores(context, memory);
  if (scores.blocks.empty()) return Absent(kKind, "no blocks that are felt grow with the square of the length");
  const std::uint64_t bytes = memory.BytesOf(scores.blocks);
  if (!ShortageAt(context).has_value() && !IsShareOf(bytes, kLeastScoresThatFit, AllocatedBytes(context))) {
    return Absent(kKind,
                  absl::StrCat("scores of attention hold ", FormatBytes(bytes), ", ",
                               ShareText(bytes, AllocatedBytes(context)), " of what is allocated; no request failed"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  TakeBlocks(context, scores.blocks, out);
  const std::uint64_t each = memory.RequestedBytes(scores.blocks.front());
  const bool are_alike = std::all_of(scores.blocks.begin(), scores.blocks.end(),
                                     [&](std::size_t index) { return memory.RequestedBytes(index) == each; });
  out.evidence.push_back(absl::StrCat(FormatCount(scores.blocks.size()), " blocks of ", FormatBytes(each),
                                      are_alike ? " each hold " : ", or of as many numbers, hold ", FormatBytes(bytes),
                                      ", ", ShareText(bytes, AllocatedBytes(context)), " of what is allocated; ",
                                      MostOf(context, out)));
  out.evidence.push_back(scores.proof);
  if (!out.stacks.empty() && IsOfFusedCall(context, out.stacks.front())) {
    out.change = &changes::kWhatFusedKernelsTake;
    out.evidence.push_back(
        "scaled_dot_product_attention made them: no fused kernel took the call, so PyTorch's plain one keeps its "
        "scores");
  }
  return out;
}

// Nothing of them is there yet: all of their bytes are the request's.
CauseFinding RequestedLogits(const CauseContext& context, const LogitBlocks& logits) {
  constexpr CauseKind kKind = CauseKind::kLogitsSpike;
  if (!IsMaterial(context, logits.request_bytes)) {
    return Absent(kKind, absl::StrCat("the request for the logits is of ", FormatBytes(logits.request_bytes)));
  }
  const trace::Event& failure = context.history->timeline->events()[static_cast<std::size_t>(context.history->moment)];
  CauseFinding out = Found(kKind, Confidence::kLikely, logits.request_bytes);
  if (failure.stack != trace::kNoStack) out.stacks.push_back(failure.stack);
  out.evidence.push_back(logits.proof);
  out.evidence.push_back(absl::StrCat("it is of ", FormatBytes(logits.request_bytes), ", beside ",
                                      FormatBytes(AllocatedBytes(context)), " that are allocated, in ",
                                      LabelOf(context, failure.stack)));
  const bool trains =
      std::any_of(context.history->timeline->blocks().begin(), context.history->timeline->blocks().end(),
                  [&](const timeline::BlockSpan& block) {
                    return block.stack != trace::kNoStack && AnyFrame(context, block.stack, IsBackwardFrame);
                  });
  if (!trains) out.change = &changes::kLogitsOfTheLast;
  return out;
}

CauseFinding DetectLogitsSpike(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kLogitsSpike;
  const ProgramMemory memory(context);
  const LogitBlocks logits = FindLogits(context, memory);
  if (logits.request_bytes > 0) return RequestedLogits(context, logits);
  if (logits.blocks.empty()) {
    return Absent(kKind, logits.bytes_each == 0 ? std::string("no loss over classes was recorded in the pass")
                                                : absl::StrCat("the loss works on ", FormatBytes(logits.bytes_each),
                                                               ", too little of what is allocated to be felt"));
  }
  const std::uint64_t bytes = memory.BytesOf(logits.blocks);
  const bool are_several = logits.blocks.size() + (logits.is_another_asked ? 1 : 0) >= 2;
  CauseFinding out = Found(kKind, are_several ? Confidence::kLikely : Confidence::kPossible, bytes);
  TakeBlocks(context, logits.blocks, out);
  out.is_sickness = ShortageAt(context).has_value();
  out.evidence.push_back(absl::StrCat("logits and what the loss makes of them hold ", FormatBytes(bytes), ", ",
                                      ShareText(bytes, AllocatedBytes(context)), " of what is allocated; ",
                                      MostOf(context, out)));
  out.evidence.push_back(
      absl::StrCat(logits.blocks.size(), logits.blocks.size() == 1 ? " live block is" : " live blocks are",
                   " of the size of the logits, ", FormatBytes(logits.bytes_each), ", or half or twice it",
                   logits.is_another_asked ? ", and so is the request that failed" : ""));
  if (!logits.proof.empty()) out.evidence.push_back(logits.proof);
  return out;
}

constexpr CauseSpec kActivationsCauses[] = {
    {.kind = CauseKind::kActivationsSaved,
     .name = "activations_saved",
     .sentence = "The forward pass keeps what its backward pass needs, and that is most of the memory",
     .needs = CauseNeeds::kStacks,
     .detect = DetectActivationsSaved,
     .change = &changes::kCheckpointing},
    {.kind = CauseKind::kAttentionScores,
     .name = "attention_scores",
     .sentence = "Attention keeps the scores of every position against every other",
     .needs = CauseNeeds::kStacks,
     .detect = DetectAttentionScores,
     .change = &changes::kFusedAttention},
    {.kind = CauseKind::kLogitsSpike,
     .name = "logits_spike",
     .sentence = "Logits for a whole vocabulary make the peak",
     .needs = CauseNeeds::kStacks,
     .detect = DetectLogitsSpike,
     .change = &changes::kLossInParts},
};

}  // namespace

absl::Span<const CauseSpec> ActivationsCauses() { return kActivationsCauses; }

}  // namespace ashlar::analyses
