#include "kernels/ops/linear_cross_entropy.h"

#include <algorithm>

#include "kernels/ops/operand.h"

namespace ashlar::ops {
namespace {

// Rows [begin, begin + count) of a contiguous view.
View SomeRows(const View& view, std::int64_t begin, std::int64_t count) {
  View rows = view;
  rows.sizes[0] = count;
  rows.data = static_cast<char*>(view.data) + begin * view.strides[0] * SizeOf(view.dtype);
  return rows;
}

View Turned(View view) {
  std::swap(view.sizes[0], view.sizes[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

absl::Status CheckBuffers(const LinearCrossEntropy& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).Rank("in", op.in, 2, 2).Dense("in", op.in);
  operands.Rank("weight", op.weight, 2, 2).Dense("weight", op.weight).Rank("logits", op.logits, 2, 2);
  operands.Index("targets", op.targets).Dense("logits", op.logits).Float32("chunk_loss", op.chunk_loss);
  operands.Float32("loss", op.loss).Count("loss", op.loss, 1);
  if (!operands.status().ok()) return operands.status();
  operands.That(op.logits.sizes[0] > 0, "logits must have a row at least")
      .Sizes("targets", op.targets, {op.in.sizes[0]});
  operands.Sizes("chunk_loss", op.chunk_loss, {2}).Dense("chunk_loss", op.chunk_loss).Dense("targets", op.targets);
  operands.Sizes("row_loss", op.row_loss, {op.logits.sizes[0]}).Dense("row_loss", op.row_loss);
  operands.Sizes("log_sum_exp", op.log_sum_exp, {op.logits.sizes[0]}).Dense("log_sum_exp", op.log_sum_exp);
  operands.Sizes("grad_in", op.grad_in, op.in.sizes).Dense("grad_in", op.grad_in);
  return operands.Sizes("grad_weight", op.grad_weight, op.weight.sizes).status();
}

// Adds one chunk to the loss and both gradients. chunk_loss[0] is its mean loss and chunk_loss[1] its targets.
absl::Status RunChunk(Ops& ops, const LinearCrossEntropy& op, std::int64_t begin, std::int64_t count) {
  const View in = SomeRows(op.in, begin, count);
  const View logits = SomeRows(op.logits, 0, count);
  const View targets = SomeRows(op.targets, begin, count);
  const View row_loss = SomeRows(op.row_loss, 0, count);
  const View log_sum_exp = SomeRows(op.log_sum_exp, 0, count);
  const View mean = SomeRows(op.chunk_loss, 0, 1);
  const View counted = SomeRows(op.chunk_loss, 1, 1);
  absl::Status status = ops.Run(MatMul{.left = in, .right = Turned(op.weight), .out = logits});
  if (!status.ok()) return status;
  status = ops.Run(CrossEntropy{.logits = logits,
                                .targets = targets,
                                .ignore_index = op.ignore_index,
                                .row_loss = row_loss,
                                .log_sum_exp = log_sum_exp,
                                .loss = mean,
                                .total = counted});
  if (!status.ok()) return status;
  // The sum, not the mean: a chunk may have no target at all.
  const View sum = Contiguous(mean.data, DType::kFloat32, {});
  status = ops.Run(Reduce{.kind = ReduceKind::kSum, .in = row_loss, .out = sum});
  if (!status.ok()) return status;
  const View loss = Contiguous(op.loss.data, DType::kFloat32, {});
  status = ops.Run(Binary{.kind = BinaryKind::kAdd, .left = loss, .right = sum, .out = loss});
  if (!status.ok()) return status;
  const View one = Contiguous(counted.data, DType::kFloat32, {});
  status = ops.Run(Fill{.out = one, .value = 1});
  if (!status.ok()) return status;
  status = ops.Run(CrossEntropyBackward{.grad_loss = one,
                                        .logits = logits,
                                        .targets = targets,
                                        .ignore_index = op.ignore_index,
                                        .log_sum_exp = log_sum_exp,
                                        .total = op.total,
                                        .out = logits});
  if (!status.ok()) return status;
  status = ops.Run(MatMul{.left = logits, .right = op.weight, .out = SomeRows(op.grad_in, begin, count)});
  if (!status.ok()) return status;
  return ops.Run(
      MatMul{.left = Turned(logits), .right = in, .out_scale = begin == 0 ? 0.0 : 1.0, .out = op.grad_weight});
}

}  // namespace

absl::Status RunLinearCrossEntropy(Ops& ops, const LinearCrossEntropy& op) {
  absl::Status status = CheckBuffers(op);
  if (!status.ok()) return status;
  const View loss = Contiguous(op.loss.data, DType::kFloat32, {});
  const View total = Contiguous(op.total.data, DType::kFloat32, {});
  status = ops.Run(CountTargets{.targets = op.targets, .ignore_index = op.ignore_index, .total = op.total});
  if (!status.ok()) return status;
  status = ops.Run(Fill{.out = loss, .value = 0});
  if (!status.ok()) return status;
  if (op.in.sizes[0] == 0) status = ops.Run(Fill{.out = op.grad_weight, .value = 0});
  const std::int64_t chunk = op.logits.sizes[0];
  for (std::int64_t begin = 0; status.ok() && begin < op.in.sizes[0]; begin += chunk) {
    status = RunChunk(ops, op, begin, std::min(chunk, op.in.sizes[0] - begin));
  }
  if (!status.ok()) return status;
  return ops.Run(Binary{.kind = BinaryKind::kDivide, .left = loss, .right = total, .out = loss});
}

}  // namespace ashlar::ops
