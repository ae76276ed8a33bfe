// Causes beside the training itself: evaluation, loading, and what one phase leaves in the cache of the next.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/call_sites.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/causes/torch_frames.h"
#include "analyzer/analyses/state/live_stacks.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

constexpr std::size_t kLeastKept = 8;         // live blocks of one pass
constexpr double kLeastKeptStacks = 0.5;      // of the forward stacks of an evaluation, alive at once
constexpr std::size_t kLeastPredictions = 4;  // live blocks of one line
constexpr double kMostOthersKept = 0.3;       // of the other blocks of the evaluation
constexpr double kLeastMatched = 0.2;  // of what was loaded: beside weights lie their average and an optimizer's state
constexpr std::size_t kLeastLoaded = 3;

bool IsForwardFrame(const trace::Frame& frame) { return frame.function == "forward"; }

// Of a checkpoint being read, not of the model being made around it.
bool IsCheckpointFrame(const trace::Frame& frame) {
  return absl::EndsWith(frame.file, "torch/serialization.py") || absl::EndsWith(frame.file, "safetensors/torch.py") ||
         frame.function == "load_file" || frame.function == "load_checkpoint";
}

// Takes from the model's sizes the twin of a loaded tensor: of its precision, or of half or twice it.
bool TakeTwin(std::uint64_t bytes, std::map<std::uint64_t, std::size_t>& model) {
  for (const std::uint64_t size : {bytes, bytes / 2, bytes * 2}) {
    const auto twin = model.find(size);
    if (twin == model.end() || twin->second == 0) continue;
    --twin->second;
    return true;
  }
  return false;
}

struct LineUse {
  std::size_t allocations = 0;
  std::vector<LiveBlock> live = {};
};

// Every evaluation stack: its allocations in the window up to a failure, and its live blocks of the moment. Where none
// failed all of the window counts: what a line made then may go, and as much come again.
std::map<trace::StackId, LineUse> EvaluationUse(const CauseContext& context) {
  const ProgramParts parts(context.history->stacks);
  const TorchStacks frames(*context.history->timeline, context.history->stacks);
  const EventIndex last = ShortageAt(context).has_value() ? context.history->moment : timeline::kNever;
  std::map<trace::StackId, LineUse> out;
  for (const BlockSpan& block : context.history->timeline->blocks()) {
    const ProgramPart part = parts.Of(block.stack);
    if (!IsEvaluating(part) || block.alloc_event < 0 || block.alloc_event > last) continue;
    if (frames.Of(block.stack).is_made_once) continue;  // a model that is made under inference_mode
    LineUse& use = out[block.stack];
    ++use.allocations;
    if (block.IsLiveAfter(context.history->moment)) use.live.push_back({&block, part});
  }
  return out;
}

void AppendBlocks(const std::vector<LiveBlock>& from, std::vector<LiveBlock>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// What a cache is filled for: training or evaluation.
struct SegmentUse {
  bool is_evaluation = false;  // of the last block it served
  EventIndex last = timeline::kBeforeWindow;
  std::uint64_t active_bytes = 0;
};

struct EvaluationKept {
  std::vector<LiveBlock> blocks;
  std::string evidence;
  std::string counter_evidence;
};

// The forward lines of functions that are named as an evaluation and may record a graph.
EvaluationKept KeptByName(const CauseContext& context, const TorchStacks& frames) {
  EvaluationKept out;
  std::size_t stacks = 0;
  std::size_t live_stacks = 0;
  for (const auto& [stack, use] : EvaluationUse(context)) {
    if (!AnyFrame(context, stack, IsForwardFrame) || frames.Of(stack).is_without_grad) continue;
    ++stacks;
    if (!use.live.empty()) ++live_stacks;
    AppendBlocks(use.live, out.blocks);
  }
  const std::uint64_t bytes = BytesOf(out.blocks);
  const std::string lines =
      absl::StrCat(live_stacks, " of ", stacks, " forward lines of the evaluation hold ", FormatBytes(bytes));
  out.counter_evidence = stacks == 0 ? "no evaluation is recorded before that moment" : lines;
  const bool is_kept = out.blocks.size() >= kLeastKept && stacks >= 2 &&
                       static_cast<double>(live_stacks) >= kLeastKeptStacks * static_cast<double>(stacks);
  if (!is_kept) out.blocks.clear();
  out.evidence = absl::StrCat(lines, " in ", out.blocks.size(), " blocks at once, as a backward pass would need them");
  return out;
}

// The forward lines of a stretch without a backward pass.
EvaluationKept KeptInStretch(const CauseContext& context, const TorchStacks& frames) {
  const ForwardOnly stretch = ForwardOnlyAt(context, frames);
  EvaluationKept out;
  if (stretch.last_backward < 0) return out;
  out.blocks = SavedForNothing(context, frames, stretch);
  std::set<trace::StackId> seen;
  for (const BlockSpan& block : context.history->timeline->blocks()) {
    const bool is_inside = stretch.last_backward < block.alloc_event && block.alloc_event <= context.history->moment;
    if (is_inside && frames.Of(block.stack).is_forward) seen.insert(block.stack);
  }
  const std::size_t live_stacks = StacksOf(out.blocks).size();
  const bool is_kept = out.blocks.size() >= kLeastKept && live_stacks >= 2 &&
                       static_cast<double>(live_stacks) >= kLeastKeptStacks * static_cast<double>(seen.size());
  if (!is_kept) out.blocks.clear();
  out.evidence = absl::StrCat(live_stacks, " of ", seen.size(), " forward lines of ", stretch.rounds,
                              " passes without a backward pass hold ", FormatBytes(BytesOf(out.blocks)), " in ",
                              out.blocks.size(), " blocks at once");
  return out;
}

// All that passes whose graph piles up have made since the first of them.
EvaluationKept KeptByGraph(const CauseContext& context, const TorchStacks& frames) {
  EvaluationKept out;
  for (const LeakGrowth& leak : context.history->leaks) {
    if (leak.shape != LeakShape::kEvalGraph || !IsMaterial(context, leak.bytes)) continue;
    EventIndex first = timeline::kNever;
    for (const std::size_t index : leak.blocks) {
      first = std::min<EventIndex>(first, context.history->timeline->blocks()[index].alloc_event);
    }
    for (const LiveBlock& live : LiveBlocks(context)) {
      const bool is_made_once = frames.Of(live.block->stack).is_made_once || live.part == ProgramPart::kOptimizer;
      if (live.block->alloc_event >= first && !is_made_once) out.blocks.push_back(live);
    }
    out.evidence = absl::StrCat(leak.lines, " lines keep what they make in each of ", leak.steps,
                                " passes, and no backward pass follows: ", FormatBytes(leak.bytes_per_step), " a pass");
  }
  return out;
}

// Of these, what attempts that ran out of memory had made.
std::uint64_t BytesOfFailed(const CauseContext& context, const std::vector<LiveBlock>& blocks) {
  const CauseHistory& history = *context.history;
  const std::vector<std::size_t> failed =
      BlocksOfFailedAttempts(*history.timeline, history.moment, history.stacks, history.steps);
  const std::set<std::size_t> of_failed(failed.begin(), failed.end());
  std::uint64_t out = 0;
  for (const LiveBlock& live : blocks) {
    const auto index = static_cast<std::size_t>(live.block - history.timeline->blocks().data());
    if (of_failed.count(index) > 0) out += live.block->size_bytes;
  }
  return out;
}

// The call of a model that made most of a variable; nullptr: none did.
const CallSites::Site* SiteOf(const CauseContext& context, const CallSites& sites, const Variable& variable) {
  std::map<const CallSites::Site*, std::uint64_t> bytes;
  for (const std::size_t index : variable.blocks) {
    const BlockSpan& block = context.history->timeline->blocks()[index];
    bytes[sites.Of(block.stack)] += block.size_bytes;
  }
  return std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// By the graphs themselves: those that pile up in an evaluation, or those that no backward pass has followed, of a pass
// through modules in eval mode, or of several passes. Where a backward pass has used what an earlier pass from the same
// place made, one will use this too.
CauseFinding OwnedEvaluation(const CauseContext& context, const HeldByName& held, const TorchStacks& frames) {
  constexpr CauseKind kKind = CauseKind::kEvalWithoutNoGrad;
  constexpr std::size_t kLeastPasses = 3;
  CauseFinding growing = DetectEvalGraphs(context);
  if (growing.finding == Finding::kFound) return growing;
  const CauseHistory& history = *context.history;
  const auto blocks = history.timeline->blocks();
  const CallSites sites(*history.timeline, *history.stacks, frames, history.moment);
  std::vector<Variable> graphs;
  std::uint64_t bytes = 0;
  const CallSites::Site* never_trained = nullptr;
  for (Variable& variable : VariablesOf(held)) {
    const bool is_open_graph =
        variable.role == OwnerRole::kGraph && blocks[variable.blocks.front()].alloc_event > sites.last_backward();
    if (!is_open_graph) continue;
    const CallSites::Site* const site = SiteOf(context, sites, variable);
    if (site != nullptr && site->is_trained) continue;
    const bool is_eval_mode = variable.Holder(held).mode == "eval";
    const bool are_many = site != nullptr && site->passes >= kLeastPasses && sites.AreAnyTrained();
    if (!is_eval_mode && !are_many) continue;
    if (!is_eval_mode) never_trained = site;
    bytes += variable.bytes;
    graphs.push_back(std::move(variable));
  }
  if (graphs.empty() || !IsMaterial(context, bytes)) return Absent(kKind, MostHeld(context));
  CauseFinding out = Found(kKind, Confidence::kLikely, 0);
  TakeVariables(context, graphs, out);
  const std::string graph = absl::StrCat(OwnersText(out.holders), " keeps a graph of ", FormatBytes(out.bytes), " in ",
                                         out.blocks.size(), " blocks");
  if (never_trained == nullptr) {
    out.evidence.push_back(absl::StrCat(graph, " through modules in eval mode, and no backward pass has followed"));
  } else {
    const trace::Frame& caller = history.stacks->frame(never_trained->caller);
    out.evidence.push_back(absl::StrCat(graph, " of ", never_trained->passes, " passes that ", FrameLabel(caller),
                                        " began, and no backward pass has followed one that began there"));
  }
  return out;
}

CauseFinding DetectEvalWithoutNoGrad(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kEvalWithoutNoGrad;
  const TorchStacks frames(*context.history->timeline, context.history->stacks);
  if (const HeldByName* const held = context.history->Owners(); held != nullptr) {
    return OwnedEvaluation(context, *held, frames);
  }
  EvaluationKept best = KeptByName(context, frames);
  for (const EvaluationKept& other : {KeptInStretch(context, frames), KeptByGraph(context, frames)}) {
    if (BytesOf(other.blocks) <= BytesOf(best.blocks)) continue;
    best.blocks = other.blocks;
    best.evidence = other.evidence;
  }
  const std::uint64_t bytes = BytesOf(best.blocks);
  if (best.blocks.empty() || !IsMaterial(context, bytes)) return Absent(kKind, best.counter_evidence);
  if (2 * BytesOfFailed(context, best.blocks) > bytes) return Absent(kKind, "most of it is of passes that failed");
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.stacks = StacksOf(best.blocks);
  out.evidence.push_back(absl::StrCat(best.evidence, "; ", MostFrom(context, best.blocks)));
  return out;
}

// Whether what a line has alive is part of what piles up in another way.
bool IsOfLeak(const CauseContext& context, const LeakGrowth& leak, const std::vector<LiveBlock>& live) {
  if (live.empty()) return false;
  const auto index = static_cast<std::size_t>(live.front().block - context.history->timeline->blocks().data());
  return std::find(leak.blocks.begin(), leak.blocks.end(), index) != leak.blocks.end();
}

CauseFinding DetectEvalAccumulates(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kEvalAccumulates;
  CauseFinding growing = DetectEvalOutputs(context);
  if (growing.finding == Finding::kFound || context.history->Owners() != nullptr) return growing;
  if (const LeakGrowth* leak = LeakOf(context, LeakShape::kEvalGraph);
      leak != nullptr && IsMaterial(context, leak->bytes)) {
    return Absent(kKind, "the evaluation keeps its whole graph, not only its outputs");
  }
  const std::map<trace::StackId, LineUse> uses = EvaluationUse(context);
  if (uses.empty()) return Absent(kKind, "no evaluation is recorded before that moment");
  std::vector<LiveBlock> piled;
  std::size_t others = 0;
  std::size_t others_live = 0;
  const LeakGrowth* const told = LeakOf(context, LeakShape::kOutputs);
  for (const auto& [stack, use] : uses) {
    if (told != nullptr && IsOfLeak(context, *told, use.live)) continue;
    // All but one of what the line ever made is still there.
    if (use.live.size() >= kLeastPredictions && use.live.size() + 1 >= use.allocations) {
      AppendBlocks(use.live, piled);
    } else {
      others += use.allocations;
      others_live += use.live.size();
    }
  }
  const std::uint64_t bytes = BytesOf(piled);
  const bool do_others_go =
      others > 0 && static_cast<double>(others_live) <= kMostOthersKept * static_cast<double>(others);
  if (piled.empty() || !do_others_go || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("lines of the evaluation that keep all they make hold ", FormatBytes(bytes)));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.stacks = StacksOf(piled);
  out.evidence.push_back(absl::StrCat(piled.size(), " blocks of the evaluation pile up to ", FormatBytes(bytes), "; ",
                                      MostFrom(context, piled)));
  out.evidence.push_back(absl::StrCat("of its other ", others, " blocks ", others_live, " are alive"));
  return out;
}

// "ckpt" of "ckpt.model[]".
std::string RootName(const trace::Holder& holder) { return holder.name.substr(0, holder.name.find_first_of(".[")); }

// "run.ckpt" of "run.ckpt.model[]" and "run.ckpt.ema[]".
std::string CommonName(absl::string_view a, absl::string_view b) {
  const auto ends_at = [](absl::string_view name, std::size_t at) {
    return at >= name.size() || name[at] == '.' || name[at] == '[';
  };
  std::size_t shared = 0;
  while (shared < std::min(a.size(), b.size()) && a[shared] == b[shared]) ++shared;
  while (shared > 0 && !(ends_at(a, shared) && ends_at(b, shared))) --shared;
  return std::string(a.substr(0, shared));
}

// By the variable that keeps what was read from a checkpoint, beside the model that has it too.
CauseFinding OwnedCheckpoint(const CauseContext& context, const HeldByName& held) {
  constexpr CauseKind kKind = CauseKind::kLoadedTwice;
  const auto blocks = context.history->timeline->blocks();
  std::map<std::uint64_t, std::size_t> model;
  for (const HeldRow& row : held.rows) {
    if (RoleOf(row.holder) != OwnerRole::kWeights) continue;
    for (const std::size_t index : row.indices) ++model[blocks[index].AskedBytes()];
  }
  struct Loaded {
    Variable variable;
    std::uint64_t twice = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Loaded> loaded;
  for (std::size_t i = 0; i < held.rows.size(); ++i) {
    const HeldRow& row = held.rows[i];
    if (RoleOf(row.holder) != OwnerRole::kVariable) continue;
    for (const std::size_t index : row.indices) {
      const trace::StackId stack = blocks[index].stack;
      if (stack == trace::kNoStack || !AnyFrame(context, stack, IsCheckpointFrame)) continue;
      Loaded& of = loaded[{RootName(row.holder), row.holder.file, row.holder.function}];
      if (of.variable.rows.empty() || of.variable.rows.back() != i) of.variable.rows.push_back(i);
      of.variable.name = of.variable.name.empty() ? row.holder.name : CommonName(of.variable.name, row.holder.name);
      of.variable.blocks.push_back(index);
      of.variable.bytes += blocks[index].AskedBytes();
      if (TakeTwin(blocks[index].AskedBytes(), model)) of.twice += blocks[index].AskedBytes();
    }
  }
  std::vector<Variable> twice;
  std::uint64_t bytes = 0;
  for (auto& [key, of] : loaded) {
    if (!IsShareOf(of.twice, kLeastMatched, of.variable.bytes) || of.variable.blocks.size() < kLeastLoaded) continue;
    bytes += of.variable.bytes;
    twice.push_back(std::move(of.variable));
  }
  if (twice.empty() || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("variables that keep a checkpoint beside the model hold ", FormatBytes(bytes)));
  }
  std::stable_sort(twice.begin(), twice.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  CauseFinding out = Found(kKind, Confidence::kProven, 0);
  TakeVariables(context, twice, out);
  out.evidence.push_back(absl::StrCat(OwnersText(out.holders), " keeps what was loaded, ", FormatBytes(out.bytes),
                                      " in ", out.blocks.size(), " blocks, beside the model that has its weights too"));
  out.evidence.push_back("torch.load(..., map_location=\"cpu\") keeps the copy off the device");
  return out;
}

CauseFinding DetectLoadedTwice(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kLoadedTwice;
  if (const HeldByName* const held = context.history->Owners(); held != nullptr) return OwnedCheckpoint(context, *held);
  std::vector<LiveBlock> loaded;
  std::map<std::uint64_t, std::size_t> model;  // sizes of what is alive beside it
  for (const LiveBlock& live : LiveBlocks(context)) {
    if (live.block->stack == trace::kNoStack) continue;
    if (AnyFrame(context, live.block->stack, IsCheckpointFrame)) {
      loaded.push_back(live);
    } else if (live.part == ProgramPart::kUnknown || live.part == ProgramPart::kLoading) {
      ++model[live.block->AskedBytes()];
    }
  }
  if (loaded.empty()) return Absent(kKind, "no block of a checkpoint is alive");
  std::vector<LiveBlock> twice;
  for (const LiveBlock& live : loaded) {
    if (TakeTwin(live.block->AskedBytes(), model)) twice.push_back(live);
  }
  const std::uint64_t bytes = BytesOf(twice);
  const auto whole = static_cast<double>(BytesOf(loaded));
  if (twice.size() < kLeastLoaded || static_cast<double>(bytes) < kLeastMatched * whole ||
      !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat(FormatBytes(bytes), " of a loaded checkpoint have a twin in the model"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.stacks = StacksOf(twice);
  out.evidence.push_back(
      absl::StrCat(twice.size(), " of ", loaded.size(), " blocks of a loaded checkpoint, ", FormatBytes(bytes),
                   ", have a twin of the same size, or half or twice it, in the model; ", MostFrom(context, twice)));
  out.evidence.push_back("torch.load(..., map_location=\"cpu\") keeps the copy off the device");
  return out;
}

CauseFinding DetectCacheBetweenPhases(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kCacheBetweenPhases;
  const ProgramParts parts(context.history->stacks);
  std::map<std::uint32_t, SegmentUse> uses;
  bool is_evaluation_now = false;
  EventIndex last_other = timeline::kBeforeWindow;  // the last allocation of the other phase
  EventIndex last_of[2] = {timeline::kBeforeWindow, timeline::kBeforeWindow};
  for (const BlockSpan& block : context.history->timeline->blocks()) {
    if (block.alloc_event > context.history->moment) continue;
    SegmentUse& use = uses[block.segment];
    if (block.IsActiveAfter(context.history->moment)) use.active_bytes += block.size_bytes;
    if (block.alloc_event < 0 || block.alloc_event < use.last) continue;
    use.is_evaluation = IsEvaluating(parts.Of(block.stack));
    use.last = block.alloc_event;
    EventIndex& last = last_of[use.is_evaluation ? 1 : 0];
    last = std::max<EventIndex>(last, block.alloc_event);
  }
  if (last_of[0] < 0 || last_of[1] < 0) return Absent(kKind, "training and evaluation do not both allocate here");
  is_evaluation_now = last_of[1] > last_of[0];
  last_other = std::min(last_of[0], last_of[1]);
  std::uint64_t left_over = 0;
  std::uint64_t grown = 0;
  for (std::uint32_t i = 0; i < context.history->timeline->segments().size(); ++i) {
    const timeline::SegmentSpan& segment = context.history->timeline->segments()[i];
    if (!segment.ExistsAfter(context.history->moment) || segment.is_expandable || uses.count(i) == 0) continue;
    const SegmentUse& use = uses[i];
    const std::uint64_t size = segment.ExtentAfter(context.history->moment).size_bytes;
    if (use.last >= 0 && use.is_evaluation != is_evaluation_now) left_over += size - std::min(size, use.active_bytes);
    if (use.is_evaluation == is_evaluation_now && segment.BeginEvent() > last_other) grown += size;
  }
  const std::uint64_t bytes = std::min(left_over, grown);
  const char* const other = is_evaluation_now ? "the training" : "the evaluation or generation";
  if (!IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("of what ", other, " left in the cache ", FormatBytes(bytes),
                                      " stay unused while the current phase grows"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.evidence.push_back(absl::StrCat(FormatBytes(left_over), " that ", other, " left in the cache stay unused, while ",
                                      "the phase after it obtained ", FormatBytes(grown), " of new segments"));
  out.evidence.push_back("torch.cuda.empty_cache() at the boundary returns what is whole");
  return out;
}

constexpr CauseSpec kPhasesCauses[] = {
    {.kind = CauseKind::kEvalWithoutNoGrad,
     .name = "eval_without_no_grad",
     .sentence = "An evaluation keeps activations that only a backward pass needs",
     .needs = CauseNeeds::kStacks,
     .detect = DetectEvalWithoutNoGrad,
     .change = &changes::kInferenceMode},
    {.kind = CauseKind::kEvalAccumulates,
     .name = "eval_accumulates",
     .sentence = "Predictions of an evaluation pile up on the device",
     .needs = CauseNeeds::kStacks,
     .detect = DetectEvalAccumulates,
     .change = &changes::kPredictionsOffDevice},
    {.kind = CauseKind::kLoadedTwice,
     .name = "loaded_twice",
     .sentence = "Two copies of the parameters are alive while a checkpoint is loaded",
     .needs = CauseNeeds::kStacks,
     .detect = DetectLoadedTwice,
     .change = &changes::kLoadOnHost},
    {.kind = CauseKind::kCacheBetweenPhases,
     .name = "cache_between_phases",
     .sentence = "What one phase cached cannot serve the next",
     .needs = CauseNeeds::kStacks,
     .detect = DetectCacheBetweenPhases,
     .fixes = {CauseFix::kEmptyCache, CauseFix::kStateAsleep},
     .change = &changes::kEmptyBetweenPhases,
     .holes = CauseHoles::kMade},
};

}  // namespace

absl::Span<const CauseSpec> PhasesCauses() { return kPhasesCauses; }

}  // namespace ashlar::analyses
