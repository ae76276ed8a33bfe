// Causes of memory that piles up from iteration to iteration, by the shape of the leak (leak_shapes.h).

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/causes/torch_frames.h"

namespace ashlar::analyses {
namespace {

constexpr std::size_t kSureSteps = 4;  // iterations over which a leak grew
// Of what is allocated, where no request failed and no owner tells: below it a buffer that fills up is what a method
// takes, and nothing to mend.
constexpr double kLeastKeptThatFits = 0.15;

std::vector<LiveBlock> BlocksOf(const CauseContext& context, const LeakGrowth& leak) {
  std::vector<LiveBlock> out;
  for (const std::size_t index : leak.blocks) out.push_back({&context.history->timeline->blocks()[index], {}});
  return out;
}

// What an owner keeps of so many steps.
std::string KeptWords(LeakShape shape, std::size_t steps) {
  switch (shape) {
    case LeakShape::kGraph:
      return steps > 0 ? absl::StrCat("the graphs of ", steps, " steps")
                       : "graphs from before the optimizer's last step";
    case LeakShape::kEvalGraph:
      return absl::StrCat("the graphs of ", steps, " passes of an evaluation");
    case LeakShape::kHooks:
      return absl::StrCat("what a hook saw in ", steps, " steps");
    case LeakShape::kEvalOutputs:
      return absl::StrCat("what an evaluation made in ", steps, " steps");
    default:
      return absl::StrCat("what ", steps, " steps made");
  }
}

// By the variables that keep it. What a line alone would say of the same blocks is not asked.
CauseFinding OwnedFinding(const CauseContext& context, CauseKind kind, const LeakGrowth& leak) {
  CauseFinding out = Found(kind, leak.steps >= kSureSteps ? Confidence::kProven : Confidence::kLikely, leak.bytes);
  const std::vector<LiveBlock> blocks = BlocksOf(context, leak);
  out.stacks = StacksOf(blocks);
  out.blocks = leak.blocks;
  out.holders = leak.holders;
  const std::string amount = absl::StrCat(FormatBytes(leak.bytes), " in ", blocks.size(), " blocks");
  if (leak.is_replaced) {
    out.evidence.push_back(absl::StrCat(OwnersText(leak.holders), leak.holders.size() == 1 ? " grew " : " grew each ",
                                        leak.steps, " times by about ", FormatBytes(leak.bytes_per_step), " to ",
                                        amount, "; ", MostFrom(context, blocks)));
  } else {
    out.evidence.push_back(absl::StrCat(OwnersText(leak.holders), leak.holders.size() == 1 ? " keeps " : " keep ",
                                        KeptWords(leak.shape, leak.steps), ": ", amount, "; ",
                                        MostFrom(context, blocks)));
  }
  return out;
}

// The answer that all shapes share; `words` says what piles up.
CauseFinding LeakFinding(const CauseContext& context, CauseKind kind, LeakShape shape, absl::string_view words) {
  const LeakGrowth* const leak = LeakOf(context, shape);
  const bool is_felt = leak != nullptr && leak->bytes >= kLeastMaterialBytes && IsMaterial(context, leak->bytes);
  if (context.history->Owners() != nullptr) {
    return is_felt ? OwnedFinding(context, kind, *leak) : Absent(kind, MostHeld(context));
  }
  const bool fits = !ShortageAt(context).has_value();
  if (!is_felt || (fits && !IsShareOf(leak->bytes, kLeastKeptThatFits, AllocatedBytes(context)))) {
    return Absent(kind,
                  absl::StrCat(words, " of earlier iterations hold ", FormatBytes(leak == nullptr ? 0 : leak->bytes)));
  }
  const std::vector<LiveBlock> blocks = BlocksOf(context, *leak);
  // What such a tensor holds is of all iterations, and its block of the last.
  const std::string subject =
      absl::StrCat(words, shape == LeakShape::kCache ? " hold " : " of earlier iterations hold ");
  // That it grew is seen. What keeps it, a shape alone does not prove.
  CauseFinding out = Found(kind, Confidence::kLikely, leak->bytes);
  out.stacks = StacksOf(blocks);
  out.evidence.push_back(absl::StrCat(subject, FormatBytes(leak->bytes), " in ", blocks.size(),
                                      " blocks: ", FormatBytes(leak->bytes_per_step), " more in each of ", leak->steps,
                                      " iterations; ", MostFrom(context, blocks)));
  return out;
}

void SayLines(const CauseContext& context, LeakShape shape, absl::string_view after, CauseFinding& out) {
  if (out.finding != Finding::kFound || !out.holders.empty()) return;
  out.evidence.push_back(absl::StrCat(LeakOf(context, shape)->lines, after));
}

CauseFinding DetectGraphKeptAlive(const CauseContext& context) {
  CauseFinding out = LeakFinding(context, CauseKind::kGraphKeptAlive, LeakShape::kGraph, "Activations");
  SayLines(context, LeakShape::kGraph, " lines left some, as a graph that somebody still knows keeps them", out);
  return out;
}

// A slice, an index or a chunk is a view: of what was computed all stays.
void SayParts(CauseFinding& out) {
  if (out.holders.empty() || !out.holders.front().Is("part")) return;
  out.change = &changes::kCopyOfPart;
  out.evidence.push_back("what it keeps are views of a part of larger tensors, and each keeps the whole of its tensor");
}

// What torch.cat joins is no list.
void SayRoom(const CauseContext& context, LeakShape shape, CauseFinding& out) {
  if (out.finding == Finding::kFound && LeakOf(context, shape)->is_replaced) out.change = &changes::kRoomForAll;
}

CauseFinding DetectOutputsKept(const CauseContext& context) {
  CauseFinding out = LeakFinding(context, CauseKind::kOutputsKept, LeakShape::kOutputs, "Outputs");
  SayParts(out);
  SayRoom(context, LeakShape::kOutputs, out);
  if (!out.holders.empty() && out.holders.front().container == "lru_cache") out.change = &changes::kBoundedCache;
  SayLines(context, LeakShape::kOutputs, " lines left some; the other blocks of their iterations are gone", out);
  return out;
}

CauseFinding DetectHooksKeepActivations(const CauseContext& context) {
  CauseFinding out = LeakFinding(context, CauseKind::kHooksKeepActivations, LeakShape::kHooks, "What hooks saw");
  SayLines(context, LeakShape::kHooks, " lines left some: a hook function, modules that have hooks, or backward passes",
           out);
  return out;
}

CauseFinding DetectKvCacheGrows(const CauseContext& context) {
  CauseFinding out =
      LeakFinding(context, CauseKind::kKvCacheGrows, LeakShape::kCache, "Tensors that grow by torch.cat");
  if (out.finding == Finding::kFound && out.holders.empty()) {
    out.evidence.push_back(
        "each block takes the place of a slightly smaller one of the same line, freed right after it");
  }
  return out;
}

}  // namespace

CauseFinding DetectEvalOutputs(const CauseContext& context) {
  CauseFinding out =
      LeakFinding(context, CauseKind::kEvalAccumulates, LeakShape::kEvalOutputs, "Outputs of an evaluation");
  SayParts(out);
  SayRoom(context, LeakShape::kEvalOutputs, out);
  SayLines(context, LeakShape::kEvalOutputs, " lines left some; the other blocks of their iterations are gone", out);
  return out;
}

CauseFinding DetectEvalGraphs(const CauseContext& context) {
  return LeakFinding(context, CauseKind::kEvalWithoutNoGrad, LeakShape::kEvalGraph, "Graphs of an evaluation");
}

// Gradients where nobody needs them. Ordinary ones live until their optimizer's step: a block that lives through
// several steps of optimizers is a gradient that no optimizer clears. Gradients that are accumulated over micro-steps
// go with their step, and are no cause.

namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

constexpr std::size_t kLeastGradients = 4;
constexpr std::size_t kLeastSteps = 3;  // of optimizers, that a gradient lived through
constexpr absl::string_view kStepMark = "Optimizer.step#";

// Events at which gradients are no longer needed: the optimizer steps that PyTorch marks, else those of the optimizer's
// stacks, else the last request of a backward pass in each of the program's steps.
std::vector<EventIndex> OptimizerSteps(const CauseContext& context, const TorchStacks& frames) {
  const Steps& steps = context.history->steps;
  std::vector<EventIndex> marked;
  std::vector<EventIndex> told;
  for (const Phase& phase : steps.phases) {
    if (absl::StartsWith(phase.name, kStepMark)) marked.push_back(phase.events.begin);
    if (phase.name == ProgramPartName(ProgramPart::kOptimizer)) told.push_back(phase.events.begin);
  }
  if (!marked.empty()) return marked;
  if (told.size() >= kLeastSteps) return told;
  std::map<std::size_t, EventIndex> last;
  for (const BlockSpan& block : context.history->timeline->blocks()) {
    const std::optional<std::size_t> step = StepAt(steps, block.alloc_event);
    if (step.has_value() && frames.IsBackward(block))
      last[*step] = std::max<EventIndex>(last[*step], block.alloc_event);
  }
  told.clear();
  for (const auto& [step, event] : last) told.push_back(event);
  return told;
}

std::size_t StepsOver(const std::vector<EventIndex>& steps, const BlockSpan& block) {
  return static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), [&block](EventIndex step) {
    return block.alloc_event < step && step < block.free_requested_event;
  }));
}

// Sizes of what was alive before the first backward pass, and still is.
std::set<std::uint64_t> ParameterSizes(const CauseContext& context, const TorchStacks& frames) {
  EventIndex first = timeline::kNever;
  for (const BlockSpan& block : context.history->timeline->blocks()) {
    if (frames.IsBackward(block)) first = std::min<EventIndex>(first, block.alloc_event);
  }
  std::set<std::uint64_t> out;
  for (const LiveBlock& live : LiveBlocks(context)) {
    const TorchFrames& of = frames.Of(live.block->stack);
    if (live.block->alloc_event < first && !of.is_forward) out.insert(live.block->AskedBytes());
  }
  return out;
}

struct GradientSets {
  std::vector<LiveBlock> uncleared;  // lived through several optimizer steps
  std::vector<LiveBlock> all;        // alive at the moment
  bool are_others_cleared = false;
};

GradientSets FindGradients(const CauseContext& context, const TorchStacks& frames) {
  const std::vector<EventIndex> steps = OptimizerSteps(context, frames);
  const std::set<std::uint64_t> sizes = ParameterSizes(context, frames);
  std::set<const BlockSpan*> piled;  // what comes anew in each step is a leak, and no gradient that was not cleared
  for (const LeakGrowth& leak : context.history->leaks) {
    for (const std::size_t index : leak.blocks) piled.insert(&context.history->timeline->blocks()[index]);
  }
  GradientSets out;
  for (const BlockSpan& block : context.history->timeline->blocks()) {
    if (piled.count(&block) > 0 || !frames.IsBackward(block) || sizes.count(block.AskedBytes()) == 0) continue;
    const std::size_t over = StepsOver(steps, block);
    const bool is_live = block.IsLiveAfter(context.history->moment);
    if (is_live) out.all.push_back({&block, ProgramPart::kBackward});
    if (is_live && over >= kLeastSteps) out.uncleared.push_back({&block, ProgramPart::kBackward});
    if (over == 1 && block.free_requested_event != timeline::kNever) out.are_others_cleared = true;
  }
  return out;
}

bool IsEvaluatingAt(const CauseContext& context, const TorchStacks& frames) {
  if (context.history->moment < 0) return false;
  const auto at = static_cast<std::size_t>(context.history->moment);
  const ProgramPart part = frames.Of(context.history->timeline->events()[at].stack).part;
  if (part == ProgramPart::kEvaluation || part == ProgramPart::kGeneration) return true;
  const ForwardOnly stretch = ForwardOnlyAt(context, frames);
  return stretch.rounds > 0 && stretch.last_backward >= 0 && stretch.next_backward == timeline::kNever;
}

CauseFinding GradientFinding(const CauseContext& context, const std::vector<LiveBlock>& blocks, Confidence confidence,
                             const char* why) {
  CauseFinding out = Found(CauseKind::kGradientsKept, confidence, BytesOf(blocks));
  out.stacks = StacksOf(blocks);
  out.evidence.push_back(
      absl::StrCat(FormatBytes(out.bytes), " in ", blocks.size(), " blocks of the sizes of parameters ", why));
  out.evidence.push_back(MostFrom(context, blocks));
  return out;
}

// Of one parameter, by name: "model.table.weight" of "model.table.weight.grad".
const HeldRow* ParameterOf(const HeldByName& held, const HeldRow& gradient) {
  const absl::string_view name = absl::StripSuffix(gradient.holder.name, ".grad");
  const auto found = std::find_if(held.rows.begin(), held.rows.end(), [&](const HeldRow& row) {
    return row.holder.kind == "parameter" && row.holder.name == name && row.holder.file == gradient.holder.file &&
           row.holder.function == gradient.holder.function;
  });
  return found == held.rows.end() ? nullptr : &*found;
}

// By their owners: a gradient that is larger than its parameter (sparse ones grow until they are cleared), and
// gradients of parameters that no optimizer has, where others are an optimizer's.
CauseFinding OwnedGradients(const CauseContext& context, const HeldByName& held) {
  constexpr CauseKind kKind = CauseKind::kGradientsKept;
  constexpr double kLeastOutgrown = 1.5;  // a sparse gradient of one step may have a row twice
  Variable outgrown;
  Variable unused;
  bool are_some_optimized = false;
  for (const HeldRow& row : held.rows) are_some_optimized = are_some_optimized || row.holder.Is("optimized");
  const auto add = [&held](std::size_t row, Variable& to) {
    if (to.rows.empty()) to.name = held.rows[row].holder.name;
    to.rows.push_back(row);
    to.bytes += held.rows[row].bytes;
    to.blocks.insert(to.blocks.end(), held.rows[row].indices.begin(), held.rows[row].indices.end());
  };
  for (std::size_t i = 0; i < held.rows.size(); ++i) {
    if (held.rows[i].holder.kind != "gradient") continue;
    const HeldRow* const parameter = ParameterOf(held, held.rows[i]);
    if (parameter == nullptr) continue;
    if (static_cast<double>(held.rows[i].bytes) > kLeastOutgrown * static_cast<double>(parameter->bytes)) {
      add(i, outgrown);
    } else if (are_some_optimized && !parameter->holder.Is("optimized")) {
      add(i, unused);
    }
  }
  for (const Variable* const found : {&outgrown, &unused}) {
    if (found->rows.empty() || !IsMaterial(context, found->bytes)) continue;
    CauseFinding out = Found(kKind, found == &outgrown ? Confidence::kProven : Confidence::kLikely, 0);
    TakeVariables(context, {*found}, out);
    out.evidence.push_back(absl::StrCat(
        OwnersText(out.holders), found->rows.size() == 1 ? "" : absl::StrCat(" and ", found->rows.size() - 1, " more"),
        found->rows.size() == 1 ? " holds " : " hold ", FormatBytes(out.bytes),
        found == &outgrown ? ", more than its parameter: no step clears it, and each backward pass adds to it"
                           : ": gradients of parameters that no optimizer has"));
    return out;
  }
  return Absent(kKind, "each gradient is as large as its parameter, and an optimizer has that");
}

CauseFinding DetectGradientsKept(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kGradientsKept;
  if (const HeldByName* const held = context.history->Owners(); held != nullptr) return OwnedGradients(context, *held);
  const TorchStacks frames(*context.history->timeline, context.history->stacks);
  const GradientSets found = FindGradients(context, frames);
  const auto is_enough = [&context](const std::vector<LiveBlock>& blocks) {
    return blocks.size() >= kLeastGradients && IsMaterial(context, BytesOf(blocks));
  };
  if (is_enough(found.uncleared)) {
    if (!found.are_others_cleared) {
      CauseFinding out = GradientFinding(context, found.uncleared, Confidence::kPossible,
                                         "come from a backward pass and live through several optimizer steps");
      out.counter_evidence.push_back("no gradient is freed between steps: zero_grad(set_to_none=False) keeps them all");
      return out;
    }
    return GradientFinding(context, found.uncleared, Confidence::kLikely,
                           "come from a backward pass and live through several optimizer steps, while the gradients "
                           "of other parameters are freed after each");
  }
  if (is_enough(found.all) && IsEvaluatingAt(context, frames)) {
    return GradientFinding(context, found.all, Confidence::kLikely,
                           "are gradients of the last step, and no backward pass follows");
  }
  return Absent(kKind,
                absl::StrCat("gradients that no optimizer step clears hold ", FormatBytes(BytesOf(found.uncleared))));
}

CauseFinding DetectReferenceCycle(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kReferenceCycle;
  const HeldByName* const held = context.history->Owners();
  if (held == nullptr) {
    return NotInTrace(kKind, "who holds the memory by name would tell: ashlar record or ashlar dry-run writes it");
  }
  std::vector<Variable> cycles;
  std::uint64_t bytes = 0;
  for (Variable& variable : VariablesOf(*held)) {
    if (variable.role != OwnerRole::kCycle) continue;
    bytes += variable.bytes;
    cycles.push_back(std::move(variable));
  }
  if (cycles.empty() || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("what reference cycles alone hold are ", FormatBytes(bytes)));
  }
  CauseFinding out = Found(kKind, Confidence::kProven, 0);
  TakeVariables(context, cycles, out);
  out.evidence.push_back(absl::StrCat("no variable leads to ", FormatBytes(out.bytes), " in ", out.blocks.size(),
                                      " blocks: a ", cycles.front().name,
                                      " holds them, until Python's collector comes by"));
  return out;
}

constexpr CauseSpec kLeaksCauses[] = {
    {.kind = CauseKind::kReferenceCycle,
     .name = "reference_cycle",
     .sentence = "Objects that hold each other keep tensors that no variable leads to",
     .needs = CauseNeeds::kState,
     .detect = DetectReferenceCycle,
     .change = &changes::kBreakCycle},
    {.kind = CauseKind::kGraphKeptAlive,
     .name = "graph_kept_alive",
     .sentence = "Activations of older steps are still alive: something keeps their graph",
     .needs = CauseNeeds::kStacks,
     .detect = DetectGraphKeptAlive,
     .change = &changes::kNumbersNotTensors},
    {.kind = CauseKind::kOutputsKept,
     .name = "outputs_kept",
     .sentence = "Outputs of older steps are kept on the device",
     .needs = CauseNeeds::kEvents,
     .detect = DetectOutputsKept,
     .change = &changes::kMoveOffDevice},
    {.kind = CauseKind::kHooksKeepActivations,
     .name = "hooks_keep_activations",
     .sentence = "Hooks keep activations or gradients of every step",
     .needs = CauseNeeds::kStacks,
     .detect = DetectHooksKeepActivations,
     .change = &changes::kRemoveHook},
    {.kind = CauseKind::kKvCacheGrows,
     .name = "kv_cache_grows",
     .sentence = "Tensors grow by torch.cat, step by step, as a cache of keys and values does",
     .needs = CauseNeeds::kStacks,
     .detect = DetectKvCacheGrows,
     .change = &changes::kCacheWithRoom},
    {.kind = CauseKind::kGradientsKept,
     .name = "gradients_kept",
     .sentence = "Gradients stay alive where nobody needs them",
     .needs = CauseNeeds::kStacks,
     .detect = DetectGradientsKept,
     .change = &changes::kClearGradients},
};

}  // namespace

absl::Span<const CauseSpec> LeaksCauses() { return kLeaksCauses; }

}  // namespace ashlar::analyses
