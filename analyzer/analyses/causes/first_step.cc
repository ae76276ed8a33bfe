#include "analyzer/analyses/causes/first_step.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/torch_frames.h"

namespace ashlar::analyses {
namespace {

using Indices = std::vector<std::size_t>;

constexpr std::size_t kLeastLayers = 3;              // that repeat, of weights and of the pass
constexpr std::size_t kMostParameters = 8192;        // that are looked at for a period
constexpr double kLeastShareOfLayers = 0.5;          // of the weights' bytes
constexpr double kLeastShareOfMarker = 0.05;         // of the bytes of a pass, for a line that counts its layers
constexpr double kMostDifferentLayers = 0.1;         // of the bytes of one
constexpr std::size_t kLeastGradientsOfOneSize = 2;  // where several parameters have it

// Blocks that PyTorch's own frames call parameters or buffers, in the order in which they were made.
Indices ParametersOf(const CauseContext& context, const ProgramMemory& memory) {
  const timeline::Timeline& timeline = *context.history->timeline;
  const TorchStacks frames(timeline, context.history->stacks);
  Indices out;
  for (const std::size_t index : memory.lasting()) {
    if (frames.Of(timeline.blocks()[index].stack).is_of_model) out.push_back(index);
  }
  return out;
}

// How often the sizes of parameters repeat in their order, as layers of one kind do; 0: too little of them does.
std::size_t RepeatedLayers(const ProgramMemory& memory, const Indices& parameters) {
  const std::size_t count = parameters.size();
  if (count > kMostParameters) return 0;
  std::vector<std::uint64_t> sums = {0};
  for (const std::size_t index : parameters) sums.push_back(sums.back() + memory.RequestedBytes(index));
  const auto is_alike = [&](std::size_t i, std::size_t j) {
    return memory.RequestedBytes(parameters[i]) == memory.RequestedBytes(parameters[j]);
  };
  for (std::size_t period = 1; kLeastLayers * period <= count; ++period) {
    for (std::size_t begin = 0; begin + period < count; ++begin) {
      std::size_t end = begin + period;
      while (end < count && is_alike(end, end - period)) ++end;
      const bool is_much = IsShareOf(sums[end] - sums[begin], kLeastShareOfLayers, sums.back());
      if (end - begin >= kLeastLayers * period && is_much) return (end - begin) / period;
      begin = std::max(begin, end - period);
    }
  }
  return 0;
}

// Where in the pass's activations the line stands that most of its layers have in common, and that keeps something
// worth counting.
Indices LayerEnds(const CauseContext& context, const ProgramMemory& memory) {
  struct Line {
    Indices places = {};
    std::uint64_t bytes = 0;
  };
  const Indices& pass = memory.activations();
  std::map<trace::StackId, Line> lines;
  for (std::size_t i = 0; i < pass.size(); ++i) {
    const timeline::BlockSpan& block = context.history->timeline->blocks()[pass[i]];
    if (block.stack == trace::kNoStack) continue;
    lines[block.stack].places.push_back(i);
    lines[block.stack].bytes += block.size_bytes;
  }
  const std::uint64_t all = memory.BytesOf(pass);
  Indices out;
  for (const auto& [stack, line] : lines) {
    if (line.places.size() > out.size() && IsShareOf(line.bytes, kLeastShareOfMarker, all)) out = line.places;
  }
  return out;
}

Indices Between(const Indices& all, std::size_t after, std::size_t last) {
  return {all.begin() + static_cast<std::ptrdiff_t>(after + 1), all.begin() + static_cast<std::ptrdiff_t>(last + 1)};
}

// What layers of the pass that did not run yet will keep.
std::vector<std::uint64_t> LayersToCome(const CauseContext& context, const ProgramMemory& memory) {
  const std::size_t layers = RepeatedLayers(memory, ParametersOf(context, memory));
  const Indices ends = LayerEnds(context, memory);
  if (ends.size() < kLeastLayers || ends.size() >= layers) return {};
  const Indices& pass = memory.activations();
  const Indices last = Between(pass, ends[ends.size() - 2], ends.back());
  const std::uint64_t bytes = memory.BytesOf(last);
  const std::uint64_t before = memory.BytesOf(Between(pass, ends[ends.size() - 3], ends[ends.size() - 2]));
  if (!IsShareOf(std::min(bytes, before), 1 - kMostDifferentLayers, std::max(bytes, before))) return {};
  std::vector<std::uint64_t> out;
  for (std::size_t layer = ends.size(); layer < layers; ++layer) {
    for (const std::size_t index : last) out.push_back(memory.RequestedBytes(index));
  }
  // Of the next one what is there already, and the request that failed.
  const std::size_t begun = pass.size() - ends.back();
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(std::min(begun, out.size())));
  return out;
}

// Parameters of the sizes that some gradient has, and that have none yet. The last made has its gradient first.
std::vector<std::uint64_t> GradientsToCome(const CauseContext& context, const ProgramMemory& memory) {
  const Indices parameters = ParametersOf(context, memory);
  const SizeCounts wanted = memory.SizesOf(parameters);
  SizeCounts made = memory.SizesOf(memory.gradients());
  for (auto& [bytes, count] : made) {
    const auto found = wanted.find(bytes);
    if (found == wanted.end() || count < std::min(found->second, kLeastGradientsOfOneSize)) count = 0;
  }
  std::vector<std::uint64_t> out;
  SizeCounts left = made;
  for (auto index = parameters.rbegin(); index != parameters.rend(); ++index) {
    const std::uint64_t bytes = memory.RequestedBytes(*index);
    if (made[bytes] == 0) continue;
    if (left[bytes] > 0) {
      --left[bytes];
    } else {
      out.push_back(bytes);
    }
  }
  return out;
}

std::vector<std::uint64_t> StateToCome(const CauseContext& context, const ProgramMemory& memory) {
  const Indices state = StateBlocks(context, memory, timeline::kNever);
  const std::uint64_t each = BlocksForEach(memory, state);
  SizeCounts made = memory.SizesOf(state);
  std::vector<std::uint64_t> out;
  for (const std::size_t index : memory.gradients()) {
    const std::uint64_t bytes = memory.RequestedBytes(index);
    for (std::uint64_t i = 0; i < each; ++i) {
      if (made[bytes] > 0) {
        --made[bytes];
      } else {
        out.push_back(bytes);
      }
    }
  }
  return out;
}

// The activations go, the last first, and the gradients come as evenly as they go.
std::vector<ComingRequest> Backward(const ProgramMemory& memory, const std::vector<std::uint64_t>& gradients) {
  std::vector<ComingRequest> out;
  const Indices& pass = memory.activations();
  std::size_t come = 0;
  for (std::size_t gone = 1; gone <= pass.size(); ++gone) {
    out.push_back({.freed = pass[pass.size() - gone]});
    for (; come * pass.size() < gone * gradients.size(); ++come) out.push_back({.bytes = gradients[come]});
  }
  for (; come < gradients.size(); ++come) out.push_back({.bytes = gradients[come]});
  return out;
}

// The request that failed is one of those to come.
void DropFailed(const CauseContext& context, std::vector<std::uint64_t>& sizes) {
  const std::optional<Shortage> failed = ShortageAt(context);
  if (!failed.has_value()) return;
  const policy::Options options = OptionsOf(context);
  const auto same = std::find_if(sizes.begin(), sizes.end(), [&](std::uint64_t bytes) {
    return policy::RoundedBytes(bytes, options) == failed->request_bytes;
  });
  if (same != sizes.end()) sizes.erase(same);
}

}  // namespace

bool IsForeachFrame(const trace::Frame& frame) {
  return absl::StartsWith(frame.function, "_multi_tensor_") || absl::StrContains(frame.function, "_foreach_");
}

std::vector<std::size_t> StateBlocks(const CauseContext& context, const ProgramMemory& memory,
                                     timeline::EventIndex before) {
  std::vector<std::size_t> out;
  for (const std::size_t index : memory.state()) {
    const timeline::BlockSpan& block = context.history->timeline->blocks()[index];
    const bool is_list = block.stack != trace::kNoStack && AnyFrame(context, block.stack, IsForeachFrame);
    if (block.alloc_event < before && !is_list) out.push_back(index);
  }
  return out;
}

std::uint64_t BlocksForEach(const ProgramMemory& memory, const std::vector<std::size_t>& state) {
  constexpr std::uint64_t kCounterBytes = 16;  // a step counter on the device
  std::vector<std::uint64_t> sizes;
  for (const std::size_t index : state) {
    if (memory.RequestedBytes(index) > kCounterBytes) sizes.push_back(memory.RequestedBytes(index));
  }
  for (const std::size_t each : {std::size_t{2}, std::size_t{3}}) {
    bool is_alike = sizes.size() >= each;
    for (std::size_t i = 0; i < sizes.size(); ++i) is_alike = is_alike && sizes[i] == sizes[i - i % each];
    if (is_alike) return each;
  }
  return 1;
}

std::vector<ComingRequest> RestOfFirstStep(const CauseContext& context) {
  if (!context.history.has_value() || !context.history->HasStacks()) return {};
  const ProgramMemory memory(context);
  if (memory.Current() == nullptr || memory.IsOfInnerLoop()) return {};
  const bool is_first = std::none_of(memory.passes().begin(), memory.passes().end(), [&](const Pass& pass) {
    return &pass != memory.Current() && pass.last_backward >= 0;
  });
  if (!is_first) return {};
  std::vector<std::uint64_t> sizes;
  if (!memory.state().empty()) {
    sizes = StateToCome(context, memory);
    DropFailed(context, sizes);
  } else if (memory.Current()->backward != timeline::kNever) {
    sizes = GradientsToCome(context, memory);
    DropFailed(context, sizes);
    return Backward(memory, sizes);
  } else {
    sizes = LayersToCome(context, memory);
  }
  std::vector<ComingRequest> out;
  for (const std::uint64_t bytes : sizes) out.push_back({.bytes = bytes});
  return out;
}

}  // namespace ashlar::analyses
