// A few huge tensors that are there from the setup on: data of the program, or a table with its gradient and state.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/program_memory.h"
#include "analyzer/analyses/causes/torch_frames.h"
#include "analyzer/analyses/holders/variables.h"

namespace ashlar::analyses {
namespace {

using Indices = std::vector<std::size_t>;

// Of what is allocated.
constexpr double kLeastTensorsShare = 0.3;
constexpr double kLeastTensorShare = 0.1;  // of each of the few
constexpr std::size_t kMostTensors = 3;

bool IsModuleFrame(const trace::Frame& frame) { return absl::StrContains(frame.file, "torch/nn/"); }

// Alive since before an earlier backward pass; without one, since before the first pass.
bool IsFromTheSetup(const CauseContext& context, const ProgramMemory& memory, std::size_t index) {
  const Pass& first = memory.passes().front();
  return context.history->timeline->blocks()[index].alloc_event < std::min(first.begin, memory.Current()->begin);
}

// The tensor, with its gradient and state where it has them: blocks asked for with the same size.
Indices WithGradientAndState(const ProgramMemory& memory, const Indices& tensors) {
  Indices out = tensors;
  for (const Indices* const others : {&memory.gradients(), &memory.state()}) {
    for (const std::size_t index : *others) {
      const bool is_same = std::any_of(tensors.begin(), tensors.end(), [&](std::size_t tensor) {
        return memory.RequestedBytes(tensor) == memory.RequestedBytes(index);
      });
      if (is_same) out.push_back(index);
    }
  }
  return out;
}

// Data of the program that one line made, tensor by tensor, before the first pass; its stack.
struct DataOfLine {
  trace::StackId stack = trace::kNoStack;
  Indices blocks = {};
  std::uint64_t bytes = 0;
};

// The most of one line.
DataOfLine MostDataOfALine(const CauseContext& context, const Indices& data) {
  std::map<trace::StackId, DataOfLine> lines;
  for (const std::size_t index : data) {
    const timeline::BlockSpan& block = context.history->timeline->blocks()[index];
    DataOfLine& line = lines[block.stack];
    line.stack = block.stack;
    line.blocks.push_back(index);
    line.bytes += block.size_bytes;
  }
  DataOfLine out;
  for (auto& [stack, line] : lines) {
    if (stack != trace::kNoStack && line.bytes > out.bytes) out = std::move(line);
  }
  return out;
}

// Data of the program that is there from the setup on, by the variables that hold it.
CauseFinding DataByOwner(const CauseContext& context, const HeldByName& held, const ProgramMemory& memory,
                         const TorchStacks& frames) {
  constexpr CauseKind kKind = CauseKind::kLongLivedTensor;
  constexpr double kLeastDataShare = 0.2;
  std::vector<Variable> data;
  std::uint64_t bytes = 0;
  // What a pass made for those after it, as a cache of keys and values, is a model's own.
  const auto is_from_the_setup = [&](std::size_t index) {
    if (frames.Of(context.history->timeline->blocks()[index].stack).is_forward) return false;
    return memory.Current() == nullptr || IsFromTheSetup(context, memory, index);
  };
  for (Variable& variable : VariablesOf(held)) {
    const bool is_data = variable.role == OwnerRole::kVariable && !variable.IsOfRunningPass(held) &&
                         IsShareOf(variable.bytes, kLeastTensorShare, AllocatedBytes(context)) &&
                         std::all_of(variable.blocks.begin(), variable.blocks.end(), is_from_the_setup);
    if (!is_data) continue;
    bytes += variable.bytes;
    data.push_back(std::move(variable));
  }
  if (!IsMaterial(context, bytes) || !IsShareOf(bytes, kLeastDataShare, AllocatedBytes(context))) {
    return Absent(kKind, absl::StrCat("variables from the setup on, but for the model, hold ", FormatBytes(bytes)));
  }
  CauseFinding out = Found(kKind, Confidence::kProven, 0);
  TakeVariables(context, data, out);
  out.evidence.push_back(absl::StrCat(OwnersText(out.holders), data.size() == 1 ? " has held " : " have held ",
                                      FormatBytes(out.bytes), " in ", out.blocks.size(), " blocks since the setup, ",
                                      ShareText(bytes, AllocatedBytes(context)), " of what is allocated"));
  return out;
}

// `otherwise` speaks against it.
CauseFinding DataByLine(const CauseContext& context, const Indices& data, const std::string& otherwise) {
  constexpr CauseKind kKind = CauseKind::kLongLivedTensor;
  DataOfLine line = MostDataOfALine(context, data);
  if (!IsMaterial(context, line.bytes) || !IsShareOf(line.bytes, kLeastTensorsShare, AllocatedBytes(context))) {
    return Absent(kKind, otherwise);
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, line.bytes);
  out.evidence.push_back(absl::StrCat(LabelOf(context, line.stack), " made ", FormatCount(line.blocks.size()),
                                      " tensors before the first pass that hold ", FormatBytes(line.bytes), ", ",
                                      ShareText(line.bytes, AllocatedBytes(context)), " of what is allocated"));
  TakeBlocks(context, std::move(line.blocks), out);
  return out;
}

CauseFinding FindLongLived(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kLongLivedTensor;
  const ProgramMemory memory(context);
  const TorchStacks frames(*context.history->timeline, context.history->stacks);
  const HeldByName* const held = context.history->Owners();
  if (held != nullptr && (memory.Current() != nullptr || context.history->leaks.empty())) {
    CauseFinding data = DataByOwner(context, *held, memory, frames);
    if (data.finding == Finding::kFound) return data;
  }
  if (memory.Current() == nullptr) return Absent(kKind, "no pass forward was recorded before that moment");
  const auto blocks = context.history->timeline->blocks();
  const auto allocated = static_cast<double>(AllocatedBytes(context));
  const SizeCounts sizes = memory.SizesOf(memory.lasting());
  const auto is_weight = [&](std::size_t index) {
    return IsMadeUnder(context, index, IsModuleFrame) || memory.trained().count(memory.RequestedBytes(index)) > 0;
  };
  Indices large;
  Indices data;
  for (const std::size_t index : memory.lasting()) {
    if (!IsFromTheSetup(context, memory, index)) continue;
    // Beside what is trained: without gradients to tell them by, a model's own weights may be made so as well.
    const bool is_data = ShortageAt(context).has_value() && !memory.trained().empty() && !is_weight(index) &&
                         !frames.Of(blocks[index].stack).is_of_model;
    if (held == nullptr && is_data) data.push_back(index);
    const trace::Holder* const owner = held == nullptr ? nullptr : held->OwnerOf(index);
    if (owner != nullptr && RoleOf(*owner) != OwnerRole::kWeights) continue;
    // Layers are sets of equal tensors. Weights belong to the model: they are a cause only where they do not fit.
    if (sizes.at(memory.RequestedBytes(index)) > kMostTensors) continue;
    if (is_weight(index) && !ShortageAt(context).has_value()) continue;
    if (static_cast<double>(blocks[index].size_bytes) >= kLeastTensorShare * allocated) large.push_back(index);
  }
  std::stable_sort(large.begin(), large.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].size_bytes > blocks[b].size_bytes; });
  if (large.size() > kMostTensors) large.resize(kMostTensors);
  const Indices all = WithGradientAndState(memory, large);
  const std::uint64_t bytes = memory.BytesOf(all);
  const std::size_t others = all.size() - large.size();
  const std::string sentence = absl::StrCat(
      large.size(), large.size() == 1 ? " tensor" : " tensors", " from before the first pass",
      others == 0 ? ""
                  : absl::StrCat(" of ", FormatBytes(memory.BytesOf(large)), " and ", others,
                                 others == 1 ? " gradient or state of its size" : " gradients and states of its size"),
      large.size() + others == 1 ? " holds " : " hold ", FormatBytes(bytes), ", ",
      ShareText(bytes, AllocatedBytes(context)), " of what is allocated");
  if (!IsMaterial(context, bytes) || static_cast<double>(bytes) < kLeastTensorsShare * allocated) {
    return DataByLine(context, data, sentence);
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.blocks = all;
  SetStacks(context, out);
  out.evidence.push_back(sentence);
  out.evidence.push_back(absl::StrCat("the largest: ", FormatBytes(blocks[large.front()].size_bytes), " from ",
                                      LabelOf(context, blocks[large.front()].stack)));
  if (std::all_of(large.begin(), large.end(), is_weight)) out.change = &changes::kSmallerTable;
  return out;
}

// Where holes stopped the request, what makes the holes that it misses comes first: what lives long would have fitted.
CauseFinding DetectLongLivedTensor(const CauseContext& context) {
  CauseFinding out = FindLongLived(context);
  const std::optional<Shortage> shortage = ShortageAt(context);
  out.is_sickness = shortage.has_value();  // what fits beside all else may stay where it is
  if (shortage.has_value() && !IsShortOfMemory(context)) out.yields_to_bytes = shortage->MissingBytes();
  return out;
}

constexpr CauseSpec kLongLivedCauses[] = {
    {.kind = CauseKind::kLongLivedTensor,
     .name = "long_lived_tensor",
     .sentence = "A few tensors that live from the setup on hold much of the memory",
     .needs = CauseNeeds::kStacks,
     .detect = DetectLongLivedTensor,
     .change = &changes::kTensorOnHost},
};

}  // namespace

absl::Span<const CauseSpec> LongLivedCauses() { return kLongLivedCauses; }

}  // namespace ashlar::analyses
