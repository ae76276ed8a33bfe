#include "analyzer/analyses/causes/activation_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

using Indices = std::vector<std::size_t>;

constexpr double kLeastScoresShare = 0.15;  // of what is allocated

// What each line of a pass asked for at most.
std::map<trace::StackId, std::uint64_t> LargestOfPass(const CauseContext& context, const ProgramMemory& memory,
                                                      const Pass& pass) {
  std::map<trace::StackId, std::uint64_t> out;
  const auto blocks = context.history->timeline->blocks();
  // Blocks are in the order of their allocation.
  const auto first = std::lower_bound(blocks.begin(), blocks.end(), pass.begin,
                                      [](const timeline::BlockSpan& block, auto e) { return block.alloc_event < e; });
  for (auto i = static_cast<std::size_t>(first - blocks.begin()); i < blocks.size(); ++i) {
    const timeline::EventIndex event = blocks[i].alloc_event;
    if (event >= pass.end || event > context.history->moment) break;
    if (memory.PartOfBlock(i) != ProgramPart::kForward) continue;
    std::uint64_t& most = out[blocks[i].stack];
    most = std::max(most, memory.RequestedBytes(i));
  }
  return out;
}

struct LengthRatio {
  double linear = 1;                      // of most lines
  std::set<trace::StackId> squared = {};  // lines that grew by its square
};

// From one pass to another the sizes of most lines grow as the length does, those of scores as its square.
LengthRatio RatioOf(const std::map<trace::StackId, std::uint64_t>& before,
                    const std::map<trace::StackId, std::uint64_t>& now) {
  std::vector<double> ratios;
  for (const auto& [stack, bytes] : now) {
    const auto old = before.find(stack);
    if (old != before.end() && old->second > 0) {
      ratios.push_back(static_cast<double>(bytes) / static_cast<double>(old->second));
    }
  }
  LengthRatio out;
  if (ratios.size() < 3) return out;
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
  out.linear = ratios[ratios.size() / 2];
  if (out.linear > 0.95 && out.linear < 1.05) return out;
  for (const auto& [stack, bytes] : now) {
    const auto old = before.find(stack);
    if (old == before.end() || old->second == 0) continue;
    const double ratio = static_cast<double>(bytes) / static_cast<double>(old->second);
    if (std::abs(ratio / (out.linear * out.linear) - 1) < 0.02) out.squared.insert(stack);
  }
  return out;
}

// The live blocks of one size, where a line that grew by the square of the length made them; the widest such size.
AttentionScores ScoresByLength(const CauseContext& context, const ProgramMemory& memory) {
  const Pass& now = *memory.Current();
  const auto sizes = LargestOfPass(context, memory, now);
  for (const Pass& before : memory.passes()) {
    if (before.begin >= now.begin) break;
    const LengthRatio ratio = RatioOf(LargestOfPass(context, memory, before), sizes);
    if (ratio.squared.empty()) continue;
    std::map<std::uint64_t, Indices> by_size;
    for (const std::size_t index : memory.activations()) {
      const trace::StackId stack = context.history->timeline->blocks()[index].stack;
      const std::uint64_t bytes = memory.RequestedBytes(index);
      if (ratio.squared.count(stack) > 0 && bytes == sizes.at(stack)) by_size[bytes].push_back(index);
    }
    AttentionScores out;
    for (auto& [bytes, blocks] : by_size) {
      if (memory.BytesOf(blocks) > memory.BytesOf(out.blocks)) out.blocks = std::move(blocks);
    }
    out.proof =
        absl::StrCat("from an earlier pass to this one most lines ask for ", std::round(100 * ratio.linear) / 100,
                     " times as much, and this one for the square of that: the size grows with the square of "
                     "the length");
    return out;
  }
  return {};
}

// Factors of an activation of `places` rows, where the weights say how wide rows are.
class RowWidths {
 public:
  explicit RowWidths(const ProgramMemory& memory) {
    std::map<std::uint64_t, std::size_t> vectors;
    for (const std::size_t index : memory.lasting()) {
      const std::uint64_t bytes = memory.RequestedBytes(index);
      weights_.insert(bytes);
      if (kLeastVectorBytes <= bytes && bytes <= kMostVectorBytes) ++vectors[bytes];
    }
    width_bytes_ = CommonWidth(vectors);
  }

  // Of the norms and biases of a transformer, which are as wide as the model or three or four times that, or a few of
  // them twice that. 0 where the weights have many widths, as those of convolutions do.
  std::uint64_t width_bytes() const { return width_bytes_; }

  // Whether rows of `row_bytes` are as wide as the model, whose rows have `width_bytes`, or as what a weight makes of
  // them: up to four times the width, or the outputs of a weight, or a half or third of those.
  bool Explains(std::uint64_t row_bytes, std::uint64_t width_bytes) const {
    for (const std::uint64_t parts : {1, 2, 3, 4}) {
      if (row_bytes == parts * width_bytes || parts * row_bytes == width_bytes) return true;
    }
    for (const std::uint64_t element : {2, 4}) {
      const std::uint64_t columns = width_bytes / element;
      for (const std::uint64_t parts : {1, 2, 3}) {
        if (weights_.count(row_bytes * columns * parts) > 0) return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::uint64_t kLeastVectorBytes = 512;
  static constexpr std::uint64_t kMostVectorBytes = 64 * 1024;
  static constexpr std::size_t kLeastVectors = 4;  // of a width that layers repeat
  static constexpr std::size_t kLeastOfWidth = 3;  // norms and biases of a layer that are as wide as the model

  static std::uint64_t CommonWidth(const std::map<std::uint64_t, std::size_t>& vectors) {
    std::uint64_t width = 0;
    std::size_t most = kLeastVectors - 1;
    for (const auto& [bytes, count] : vectors) {
      if (count <= most) continue;
      most = count;
      width = bytes;
    }
    std::size_t narrower = 0;
    for (const auto& [bytes, count] : vectors) {
      if (count < kLeastVectors || bytes == width || bytes == 3 * width || bytes == 4 * width) continue;
      if (bytes == 2 * width && kLeastOfWidth * count <= most) continue;  // one of a layer that has several
      if (bytes > width || ++narrower > 1) return 0;
    }
    return width;
  }

  std::set<std::uint64_t> weights_;
  std::uint64_t width_bytes_ = 0;
};

// Whether a row of scores is heads x length long: heads divide the width, the length divides the rows.
bool IsHeadsTimesLength(std::uint64_t row_bytes, std::uint64_t width_bytes, std::uint64_t rows) {
  for (const std::uint64_t element : {2, 4}) {
    const std::uint64_t width = width_bytes / element;
    for (const std::uint64_t head_width : {32, 48, 64, 72, 80, 96, 112, 128, 160, 192, 256}) {
      if (width % head_width != 0 || row_bytes % (element * (width / head_width)) != 0) continue;
      const std::uint64_t length = row_bytes / (element * (width / head_width));
      if (length >= 32 && rows % length == 0) return true;
    }
  }
  return false;
}

struct SplitBySize {
  std::uint64_t explained_bytes = 0;
  Indices scores = {};
};

SplitBySize SplitSizes(const ProgramMemory& memory, const std::map<std::uint64_t, Indices>& by_size,
                       const RowWidths& widths, std::uint64_t rows) {
  SplitBySize out;
  for (const auto& [bytes, blocks] : by_size) {
    const std::uint64_t of_all = memory.BytesOf(blocks);
    const bool is_whole = bytes % rows == 0;
    if (bytes < kMiB || (is_whole && widths.Explains(bytes / rows, widths.width_bytes()))) {
      out.explained_bytes += of_all;
    } else if (is_whole && blocks.size() >= 2 && bytes > rows * widths.width_bytes() &&
               IsHeadsTimesLength(bytes / rows, widths.width_bytes(), rows)) {
      out.explained_bytes += of_all;
      if (of_all > memory.BytesOf(out.scores)) out.scores = blocks;
    }
  }
  return out;
}

// Whether blocks of a size are masks, a byte for each number: more blocks are 2 or 4 times as large.
bool AreMasks(const std::map<std::uint64_t, Indices>& by_size, std::uint64_t bytes, std::size_t count) {
  for (const std::uint64_t times : {2, 4}) {
    const auto numbers = by_size.find(times * bytes);
    if (numbers != by_size.end() && numbers->second.size() > count) return true;
  }
  return false;
}

// Sizes of the pass are rows x width; rows are the same for nearly all of it and the widths those of the weights. What
// is left over and as long as heads x length are scores: at least two blocks, of two layers. The narrowest common size
// that tells nearly all decides.
AttentionScores ScoresByFactors(const ProgramMemory& memory) {
  constexpr double kLeastExplained = 0.9;
  constexpr std::uint64_t kLeastRows = 64;
  const RowWidths widths(memory);
  std::map<std::uint64_t, Indices> by_size;
  for (const std::size_t index : memory.activations()) by_size[memory.RequestedBytes(index)].push_back(index);
  const std::uint64_t all_bytes = memory.BytesOf(memory.activations());
  const std::uint64_t width_bytes = widths.width_bytes();
  if (width_bytes == 0) return {};
  for (const auto& [common_bytes, common] : by_size) {
    if (common.size() < 4 || common_bytes % width_bytes != 0 || common_bytes / width_bytes < kLeastRows) continue;
    if (AreMasks(by_size, common_bytes, common.size())) continue;
    const SplitBySize split = SplitSizes(memory, by_size, widths, common_bytes / width_bytes);
    if (!IsShareOf(split.explained_bytes, kLeastExplained, all_bytes)) continue;
    if (split.scores.empty()) return {};  // rows and widths tell it all
    return {
        split.scores,
        absl::StrCat("the pass is of ", FormatCount(common_bytes / width_bytes), " rows as wide as the weights; these ",
                     "blocks are as wide as no weight, and as long as heads times length"),
        common_bytes / width_bytes};
  }
  return {};
}

// Further blocks of as many numbers: masks of one byte each, scores in another precision. What is as wide as the
// weights is none, and a few of many blocks are chance.
Indices OfAsManyNumbers(const ProgramMemory& memory, const AttentionScores& scores) {
  const std::uint64_t bytes = memory.RequestedBytes(scores.blocks.front());
  const RowWidths widths(memory);
  std::map<std::uint64_t, Indices> others;
  for (const std::size_t index : memory.activations()) {
    const std::uint64_t other = memory.RequestedBytes(index);
    const bool is_alike = other == 2 * bytes || 2 * other == bytes || other == 4 * bytes || 4 * other == bytes;
    const bool is_wide =
        scores.rows > 0 && other % scores.rows == 0 && widths.Explains(other / scores.rows, widths.width_bytes());
    if (is_alike && !is_wide) others[other].push_back(index);
  }
  Indices out;
  for (const auto& [other, blocks] : others) {
    if (3 * blocks.size() >= scores.blocks.size()) out.insert(out.end(), blocks.begin(), blocks.end());
  }
  return out;
}

}  // namespace

AttentionScores FindAttentionScores(const CauseContext& context, const ProgramMemory& memory) {
  if (memory.Current() == nullptr) return {};
  AttentionScores out = ScoresByLength(context, memory);
  if (out.blocks.empty()) out = ScoresByFactors(memory);
  if (out.blocks.empty()) return {};
  const Indices others = OfAsManyNumbers(memory, out);
  out.blocks.insert(out.blocks.end(), others.begin(), others.end());
  const std::uint64_t bytes = memory.BytesOf(out.blocks);
  const bool is_felt = IsShareOf(bytes, kLeastScoresShare, AllocatedBytes(context)) && IsMaterial(context, bytes);
  return is_felt ? out : AttentionScores{};
}

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
// than the width, as layers within a model do not have. Of the outputs a few rows may be left out: the last place of
// each text, of which nothing is to be told.
std::optional<OutputLayer> LayerOf(std::uint64_t inputs, std::uint64_t weights, std::uint64_t outputs) {
  constexpr std::uint64_t kLeastWidth = 16;
  constexpr std::uint64_t kLeastRows = 64;
  constexpr double kMostLeftOut = 0.02;
  const double product = static_cast<double>(inputs) / static_cast<double>(outputs) * static_cast<double>(weights);
  const auto most = static_cast<std::uint64_t>(std::llround(std::sqrt(product)));
  const auto least = static_cast<std::uint64_t>(std::ceil(std::sqrt((1 - kMostLeftOut) * product)));
  for (std::uint64_t width = most; width >= std::max(least, kLeastWidth); --width) {
    if (inputs % width != 0 || weights % width != 0) continue;
    const OutputLayer out{inputs / width, width, weights / width};
    const bool is_wide = out.classes > 4 * width && out.rows >= kLeastRows;
    if (is_wide && outputs % out.classes == 0 && outputs / out.classes <= out.rows) return out;
  }
  return std::nullopt;
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

// The output layer that makes logits of `bytes` of an input: in numbers of 2 or 4 bytes all, or under autocast, where
// the weight alone has 4.
std::optional<OutputLayer> LayerOfLogits(const std::vector<std::uint64_t>& weights, std::uint64_t input,
                                         std::uint64_t bytes) {
  struct Widths {
    std::uint64_t input, weight, output;
  };
  constexpr std::array<Widths, 3> kWidths = {{{2, 2, 2}, {4, 4, 4}, {2, 4, 2}}};
  for (const std::uint64_t weight : weights) {
    for (const Widths& of : kWidths) {
      const std::optional<OutputLayer> layer = LayerOf(input / of.input, weight / of.weight, bytes / of.output);
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
  const auto begin = memory.activations().begin();
  const auto end = memory.activations().end();
  const auto at_first = begin + static_cast<std::ptrdiff_t>(first);
  const auto is_alike = [&](std::size_t index) { return IsAsLargeAs(memory.RequestedBytes(index), bytes); };
  // Layers before it make as much: it is one of them.
  if (std::count_if(begin, at_first, is_alike) > std::count_if(at_first, end, is_alike)) return false;
  return std::none_of(at_first, end,
                      [&](std::size_t index) { return memory.RequestedBytes(index) >= input && !is_alike(index); });
}

// Whether a layer made it that may have so many outputs: torch.nn.Linear or the program's own lines, and no other
// module or function of torch.nn.
bool MayBeOfALinear(const CauseContext& context, trace::StackId stack) {
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

std::string LayerText(const OutputLayer& layer) {
  return absl::StrCat("a layer of ", FormatCount(layer.classes), " outputs for each of ", FormatCount(layer.rows),
                      " rows of ", FormatCount(layer.width), ": its input and its weight say so");
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
  if (largest == pass.end() || memory.RequestedBytes(*largest) < kMiB) return;
  if (!MayBeOfALinear(context, context.history->timeline->blocks()[*largest].stack)) return;
  const std::uint64_t bytes = memory.RequestedBytes(*largest);
  const auto first = static_cast<std::size_t>(largest - pass.begin());
  const std::vector<std::uint64_t> weights = SingleWeights(memory);
  for (std::size_t back = 1; back <= std::min(first, kLookBack); ++back) {
    const std::uint64_t input = memory.RequestedBytes(pass[first - back]);
    const std::optional<OutputLayer> layer = LayerOfLogits(weights, input, bytes);
    if (!layer.has_value() || !EndsInLogits(context, memory, first, input, bytes)) continue;
    out.bytes_each = bytes;
    out.proof = absl::StrCat("the pass ends in ", LayerText(*layer));
    return;
  }
}

// Whether torch.nn.Linear asked for it.
bool IsOfALinear(const CauseContext& context, trace::StackId stack) {
  if (stack == trace::kNoStack) return false;
  const auto frames = context.history->stacks->stack(stack);
  const auto innermost = std::find_if(frames.begin(), frames.end(), [&](trace::FrameId id) {
    return IsPythonFrame(context.history->stacks->frame(id));
  });
  return innermost != frames.end() &&
         absl::EndsWith(context.history->stacks->frame(*innermost).file, "torch/nn/modules/linear.py");
}

// The failed request, where a layer with many more outputs than inputs asked for its outputs: one of the blocks that
// were made right before it, and a weight, say so.
void FindRequestedLogits(const CauseContext& context, const ProgramMemory& memory, LogitBlocks& out) {
  constexpr std::size_t kLookBack = 6;
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (!shortage.has_value()) return;
  const trace::Event& failure = context.history->timeline->events()[static_cast<std::size_t>(context.history->moment)];
  if (!IsOfALinear(context, failure.stack)) return;
  const auto blocks = context.history->timeline->blocks();
  const std::vector<std::uint64_t> weights = SingleWeights(memory);
  std::size_t seen = 0;
  for (std::size_t i = blocks.size(); i > 0 && seen < kLookBack; --i) {
    if (blocks[i - 1].alloc_event > context.history->moment) continue;
    ++seen;
    if (!blocks[i - 1].IsLiveAfter(context.history->moment)) continue;
    const std::optional<OutputLayer> layer = LayerOfLogits(weights, memory.RequestedBytes(i - 1), failure.size_bytes);
    if (!layer.has_value()) continue;
    out.request_bytes = failure.size_bytes;
    out.proof = absl::StrCat("the request that failed is for what comes out of ", LayerText(*layer));
    return;
  }
}

// Lines of the pass that make more blocks as large as the logits than its loss does: those of layers.
std::set<trace::StackId> LinesOfLayers(const CauseContext& context, const ProgramMemory& memory,
                                       std::uint64_t logits_bytes) {
  std::map<trace::StackId, std::size_t> counts;
  const auto blocks = context.history->timeline->blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool is_of_pass = memory.Current()->begin <= blocks[i].alloc_event &&
                            blocks[i].alloc_event <= context.history->moment && blocks[i].stack != trace::kNoStack;
    if (is_of_pass && IsAsLargeAs(memory.RequestedBytes(i), logits_bytes)) ++counts[blocks[i].stack];
  }
  std::set<trace::StackId> lines;
  std::size_t of_loss = 1;
  for (const auto& [stack, count] : counts) {
    if (AnyFrame(context, stack, IsClassLossFrame)) {
      of_loss = std::max(of_loss, count);
    } else {
      lines.insert(stack);
    }
  }
  for (auto line = lines.begin(); line != lines.end();) {
    line = counts[*line] > of_loss ? std::next(line) : lines.erase(line);
  }
  return lines;
}

LogitBlocks FindLiveLogits(const CauseContext& context, const ProgramMemory& memory) {
  LogitBlocks out;
  if (memory.Current() == nullptr) return out;
  out.bytes_each = LossBytes(context, memory);
  std::set<trace::StackId> layers;
  if (out.bytes_each < kMiB) {
    FindLogitsBySizes(context, memory, out);
  } else {
    layers = LinesOfLayers(context, memory, out.bytes_each);
  }
  if (out.bytes_each < kMiB) return out;
  const Indices piled = OwnedLeakBlocks(context);
  const auto is_of_logits = [&](std::size_t index) {
    const timeline::BlockSpan& block = context.history->timeline->blocks()[index];
    return block.alloc_event >= memory.Current()->begin && layers.count(block.stack) == 0 &&
           !std::binary_search(piled.begin(), piled.end(), index) &&
           IsAsLargeAs(memory.RequestedBytes(index), out.bytes_each);
  };
  for (const Indices* const indices : {&memory.activations(), &memory.gradients(), &memory.recomputed()}) {
    std::copy_if(indices->begin(), indices->end(), std::back_inserter(out.blocks), is_of_logits);
  }
  const std::uint64_t bytes = memory.BytesOf(out.blocks);
  if (!IsMaterial(context, bytes) ||
      !IsShareOf(bytes, IsShortOfMemory(context) ? kLeastLogitsShare : kLeastLogitsThatFit, AllocatedBytes(context)))
    out.blocks.clear();
  const std::optional<Shortage> shortage = ShortageAt(context);
  out.is_another_asked = shortage.has_value() && IsAsLargeAs(shortage->request_bytes, out.bytes_each);
  return out;
}

}  // namespace

LogitBlocks FindLogits(const CauseContext& context, const ProgramMemory& memory) {
  LogitBlocks out = FindLiveLogits(context, memory);
  if (out.blocks.empty()) FindRequestedLogits(context, memory, out);
  return out;
}

}  // namespace ashlar::analyses
