// CudaOps: norms, softmax, dropout, attention, embedding and losses.
#include "absl/strings/str_cat.h"
#include "kernels/ops/cuda/ops_to_launches.h"
#include "kernels/ops/philox.h"
#include "kernels/ops/scratch.h"

namespace ashlar::ops::cuda {
namespace {

// A layer norm has a bias and a mean besides.
template <typename Op>
absl::Status DoNormBackward(const Op& op, const Array& grad_bias, const float* mean, Workspace* workspace,
                            cudaStream_t stream) {
  const auto [rows, size] = RowShapeOf(op.in);
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace, ScratchBytes(op));
  if (!scratch.ok()) return scratch.status();
  const NormBackwardArguments arguments = {.rows = rows,
                                           .size = size,
                                           .grad = ArrayOf(op.grad),
                                           .in = ArrayOf(op.in),
                                           .weight = ArrayOf(op.weight),
                                           .grad_in = ArrayOf(op.grad_in),
                                           .grad_weight = ArrayOf(op.grad_weight),
                                           .grad_bias = grad_bias,
                                           .mean = mean,
                                           .rstd = FloatsOf(op.rstd),
                                           .partial = scratch->floats(),
                                           .parts = NormParts(rows)};
  return LaunchStatus(op.kName, LaunchNormBackward(arguments, stream));
}

}  // namespace

absl::Status CudaOps::Do(const LayerNorm& op) {
  const auto [rows, size] = RowShapeOf(op.in);
  const NormArguments arguments = {.rows = rows,
                                   .size = size,
                                   .in = ArrayOf(op.in),
                                   .weight = ArrayOf(op.weight),
                                   .bias = ArrayOf(op.bias),
                                   .out = ArrayOf(op.out),
                                   .epsilon = static_cast<float>(op.epsilon),
                                   .mean = FloatsOf(op.mean),
                                   .rstd = FloatsOf(op.rstd)};
  return LaunchStatus(op.kName, LaunchNorm(arguments, stream_));
}

absl::Status CudaOps::Do(const RmsNorm& op) {
  const auto [rows, size] = RowShapeOf(op.in);
  const NormArguments arguments = {.rows = rows,
                                   .size = size,
                                   .in = ArrayOf(op.in),
                                   .weight = ArrayOf(op.weight),
                                   .bias = {},
                                   .out = ArrayOf(op.out),
                                   .epsilon = static_cast<float>(op.epsilon),
                                   .mean = nullptr,
                                   .rstd = FloatsOf(op.rstd)};
  return LaunchStatus(op.kName, LaunchNorm(arguments, stream_));
}

absl::Status CudaOps::Do(const LayerNormBackward& op) {
  return DoNormBackward(op, ArrayOf(op.grad_bias), FloatsOf(op.mean), workspace(), stream_);
}

absl::Status CudaOps::Do(const RmsNormBackward& op) { return DoNormBackward(op, {}, nullptr, workspace(), stream_); }

absl::Status CudaOps::Do(const Rotary& op) {
  RotaryArguments arguments = {.walk = {},
                               .cos = FloatsOf(op.cos),
                               .sin = FloatsOf(op.sin),
                               .is_interleaved = op.is_interleaved,
                               .is_inverse = op.is_inverse};
  arguments.walk.count = ElementCount(op.out.sizes);
  arguments.walk.operand[0] = ArrayOf(op.out);
  arguments.walk.operand[1] = ArrayOf(op.in);
  for (std::size_t dim = 0; dim < 4; ++dim) {
    arguments.walk.size[dim] = op.in.sizes[dim];
    arguments.walk.stride[dim][0] = op.out.strides[dim];
    arguments.walk.stride[dim][1] = op.in.strides[dim];
  }
  return LaunchStatus(op.kName, LaunchRotary(arguments, stream_));
}

absl::Status CudaOps::Do(const Softmax& op) {
  const auto [rows, size] = RowShapeOf(op.in);
  SoftmaxArguments arguments;
  arguments.rows = rows;
  arguments.size = size;
  arguments.in = ArrayOf(op.in);
  arguments.out = ArrayOf(op.out);
  arguments.scale = static_cast<float>(op.scale);
  arguments.is_log = op.is_log;
  arguments.is_causal = op.is_causal;
  if (op.in.rank() >= 2) arguments.queries = op.in.sizes[op.in.sizes.size() - 2];
  if (op.mask) {
    const View mask = *BroadcastTo(*op.mask, op.in.sizes);
    arguments.mask = static_cast<const std::uint8_t*>(mask.data);
    arguments.mask_dims = mask.rank() - 1;
    for (std::size_t dim = 0; dim + 1 < mask.sizes.size(); ++dim) {
      arguments.mask_size[dim] = mask.sizes[dim];
      arguments.mask_stride[dim] = mask.strides[dim];
    }
    arguments.mask_step = mask.strides.back();
  }
  return LaunchStatus(op.kName, LaunchSoftmax(arguments, stream_));
}

absl::Status CudaOps::Do(const SoftmaxBackward& op) {
  const auto [rows, size] = RowShapeOf(op.grad);
  const SoftmaxBackwardArguments arguments = {.rows = rows,
                                              .size = size,
                                              .grad = ArrayOf(op.grad),
                                              .result = ArrayOf(op.result),
                                              .out = ArrayOf(op.out),
                                              .scale = static_cast<float>(op.scale),
                                              .is_log = op.is_log};
  return LaunchStatus(op.kName, LaunchSoftmaxBackward(arguments, stream_));
}

absl::Status CudaOps::Do(const Dropout& op) {
  const DropoutArguments arguments = {.count = ElementCount(op.in.sizes),
                                      .in = ArrayOf(op.in),
                                      .out = ArrayOf(op.out),
                                      .mask = static_cast<std::uint8_t*>(op.mask.data),
                                      .threshold = DropThreshold(op.p),
                                      .factor = static_cast<float>(1 / (1 - op.p)),
                                      .seed = op.key.seed,
                                      .offset = op.key.offset};
  return LaunchStatus(op.kName, LaunchDropout(arguments, stream_));
}

absl::Status CudaOps::Do(const DropoutBackward& op) {
  const DropoutArguments arguments = {.count = ElementCount(op.grad.sizes),
                                      .in = ArrayOf(op.grad),
                                      .out = ArrayOf(op.out),
                                      .mask = static_cast<std::uint8_t*>(op.mask.data),
                                      .factor = static_cast<float>(1 / (1 - op.p))};
  return LaunchStatus(op.kName, LaunchDropoutBackward(arguments, stream_));
}

namespace {

HeadRows HeadRowsOf(const View& view) { return {view.data, view.strides[0], view.strides[1], view.strides[2]}; }

AttentionArguments AttentionOf(const AttentionInputs& in, const View& out, const View& log_sum_exp) {
  AttentionArguments arguments;
  arguments.dtype = in.query.dtype;
  arguments.batch = static_cast<int>(in.query.sizes[0]);
  arguments.heads = static_cast<int>(in.query.sizes[1]);
  arguments.key_heads = static_cast<int>(in.key.sizes[1]);
  arguments.queries = static_cast<int>(in.query.sizes[2]);
  arguments.keys = static_cast<int>(in.key.sizes[2]);
  arguments.size = static_cast<int>(in.query.sizes[3]);
  arguments.query = HeadRowsOf(in.query);
  arguments.key = HeadRowsOf(in.key);
  arguments.value = HeadRowsOf(in.value);
  arguments.out = HeadRowsOf(out);
  if (in.query_lengths) arguments.query_lengths = static_cast<const std::int32_t*>(in.query_lengths->data);
  if (in.key_lengths) arguments.key_lengths = static_cast<const std::int32_t*>(in.key_lengths->data);
  arguments.scale = static_cast<float>(in.scale);
  arguments.is_causal = in.is_causal;
  arguments.threshold = DropThreshold(in.dropout_p);
  arguments.keep_factor = static_cast<float>(1 / (1 - in.dropout_p));
  arguments.seed = in.random.seed;
  arguments.offset = in.random.offset;
  arguments.log_sum_exp = FloatsOf(log_sum_exp);
  return arguments;
}

absl::Status CheckBias(const char* op, const AttentionInputs& in) {
  if (!in.bias) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(op, ": a bias of the scores is added on the host alone"));
}

}  // namespace

absl::Status CudaOps::Do(const TiledAttention& op) {
  if (absl::Status status = CheckBias(op.kName, op.inputs); !status.ok()) return status;
  return LaunchStatus(op.kName, LaunchAttention(AttentionOf(op.inputs, op.out, op.log_sum_exp), stream_));
}

absl::Status CudaOps::Do(const TiledAttentionBackward& op) {
  if (absl::Status status = CheckBias(op.kName, op.inputs); !status.ok()) return status;
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), ScratchBytes(op));
  if (!scratch.ok()) return scratch.status();
  AttentionArguments arguments = AttentionOf(op.inputs, op.out, op.log_sum_exp);
  arguments.grad = HeadRowsOf(op.grad);
  arguments.grad_query = HeadRowsOf(op.grad_query);
  arguments.grad_key = HeadRowsOf(op.grad_key);
  arguments.grad_value = HeadRowsOf(op.grad_value);
  arguments.delta = scratch->floats();
  return LaunchStatus(op.kName, LaunchAttentionBackward(arguments, stream_));
}

absl::Status CudaOps::Do(const Embedding& op) {
  const EmbeddingArguments arguments = {.count = ElementCount(op.indices.sizes),
                                        .vocabulary = op.weight.sizes[0],
                                        .size = op.weight.sizes[1],
                                        .indices = ArrayOf(op.indices),
                                        .weight = ArrayOf(op.weight),
                                        .out = ArrayOf(op.out)};
  return LaunchStatus(op.kName, LaunchEmbedding(arguments, stream_));
}

absl::Status CudaOps::Do(const EmbeddingBackward& op) {
  EmbeddingBackwardArguments arguments = {.count = ElementCount(op.indices.sizes),
                                          .vocabulary = op.grad_weight.sizes[0],
                                          .size = op.grad_weight.sizes[1],
                                          .padding_index = op.padding_index,
                                          .is_accumulated = op.is_accumulated,
                                          .indices = ArrayOf(op.indices),
                                          .grad = ArrayOf(op.grad),
                                          .grad_weight = ArrayOf(op.grad_weight)};
  constexpr std::int64_t kMost = 0x7fffffff;
  if (arguments.count > kMost || arguments.vocabulary >= kMost) {
    return absl::InvalidArgumentError("embedding_backward: at most 2^31 - 1 indices and rows: split the batch");
  }
  if (!op.is_accumulated) {
    if (absl::Status status = Do(Fill{.out = op.grad_weight, .value = 0}); !status.ok()) return status;
  }
  if (arguments.count == 0) return absl::OkStatus();
  std::size_t asked = 0;
  if (cudaError_t error = AskCubBytes(arguments.count, &asked); error != cudaSuccess) {
    return LaunchStatus(op.kName, error);
  }
  const std::uint64_t bound = CubBytes(arguments.count);
  const std::uint64_t more = asked > bound ? asked - bound : 0;
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), ScratchBytes(op) + more);
  if (!scratch.ok()) return scratch.status();
  arguments.scratch = scratch->data();
  arguments.cub_bytes = static_cast<std::size_t>(bound + more);
  return LaunchStatus(op.kName, LaunchEmbeddingBackward(arguments, stream_));
}

absl::Status CudaOps::Do(const CountTargets& op) {
  LossArguments arguments;
  arguments.rows = ElementCount(op.targets.sizes);
  arguments.ignore_index = op.ignore_index;
  arguments.targets = ArrayOf(op.targets);
  arguments.total = FloatsOf(op.total);
  return LaunchStatus(op.kName, LaunchCountTargets(arguments, stream_));
}

namespace {

LossArguments LossOf(const View& values, const View& targets, std::int64_t ignore_index, const View& total) {
  LossArguments arguments;
  arguments.rows = values.sizes[0];
  arguments.classes = values.sizes[1];
  arguments.ignore_index = ignore_index;
  arguments.values = ArrayOf(values);
  arguments.targets = ArrayOf(targets);
  arguments.total = FloatsOf(total);
  return arguments;
}

}  // namespace

absl::Status CudaOps::Do(const NllLoss& op) {
  LossArguments arguments = LossOf(op.log_probabilities, op.targets, op.ignore_index, op.total);
  arguments.loss = FloatsOf(op.loss);
  return LaunchStatus(op.kName, LaunchNllLoss(arguments, stream_));
}

absl::Status CudaOps::Do(const NllLossBackward& op) {
  if (absl::Status status = Do(Fill{.out = op.out, .value = 0}); !status.ok()) return status;
  LossArguments arguments = LossOf(op.out, op.targets, op.ignore_index, op.total);
  arguments.out = ArrayOf(op.out);
  arguments.grad_loss = FloatsOf(op.grad_loss);
  return LaunchStatus(op.kName, LaunchNllLossBackward(arguments, stream_));
}

absl::Status CudaOps::Do(const CrossEntropy& op) {
  LossArguments arguments = LossOf(op.logits, op.targets, op.ignore_index, op.total);
  arguments.row_loss = FloatsOf(op.row_loss);
  arguments.log_sum_exp = FloatsOf(op.log_sum_exp);
  arguments.loss = FloatsOf(op.loss);
  return LaunchStatus(op.kName, LaunchCrossEntropy(arguments, stream_));
}

absl::Status CudaOps::Do(const CrossEntropyBackward& op) {
  LossArguments arguments = LossOf(op.logits, op.targets, op.ignore_index, op.total);
  arguments.log_sum_exp = FloatsOf(op.log_sum_exp);
  arguments.grad_loss = FloatsOf(op.grad_loss);
  arguments.out = ArrayOf(op.out);
  return LaunchStatus(op.kName, LaunchCrossEntropyBackward(arguments, stream_));
}

}  // namespace ashlar::ops::cuda
