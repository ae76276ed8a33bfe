#include "kernels/ops/scratch.h"

#include <algorithm>
#include <utility>

namespace ashlar::ops {
namespace {

constexpr std::int64_t kLeastPart = 256;         // elements that a part sums at least
constexpr std::int64_t kMostParts = 1024;        // of an output
constexpr std::int64_t kMostPartials = 262'144;  // floats of partial sums, or one an output
constexpr std::int64_t kMostNormParts = 256;
constexpr std::int64_t kNormRows = 32;  // that a part sums at least

std::int64_t Blocks(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }
std::uint64_t Floats(std::int64_t count) { return static_cast<std::uint64_t>(count) * sizeof(float); }

std::int64_t RowCount(const View& view) {
  return view.sizes.back() == 0 ? 0 : ElementCount(view.sizes) / view.sizes.back();
}

}  // namespace

ReduceParts PartsOf(const Reduce& op) {
  ReduceParts plan = {.outputs = ElementCount(op.out.sizes)};
  if (plan.outputs == 0) return plan;
  plan.reduced = ElementCount(op.in.sizes) / plan.outputs;
  plan.parts = std::min(Blocks(plan.reduced, kLeastPart), std::max<std::int64_t>(kMostPartials / plan.outputs, 1));
  plan.parts = std::clamp<std::int64_t>(plan.parts, 1, kMostParts);
  return plan;
}

std::int64_t NormParts(std::int64_t rows) {
  return std::clamp<std::int64_t>(Blocks(rows, kNormRows), 1, kMostNormParts);
}

std::int64_t PiecesOf(absl::Span<const View> tensors) {
  std::int64_t pieces = 0;
  for (const View& tensor : tensors) pieces += Blocks(ElementCount(tensor.sizes), kListPiece);
  return pieces;
}

std::uint64_t CubBytes(std::int64_t n) { return 65'536 + 2 * static_cast<std::uint64_t>(n); }

AdafactorParts PartsOf(const AdafactorStep& op) {
  AdafactorParts plan = {.pieces =
                             std::clamp<std::int64_t>(Blocks(ElementCount(op.parameter.sizes), kListPiece), 1, 1024)};
  if (op.row) plan.parts = std::clamp<std::int64_t>(Blocks(op.parameter.sizes[0], 64), 1, 128);
  return plan;
}

std::uint64_t ScratchBytes(const Reduce& op) {
  const ReduceParts plan = PartsOf(op);
  return plan.parts > 1 ? Floats(plan.outputs * plan.parts) : 0;
}

std::uint64_t ScratchBytes(const LayerNormBackward& op) {
  const bool is_summed = op.grad_weight || op.grad_bias;
  return is_summed ? Floats(2 * NormParts(RowCount(op.in)) * op.in.sizes.back()) : 0;
}

std::uint64_t ScratchBytes(const RmsNormBackward& op) {
  return op.grad_weight ? Floats(NormParts(RowCount(op.in)) * op.in.sizes.back()) : 0;
}

// Keys and positions twice for the sort, the distinct keys and where each begins, their number, and CUB's.
std::uint64_t ScratchBytes(const EmbeddingBackward& op) {
  const std::int64_t n = ElementCount(op.indices.sizes);
  return n == 0 ? 0 : 6 * RoundUp(4 * static_cast<std::uint64_t>(n), 256) + 256 + CubBytes(n);
}

std::uint64_t ScratchBytes(const TiledAttentionBackward& op) { return Floats(ElementCount(op.log_sum_exp.sizes)); }

// Column sums by parts, sums over the tensor by pieces (of the update, of the parameter), and the mean of the rows.
std::uint64_t ScratchBytes(const AdafactorStep& op) {
  const AdafactorParts plan = PartsOf(op);
  return Floats((op.row ? plan.parts * op.parameter.sizes[1] : 0) + 2 * plan.pieces + 64);
}

std::uint64_t ScratchBytes(const ClipNorm& op) { return Floats(PiecesOf(op.gradients)); }

absl::Status DryOps::TakeScratch(std::uint64_t bytes) {
  if (bytes == 0 || !options_.takes_scratch) return absl::OkStatus();
  return Scratch::Take(workspace(), bytes).status();
}

absl::Status DryOps::Do(const MatMul&) {
  if (cublas_.data() != nullptr || options_.cublas_workspace_bytes == 0 || !options_.takes_scratch) {
    return absl::OkStatus();
  }
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), options_.cublas_workspace_bytes);
  if (!scratch.ok()) return scratch.status();
  cublas_ = *std::move(scratch);
  return absl::OkStatus();
}

}  // namespace ashlar::ops
