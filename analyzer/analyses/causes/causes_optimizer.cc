// Causes that lie in the optimizer: its state and its temporaries.
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
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/causes/program_memory.h"
#include "analyzer/analyses/holders/variables.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

// Of what is allocated: from here on state is what a run without a failure is about.
constexpr double kLeastStateShare = 0.4;
// At a failure.
constexpr double kLeastStateOfFailure = 0.2;
constexpr std::uint64_t kSmallRest = 8;  // of the gradients: up to this part of them

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

// Lists of a multi-tensor optimizer go at the end of its step; state is made one by one.
std::vector<std::size_t> StateBlocks(const CauseContext& context, const ProgramMemory& memory, EventIndex before) {
  std::vector<std::size_t> out;
  for (const std::size_t index : memory.state()) {
    const BlockSpan& block = context.history->timeline->blocks()[index];
    const bool is_list = block.stack != trace::kNoStack && AnyFrame(context, block.stack, IsForeachFrame);
    if (block.alloc_event < before && !is_list) out.push_back(index);
  }
  return out;
}

// How many equal blocks in a row each parameter gets: 2 for Adam's moments, 3 with amsgrad, 1 for a momentum.
std::uint64_t BlocksForEach(const ProgramMemory& memory, const std::vector<std::size_t>& state) {
  constexpr std::uint64_t kCounterBytes = 16;  // a step counter on the device
  std::vector<std::uint64_t> sizes;
  for (const std::size_t index : state) {
    if (memory.RequestedBytes(index) > kCounterBytes) sizes.push_back(memory.RequestedBytes(index));
  }
  for (const std::size_t each : {std::size_t{3}, std::size_t{2}}) {
    bool is_alike = sizes.size() >= each;
    for (std::size_t i = 0; i < sizes.size(); ++i) is_alike = is_alike && sizes[i] == sizes[i - i % each];
    if (is_alike) return each;
  }
  return 1;
}

std::string FirstLine(const CauseContext& context, const CauseFinding& finding) {
  return finding.stacks.empty() ? "" : absl::StrCat("; most of it from ", LabelOf(context, finding.stacks.front()));
}

// Of the request that failed, where it was for a list of a multi-tensor optimizer; 0 otherwise.
std::uint64_t BytesOfFailedList(const CauseContext& context) {
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (!shortage.has_value()) return 0;
  const trace::Event& event = context.history->timeline->events()[static_cast<std::size_t>(context.history->moment)];
  const bool is_list = event.stack != trace::kNoStack && AnyFrame(context, event.stack, IsForeachFrame);
  return is_list ? shortage->request_bytes : 0;
}

// A multi-tensor optimizer makes the state of a group before its lists. Other groups may be still to come, unless the
// state is nearly a whole number of times as large as all gradients.
bool IsWhole(std::uint64_t state_bytes, std::uint64_t gradient_bytes) {
  if (gradient_bytes == 0 || state_bytes < gradient_bytes - gradient_bytes / kSmallRest) return false;
  const std::uint64_t rest = state_bytes % gradient_bytes;
  return std::min(rest, gradient_bytes - rest) <= gradient_bytes / kSmallRest;
}

// The first step ends in the middle of its state: what it made, and what the other gradients' parameters would get.
CauseFinding StateOfFirstStep(const CauseContext& context, const ProgramMemory& memory) {
  constexpr CauseKind kKind = CauseKind::kOptimizerState;
  const std::vector<std::size_t> state = StateBlocks(context, memory, timeline::kNever);
  const std::uint64_t made = memory.BytesOf(state);
  const bool is_failure = ShortageAt(context).has_value();
  const std::uint64_t each = BlocksForEach(memory, state);
  const std::uint64_t all = each * memory.BytesOf(memory.gradients());
  const bool is_whole = BytesOfFailedList(context) > 0 && IsWhole(made, memory.BytesOf(memory.gradients()));
  const std::uint64_t to_come = is_failure && !state.empty() && !is_whole ? all - std::min(all, made) : 0;
  if (!IsMaterial(context, made + to_come)) {
    return Absent(kKind, absl::StrCat("the first optimizer step keeps ", FormatBytes(made)));
  }
  CauseFinding out = Found(kKind, is_failure ? Confidence::kProven : Confidence::kLikely, made + to_come);
  TakeBlocks(context, state, out);
  out.to_come_bytes = to_come;
  out.is_sickness = is_failure;
  if (is_whole) out.yields_to_bytes = ShortageAt(context)->MissingBytes();
  out.evidence.push_back(absl::StrCat("the first optimizer step had made ", FormatBytes(made), " in ", state.size(),
                                      " blocks of state", FirstLine(context, out)));
  if (to_come > 0) {
    out.evidence.push_back(absl::StrCat(FormatBytes(to_come), " were still to come: ", each,
                                        each == 1 ? " block" : " blocks", " for each of the gradients of together ",
                                        FormatBytes(memory.BytesOf(memory.gradients()))));
  }
  return out;
}

// State that earlier steps made. Without a failure it is named where it is much of what there is.
CauseFinding StateHeld(const CauseContext& context, const ProgramMemory& memory, const std::vector<EventIndex>& phases,
                       bool is_inside) {
  constexpr CauseKind kKind = CauseKind::kOptimizerState;
  const std::vector<std::size_t> state =
      StateBlocks(context, memory, is_inside && phases.size() > 1 ? phases.back() : timeline::kNever);
  const std::uint64_t bytes = memory.BytesOf(state);
  const std::uint64_t allocated = AllocatedBytes(context);
  const std::string sentence = absl::StrCat("state of the optimizer holds ", FormatBytes(bytes), " in ", state.size(),
                                            " blocks, ", ShareText(bytes, allocated), " of what is allocated");
  const bool is_failure = ShortageAt(context).has_value();
  const double least = is_failure ? kLeastStateOfFailure : kLeastStateShare;
  if (!IsMaterial(context, bytes) || static_cast<double>(bytes) < least * static_cast<double>(allocated)) {
    return Absent(kKind, sentence);
  }
  if (is_failure && !IsShortOfMemory(context)) {
    return Absent(kKind, absl::StrCat(sentence, "; the request would have fitted beside it"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  TakeBlocks(context, state, out);
  out.evidence.push_back(absl::StrCat(sentence, FirstLine(context, out)));
  out.is_sickness = is_failure;
  if (!is_failure) out.counter_evidence.push_back("no request failed: it is what such an optimizer takes");
  return out;
}

// "opt" of "opt.state[]": the optimizer itself.
std::string OptimizerName(absl::string_view name) {
  for (const absl::string_view part : {".state", ".param_groups"}) {
    if (const std::size_t at = name.find(part); at != absl::string_view::npos) return std::string(name.substr(0, at));
  }
  return "";
}

using PlaceOfOptimizer = std::tuple<std::string, std::string, std::string>;

PlaceOfOptimizer PlaceOf(const trace::Holder& holder) {
  return {OptimizerName(holder.name), holder.file, holder.function};
}

// "exp_avg" of "opt.state[up.weight].exp_avg", and how large a block is.
using Slot = std::pair<std::string, std::uint64_t>;

Slot SlotOf(const trace::Holder& holder, std::uint64_t bytes) {
  const std::size_t at = holder.name.rfind("].");
  return {at == std::string::npos ? "" : holder.name.substr(at + 2), bytes};
}

// Optimizers beside a newer one that has state for the same parameters: in all there are more blocks of a slot than
// parameters of that size. Two optimizers of two models have as many.
std::vector<Variable> EarlierOptimizers(const CauseContext& context, const HeldByName& held) {
  const auto blocks = context.history->timeline->blocks();
  struct Optimizer {
    Variable variable;
    EventIndex newest = timeline::kBeforeWindow;
    std::map<Slot, std::uint64_t> bytes = {};
  };
  std::map<PlaceOfOptimizer, Optimizer> optimizers;
  std::map<std::uint64_t, std::size_t> parameters;
  std::map<Slot, std::size_t> slots;
  for (std::size_t i = 0; i < held.rows.size(); ++i) {
    const HeldRow& row = held.rows[i];
    const bool is_state = row.holder.kind == "optimizer_state" && !OptimizerName(row.holder.name).empty();
    for (const std::size_t index : row.indices) {
      const std::uint64_t bytes = blocks[index].AskedBytes();
      if (row.holder.kind == "parameter") ++parameters[bytes];
      if (!is_state) continue;
      ++slots[SlotOf(row.holder, bytes)];
      Optimizer& of = optimizers[PlaceOf(row.holder)];
      of.newest = std::max<EventIndex>(of.newest, blocks[index].alloc_event);
      of.bytes[SlotOf(row.holder, bytes)] += bytes;
      of.variable.blocks.push_back(index);
      of.variable.bytes += bytes;
    }
    if (is_state) {
      optimizers[PlaceOf(row.holder)].variable.name = OptimizerName(row.holder.name);
      optimizers[PlaceOf(row.holder)].variable.rows.push_back(i);
    }
  }
  EventIndex newest = timeline::kBeforeWindow;
  for (const auto& [place, of] : optimizers) newest = std::max(newest, of.newest);
  std::vector<Variable> out;
  for (auto& [place, of] : optimizers) {
    std::uint64_t twice = 0;
    for (const auto& [slot, bytes] : of.bytes) {
      const auto known = parameters.find(slot.second);
      if (known != parameters.end() && slots[slot] > known->second) twice += bytes;
    }
    if (of.newest < newest && 2 * twice > of.variable.bytes) out.push_back(std::move(of.variable));
  }
  return out;
}

// The optimizer that has most of this state: it is there to be used.
void NameOptimizer(const HeldByName& held, CauseFinding& out) {
  const std::set<std::size_t> state(out.blocks.begin(), out.blocks.end());
  std::map<PlaceOfOptimizer, Variable> optimizers;
  for (std::size_t i = 0; i < held.rows.size(); ++i) {
    const HeldRow& row = held.rows[i];
    const auto is_of_it = [&state](std::size_t block) { return state.count(block) > 0; };
    const auto count = std::count_if(row.indices.begin(), row.indices.end(), is_of_it);
    if (row.holder.kind != "optimizer_state" || OptimizerName(row.holder.name).empty() || count == 0) continue;
    Variable& variable = optimizers[PlaceOf(row.holder)];
    variable.name = OptimizerName(row.holder.name);
    variable.rows.push_back(i);
    variable.bytes += row.bytes;
  }
  const auto has_less = [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; };
  const auto most = std::max_element(optimizers.begin(), optimizers.end(), has_less);
  if (most == optimizers.end()) return;
  out.is_needed = true;
  out.holders.push_back(most->second.Holder(held));
  out.evidence.push_back(absl::StrCat(HolderPlace(out.holders.front()), " has it"));
}

CauseFinding StateOfEarlierOptimizers(const CauseContext& context, const HeldByName& held) {
  constexpr CauseKind kKind = CauseKind::kOptimizerState;
  const std::vector<Variable> earlier = EarlierOptimizers(context, held);
  if (earlier.empty()) return Absent(kKind, "");
  CauseFinding out = Found(kKind, Confidence::kProven, 0);
  TakeVariables(context, earlier, out);
  if (!IsMaterial(context, out.bytes)) return Absent(kKind, "");
  out.change = &changes::kNewestOptimizer;
  out.evidence.push_back(absl::StrCat(OwnersText(out.holders), out.holders.size() == 1 ? " keeps " : " keep ",
                                      FormatBytes(out.bytes), " of state in ", out.blocks.size(),
                                      " blocks, for parameters that a newer optimizer has state for as well"));
  return out;
}

// What an optimizer gathers in each step, what one alone keeps of a model that is gone, and what one keeps for
// parameters that another has taken over.
CauseFinding OwnedState(const CauseContext& context, const HeldByName& held) {
  constexpr CauseKind kKind = CauseKind::kOptimizerState;
  if (const LeakGrowth* leak = LeakOf(context, LeakShape::kOptimizer);
      leak != nullptr && IsMaterial(context, leak->bytes)) {
    CauseFinding out = FoundByOwners(context, kKind, *leak);
    out.evidence.push_back(absl::StrCat(OwnersText(out.holders), out.holders.size() == 1 ? " grows" : " grow",
                                        " in each of ", leak->steps, " steps to ", FormatBytes(leak->bytes), " in ",
                                        leak->blocks.size(), " blocks"));
    if (out.holders.front().kind != "optimizer_state") {
      out.change = &changes::kCutHistory;
    } else if (OptimizerName(out.holders.front().name).empty()) {  // a list of what has an optimizer
      out.change = &changes::kNewestOptimizer;
    }
    return out;
  }
  std::map<PlaceOfOptimizer, Variable> left;
  bool are_others_trained = false;
  for (const HeldRow& row : held.rows) {
    are_others_trained = are_others_trained || (row.holder.kind == "parameter" && row.holder.Is("optimized"));
    const bool is_only_its =
        row.holder.kind == "element" && row.holder.Is("optimized") && row.holder.Is("of_optimizer");
    const std::string name = OptimizerName(row.holder.name);
    if (is_only_its && !name.empty()) left[PlaceOf(row.holder)].name = name;
  }
  std::vector<Variable> optimizers;
  std::uint64_t bytes = 0;
  for (auto& [key, variable] : left) {
    for (std::size_t i = 0; i < held.rows.size(); ++i) {
      if (PlaceOf(held.rows[i].holder) != key) continue;
      variable.rows.push_back(i);
      variable.blocks.insert(variable.blocks.end(), held.rows[i].indices.begin(), held.rows[i].indices.end());
      variable.bytes += held.rows[i].bytes;
    }
    bytes += variable.bytes;
    optimizers.push_back(std::move(variable));
  }
  if (optimizers.empty() || !are_others_trained || !IsMaterial(context, bytes)) {
    return StateOfEarlierOptimizers(context, held);
  }
  CauseFinding out = Found(kKind, Confidence::kProven, 0);
  TakeVariables(context, optimizers, out);
  out.change = &changes::kDropOptimizer;
  out.evidence.push_back(absl::StrCat(OwnersText(out.holders), " keeps ", FormatBytes(out.bytes), " in ",
                                      out.blocks.size(),
                                      " blocks: parameters that no module has any more, with their "
                                      "gradients and state"));
  return out;
}

CauseFinding DetectOptimizerState(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kOptimizerState;
  if (const HeldByName* const held = context.history->Owners(); held != nullptr) {
    CauseFinding owned = OwnedState(context, *held);
    if (owned.finding == Finding::kFound) return owned;
  }
  const std::vector<EventIndex> phases = OptimizerPhases(context);
  const ProgramMemory memory(context);
  if (phases.empty() && memory.state().empty()) {
    return Absent(kKind, "no optimizer step was recorded before that moment");
  }
  // Inside of a step its temporaries are alive too.
  const bool is_inside = !phases.empty() && absl::EndsWith(PhaseOf(context.history->steps, context.history->moment),
                                                           ProgramPartName(ProgramPart::kOptimizer));
  CauseFinding out = is_inside && phases.size() == 1 ? StateOfFirstStep(context, memory)
                                                     : StateHeld(context, memory, phases, is_inside);
  const HeldByName* const held = context.history->Owners();
  if (out.finding == Finding::kFound && held != nullptr) NameOptimizer(*held, out);
  return out;
}

CauseFinding DetectOptimizerTemporaries(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kOptimizerTemporaries;
  const std::vector<LiveBlock> lists = SelectBlocks(LiveBlocks(context), [&](const LiveBlock& live) {
    const bool is_kept = live.block->free_requested_event == timeline::kNever && !ShortageAt(context).has_value();
    return live.part == ProgramPart::kOptimizer && live.block->alloc_event >= 0 && !is_kept &&
           AnyFrame(context, live.block->stack, IsForeachFrame);
  });
  const std::uint64_t asked = BytesOfFailedList(context);  // one of the lists may be what failed
  const std::uint64_t bytes = BytesOf(lists) + asked;
  const std::size_t count = lists.size() + (asked > 0 ? 1 : 0);
  if (lists.empty() || count < 2 || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("multi-tensor optimizer functions hold ", FormatBytes(bytes), " in temporaries"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.stacks = StacksOf(lists);
  out.to_come_bytes = asked;
  out.is_sickness = ShortageAt(context).has_value();
  out.evidence.push_back(absl::StrCat("multi-tensor optimizer functions hold ", FormatBytes(bytes - asked), " in ",
                                      lists.size(), lists.size() == 1 ? " temporary" : " temporaries at once",
                                      asked == 0 ? "" : ", and asked for one more when memory ran out", "; ",
                                      MostFrom(context, lists)));
  return out;
}

constexpr CauseSpec kOptimizerCauses[] = {
    {.kind = CauseKind::kOptimizerState,
     .name = "optimizer_state",
     .sentence = "The optimizer's state appears in its first step",
     .needs = CauseNeeds::kStacks,
     .detect = DetectOptimizerState,
     .change = &changes::kEightBitAdamW},
    {.kind = CauseKind::kOptimizerTemporaries,
     .name = "optimizer_temporaries",
     .sentence = "A multi-tensor optimizer makes temporaries as large as its lists",
     .needs = CauseNeeds::kStacks,
     .detect = DetectOptimizerTemporaries,
     .change = &changes::kFusedAdamW},
};

}  // namespace

absl::Span<const CauseSpec> OptimizerCauses() { return kOptimizerCauses; }

}  // namespace ashlar::analyses
