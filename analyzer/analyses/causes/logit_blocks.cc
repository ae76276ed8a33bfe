#include "analyzer/analyses/causes/logit_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

using Indices = std::vector<std::size_t>;

// Of what is allocated.
constexpr double kLeastLogitsShare = 0.15;
constexpr double kLeastLogitsThatFit = 0.3;  // where the request would have fitted, or none failed

// PyTorch's own losses over classes.
bool IsClassLossFrame(const trace::Frame& frame) {
  static constexpr std::array<absl::string_view, 6> kNames = {
      "cross_entropy", "cross_entropy_loss", "log_softmax", "nll_loss", "kl_div", "linear_cross_entropy"};
  const std::size_t colon = frame.function.rfind(':');
  const absl::string_view name = absl::string_view(frame.function).substr(colon == std::string::npos ? 0 : colon + 1);
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](absl::string_view word) { return absl::StartsWith(name, word); });
}

// The widest size that a loss of the pass asked for, the failed request among them; 0 without.
std::uint64_t LossBytes(const CauseContext& context, const ProgramMemory& memory) {
  std::uint64_t out = 0;
  const auto blocks = context.history->timeline->blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].alloc_event < memory.Current()->begin || blocks[i].alloc_event > context.history->moment) continue;
    if (blocks[i].stack == trace::kNoStack || !AnyFrame(context, blocks[i].stack, IsClassLossFrame)) continue;
    out = std::max(out, memory.RequestedBytes(i));
  }
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (!shortage.has_value()) return out;
  const trace::Event& failure = context.history->timeline->events()[static_cast<std::size_t>(context.history->moment)];
  const bool is_loss = failure.stack != trace::kNoStack && AnyFrame(context, failure.stack, IsClassLossFrame);
  return is_loss ? std::max(out, failure.size_bytes) : out;
}

// As large as the logits, half or twice it (another precision); a shifted copy lacks the last place of each text.
bool IsAsLargeAs(std::uint64_t bytes, std::uint64_t logits_bytes) {
  const double ratio = static_cast<double>(bytes) / static_cast<double>(logits_bytes);
  constexpr std::array<double, 3> kTimes = {0.5, 1.0, 2.0};
  return std::any_of(kTimes.begin(), kTimes.end(),
                     [ratio](double times) { return std::abs(ratio / times - 1) < 0.02; });
}

// The numbers of an output layer: what goes in, its weight and what comes out.
struct OutputLayer {
  std::uint64_t rows = 0, width = 0, classes = 0;
};

// Three products of three whole numbers, rows x width, classes x width and rows x classes, tell them. Far more classes
// than the width, as layers within a model do not have.
std::optional<OutputLayer> LayerOf(std::uint64_t inputs, std::uint64_t weights, std::uint64_t outputs) {
  constexpr std::uint64_t kLeastWidth = 16;
  constexpr std::uint64_t kLeastRows = 64;
  const double product = static_cast<double>(inputs) / static_cast<double>(outputs) * static_cast<double>(weights);
  const auto width = static_cast<std::uint64_t>(std::llround(std::sqrt(product)));
  if (width < kLeastWidth || inputs % width != 0 || weights % width != 0) return std::nullopt;
  const OutputLayer out{inputs / width, width, weights / width};
  const bool is_wide = out.classes > 4 * width && out.rows >= kLeastRows;
  if (!is_wide || outputs % out.rows != 0 || outputs / out.rows != out.classes) return std::nullopt;
  return out;
}

// Weights of which there are few: of a head, tied or copied, and of no layer that repeats.
std::vector<std::uint64_t> SingleWeights(const ProgramMemory& memory) {
  constexpr std::size_t kMostAlike = 4;
  SizeCounts counts;
  for (const std::size_t index : memory.lasting()) ++counts[memory.RequestedBytes(index)];
  std::vector<std::uint64_t> out;
  for (const auto& [bytes, count] : counts) {
    if (bytes >= kMiB && count <= kMostAlike) out.push_back(bytes);
  }
  return out;
}

// The output layer that makes logits of `bytes` of an input; each of the three may have numbers of 2 or 4 bytes.
std::optional<OutputLayer> LayerOfLogits(const std::vector<std::uint64_t>& weights, std::uint64_t input,
                                         std::uint64_t bytes) {
  for (const std::uint64_t weight : weights) {
    for (int i = 0; i < 8; ++i) {
      const std::optional<OutputLayer> layer =
          LayerOf(input >> (1 + (i & 1)), weight >> (1 + (i >> 1 & 1)), bytes >> (1 + (i >> 2)));
      if (layer.has_value()) return layer;
    }
  }
  return std::nullopt;
}

// Whether the pass, from `first` on, makes logits and nothing else that is as large as their input.
bool EndsInLogits(const CauseContext& context, const ProgramMemory& memory, std::size_t first, std::uint64_t input,
                  std::uint64_t bytes) {
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (shortage.has_value() && shortage->request_bytes >= input && !IsAsLargeAs(shortage->request_bytes, bytes)) {
    return false;
  }
  return std::none_of(memory.activations().begin() + static_cast<std::ptrdiff_t>(first), memory.activations().end(),
                      [&](std::size_t index) {
                        const std::uint64_t size = memory.RequestedBytes(index);
                        return size >= input && !IsAsLargeAs(size, bytes);
                      });
}

// Whether a layer made it that may have so many outputs: torch.nn.Linear or the program's own lines, and no other
// module or function of torch.nn.
bool MayBeOfALinear(const CauseContext& context, std::size_t index) {
  const trace::StackId stack = context.history->timeline->blocks()[index].stack;
  if (stack == trace::kNoStack) return true;
  for (const trace::FrameId id : context.history->stacks->stack(stack)) {
    const trace::Frame& frame = context.history->stacks->frame(id);
    if (!IsPythonFrame(frame)) continue;
    if (!IsTorchFrame(frame) || absl::EndsWith(frame.file, "modules/linear.py")) return true;
    const bool is_around =
        absl::EndsWith(frame.file, "modules/module.py") || absl::EndsWith(frame.file, "modules/container.py");
    if (absl::StrContains(frame.file, "torch/nn/") && !is_around) return false;
  }
  return true;
}

// Where no loss of PyTorch says it: the largest blocks of the pass are its last, and one of the blocks right before
// them and a weight say that they are what a layer with many more outputs than inputs makes.
void FindLogitsBySizes(const CauseContext& context, const ProgramMemory& memory, LogitBlocks& out) {
  constexpr std::size_t kLookBack = 6;
  const Indices& pass = memory.activations();
  const auto is_smaller = [&memory](std::size_t a, std::size_t b) {
    return memory.RequestedBytes(a) < memory.RequestedBytes(b);
  };
  const auto largest = std::max_element(pass.begin(), pass.end(), is_smaller);  // the first of them
  if (largest == pass.end() || memory.RequestedBytes(*largest) < kMiB || !MayBeOfALinear(context, *largest)) return;
  const std::uint64_t bytes = memory.RequestedBytes(*largest);
  const auto first = static_cast<std::size_t>(largest - pass.begin());
  const std::vector<std::uint64_t> weights = SingleWeights(memory);
  for (std::size_t back = 1; back <= std::min(first, kLookBack); ++back) {
    const std::uint64_t input = memory.RequestedBytes(pass[first - back]);
    const std::optional<OutputLayer> layer = LayerOfLogits(weights, input, bytes);
    if (!layer.has_value() || !EndsInLogits(context, memory, first, input, bytes)) continue;
    out.bytes_each = bytes;
    out.proof = absl::StrCat("the pass ends in a layer of ", FormatCount(layer->classes), " outputs for each of ",
                             FormatCount(layer->rows), " rows of ", FormatCount(layer->width),
                             ": its input and its weight say so");
    return;
  }
}

}  // namespace

LogitBlocks FindLogits(const CauseContext& context, const ProgramMemory& memory) {
  LogitBlocks out;
  if (memory.Current() == nullptr) return out;
  out.bytes_each = LossBytes(context, memory);
  if (out.bytes_each < kMiB) FindLogitsBySizes(context, memory, out);
  if (out.bytes_each < kMiB) return out;
  for (const Indices* const indices : {&memory.activations(), &memory.gradients()}) {
    for (const std::size_t index : *indices) {
      const bool is_new = context.history->timeline->blocks()[index].alloc_event >= memory.Current()->begin;
      if (is_new && IsAsLargeAs(memory.RequestedBytes(index), out.bytes_each)) out.blocks.push_back(index);
    }
  }
  const std::uint64_t bytes = memory.BytesOf(out.blocks);
  if (!IsMaterial(context, bytes) ||
      !IsShareOf(bytes, IsShortOfMemory(context) ? kLeastLogitsShare : kLeastLogitsThatFit, AllocatedBytes(context)))
    out.blocks.clear();
  return out;
}

}  // namespace ashlar::analyses
