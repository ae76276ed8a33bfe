// What the ops of loss.h and optimizer.h take.
#include "kernels/ops/operand.h"
#include "kernels/ops/ops.h"

namespace ashlar::ops {
namespace {

Operands& CheckOne(Operands& operands, absl::string_view name, const View& view) {
  return operands.Float32(name, view).Count(name, view, 1);
}

// (N, V) contiguous and a target for each row.
Operands& CheckClasses(Operands& operands, absl::string_view name, const View& table, const View& targets) {
  operands.Float(name, table).Rank(name, table, 2, 2).Dense(name, table).Index("targets", targets);
  if (operands.status().ok()) operands.Sizes("targets", targets, {table.sizes[0]});
  return operands.Dense("targets", targets);
}

// One optimizer tensor: contiguous, as many elements as the parameter.
Operands& CheckAsMany(Operands& operands, absl::string_view name, const View& view, const View& parameter) {
  return operands.Any(name, view).Count(name, view, ElementCount(parameter.sizes)).Dense(name, view);
}

Operands& CheckPair(Operands& operands, const View& parameter, const View& gradient) {
  operands.Float("parameter", parameter).Dense("parameter", parameter).Output("parameter", parameter);
  return CheckAsMany(operands.Float("gradient", gradient), "gradient", gradient, parameter);
}

}  // namespace

absl::Status Check(const Embedding& op) {
  Operands operands(op.kName);
  operands.Float("weight", op.weight).Rank("weight", op.weight, 2, 2).Dense("weight", op.weight);
  operands.Index("indices", op.indices).Dense("indices", op.indices).SameType("out", op.out, op.weight);
  if (!operands.status().ok()) return operands.status();
  Dims sizes = op.indices.sizes;
  sizes.push_back(op.weight.sizes[1]);
  return operands.Any("out", op.out).Sizes("out", op.out, sizes).Dense("out", op.out).status();
}

absl::Status Check(const EmbeddingBackward& op) {
  Operands operands(op.kName);
  operands.Float("grad_weight", op.grad_weight).Rank("grad_weight", op.grad_weight, 2, 2);
  operands.Dense("grad_weight", op.grad_weight).Index("indices", op.indices).Dense("indices", op.indices);
  if (!operands.status().ok()) return operands.status();
  Dims sizes = op.indices.sizes;
  sizes.push_back(op.grad_weight.sizes[1]);
  return operands.Float("grad", op.grad).Sizes("grad", op.grad, sizes).Dense("grad", op.grad).status();
}

absl::Status Check(const CountTargets& op) {
  Operands operands(op.kName);
  operands.Index("targets", op.targets).Dense("targets", op.targets);
  return CheckOne(operands, "total", op.total).status();
}

absl::Status Check(const NllLoss& op) {
  Operands operands(op.kName);
  CheckClasses(operands, "log_probabilities", op.log_probabilities, op.targets);
  CheckOne(operands, "loss", op.loss);
  return CheckOne(operands, "total", op.total).status();
}

absl::Status Check(const NllLossBackward& op) {
  Operands operands(op.kName);
  CheckClasses(operands, "out", op.out, op.targets);
  CheckOne(operands, "grad_loss", op.grad_loss);
  return CheckOne(operands, "total", op.total).status();
}

absl::Status Check(const CrossEntropy& op) {
  Operands operands(op.kName);
  CheckClasses(operands, "logits", op.logits, op.targets);
  operands.Float32("row_loss", op.row_loss).Sizes("row_loss", op.row_loss, op.targets.sizes);
  operands.Float32("log_sum_exp", op.log_sum_exp).Sizes("log_sum_exp", op.log_sum_exp, op.targets.sizes);
  operands.Dense("row_loss", op.row_loss).Dense("log_sum_exp", op.log_sum_exp);
  CheckOne(operands, "loss", op.loss);
  return CheckOne(operands, "total", op.total).status();
}

absl::Status Check(const CrossEntropyBackward& op) {
  Operands operands(op.kName);
  CheckClasses(operands, "logits", op.logits, op.targets);
  operands.Float("out", op.out).Sizes("out", op.out, op.logits.sizes).Dense("out", op.out);
  operands.Float32("log_sum_exp", op.log_sum_exp).Sizes("log_sum_exp", op.log_sum_exp, op.targets.sizes);
  operands.Dense("log_sum_exp", op.log_sum_exp);
  CheckOne(operands, "grad_loss", op.grad_loss);
  return CheckOne(operands, "total", op.total).status();
}

absl::Status Check(const AdamW& op) {
  Operands operands(op.kName);
  for (const AdamWTensor& tensor : op.tensors) {
    CheckPair(operands, tensor.parameter, tensor.gradient);
    CheckAsMany(operands.Float32("first", tensor.first), "first", tensor.first, tensor.parameter);
    CheckAsMany(operands.Float32("second", tensor.second), "second", tensor.second, tensor.parameter);
  }
  for (const std::optional<View>& one : {op.on_device.inverse_scale, op.on_device.found_infinite, op.on_device.step}) {
    if (one) CheckOne(operands, "a value on the device", *one);
  }
  return operands.That(op.step >= 1, "steps count from 1").status();
}

absl::Status Check(const AdamW8Bit& op) {
  Operands operands(op.kName);
  for (const AdamW8BitTensor& tensor : op.tensors) {
    CheckPair(operands, tensor.parameter, tensor.gradient);
    const std::int64_t blocks = (ElementCount(tensor.parameter.sizes) + kBlock8Bit - 1) / kBlock8Bit;
    CheckAsMany(operands, "first", tensor.first, tensor.parameter);
    CheckAsMany(operands, "second", tensor.second, tensor.parameter);
    operands.That(tensor.first.dtype == DType::kUint8 && tensor.second.dtype == DType::kUint8, "codes must be uint8");
    operands.Float32("first_scale", tensor.first_scale).Count("first_scale", tensor.first_scale, blocks);
    operands.Float32("second_scale", tensor.second_scale).Count("second_scale", tensor.second_scale, blocks);
    operands.Dense("first_scale", tensor.first_scale).Dense("second_scale", tensor.second_scale);
  }
  return operands.That(op.step >= 1, "steps count from 1").status();
}

absl::Status Check(const Sgd& op) {
  Operands operands(op.kName);
  for (const SgdTensor& tensor : op.tensors) {
    CheckPair(operands, tensor.parameter, tensor.gradient);
    operands.That(tensor.momentum.has_value() == (op.momentum != 0), "a tensor has a momentum where momentum is not 0");
    if (tensor.momentum) {
      CheckAsMany(operands.Float32("momentum", *tensor.momentum), "momentum", *tensor.momentum, tensor.parameter);
    }
  }
  return operands.status();
}

absl::Status Check(const Adafactor& op) {
  Operands operands(op.kName);
  CheckPair(operands, op.parameter, op.gradient);
  const bool is_factored = op.row && op.column && !op.second;
  const bool is_full = !op.row && !op.column && op.second;
  operands.That(is_factored || is_full, "state is row and column, or second");
  if (!operands.status().ok()) return operands.status();
  if (is_full) return CheckAsMany(operands.Float32("second", *op.second), "second", *op.second, op.parameter).status();
  operands.Rank("parameter", op.parameter, 2, 2).Float32("row", *op.row).Float32("column", *op.column);
  if (!operands.status().ok()) return operands.status();
  operands.Count("row", *op.row, op.parameter.sizes[0]).Count("column", *op.column, op.parameter.sizes[1]);
  return operands.Dense("row", *op.row).Dense("column", *op.column).status();
}

absl::Status Check(const ClipNorm& op) {
  Operands operands(op.kName);
  for (const View& gradient : op.gradients) operands.Float("gradient", gradient).Dense("gradient", gradient);
  return CheckOne(operands, "norm", op.norm).status();
}

absl::Status Check(const Unscale& op) {
  Operands operands(op.kName);
  for (const View& gradient : op.gradients) operands.Float("gradient", gradient).Dense("gradient", gradient);
  CheckOne(operands, "inverse_scale", op.inverse_scale);
  return CheckOne(operands, "found_infinite", op.found_infinite).status();
}

}  // namespace ashlar::ops
