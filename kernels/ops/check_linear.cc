// What the ops of linear.h and attention.h take.
#include "absl/strings/str_cat.h"
#include "kernels/ops/operand.h"
#include "kernels/ops/ops.h"

namespace ashlar::ops {
namespace {

Dims Leading(const View& view, int dims) { return Dims(view.sizes.begin(), view.sizes.begin() + dims); }

// The last two dims: one stride of 1, the other at least as long as the row.
Operands& CheckMatrix(Operands& operands, absl::string_view name, const View& view) {
  if (!operands.status().ok()) return operands;
  const std::size_t row = view.sizes.size() - 2;
  const std::size_t column = row + 1;
  const auto is_rows = [&](std::size_t outer, std::size_t inner) {
    return (view.strides[inner] == 1 || view.sizes[inner] <= 1) &&
           (view.sizes[outer] <= 1 || view.strides[outer] >= view.sizes[inner]);
  };
  return operands.That(is_rows(row, column) || is_rows(column, row),
                       absl::StrCat(name, " ", ToString(view), " must have a stride of 1 in one of its last two dims ",
                                    "and the other at least as long as a row: copy it first"));
}

struct Rows {
  Dims lead;          // all dims but the last
  std::int64_t size;  // of the last
};

Rows RowsOf(const View& view) { return {Leading(view, view.rank() - 1), view.sizes.back()}; }

Operands& CheckRows(Operands& operands, absl::string_view name, const View& view) {
  return operands.Float(name, view).Rank(name, view, 1, kMostDims).Dense(name, view);
}

Operands& CheckVector(Operands& operands, absl::string_view name, const std::optional<View>& view, std::int64_t size) {
  if (!view) return operands;
  return operands.Float(name, *view).Sizes(name, *view, {size}).Dense(name, *view);
}

Operands& CheckStatistic(Operands& operands, absl::string_view name, const View& view, const Rows& rows) {
  return operands.Float32(name, view).Count(name, view, ElementCount(rows.lead)).Dense(name, view);
}

}  // namespace

absl::Status Check(const MatMul& op) {
  Operands operands(op.kName);
  const int rank = op.out.rank();
  operands.Float("out", op.out).Rank("out", op.out, 2, 3).Output("out", op.out).UnitRows("out", op.out);
  operands.Float("left", op.left).SameType("left", op.left, op.out).Rank("left", op.left, rank, rank);
  operands.Float("right", op.right).SameType("right", op.right, op.out).Rank("right", op.right, rank, rank);
  if (!operands.status().ok()) return operands.status();
  const std::size_t row = op.out.sizes.size() - 2;
  const std::size_t column = row + 1;
  Dims left = op.out.sizes;
  left[column] = op.left.sizes[column];
  Dims right = op.out.sizes;
  right[row] = op.left.sizes[column];
  operands.Sizes("left", op.left, left).Sizes("right", op.right, right);
  CheckMatrix(operands, "left", op.left);
  CheckMatrix(operands, "right", op.right);
  if (op.bias) {
    operands.SameType("bias", *op.bias, op.out).Any("bias", *op.bias);
    operands.Broadcasts("bias", *op.bias, {op.out.sizes[row], op.out.sizes[column]});
  }
  return operands.status();
}

absl::Status Check(const LayerNorm& op) {
  Operands operands(op.kName);
  if (!CheckRows(operands, "in", op.in).status().ok()) return operands.status();
  const Rows rows = RowsOf(op.in);
  CheckVector(operands, "weight", op.weight, rows.size);
  CheckVector(operands, "bias", op.bias, rows.size);
  CheckRows(operands, "out", op.out).Sizes("out", op.out, op.in.sizes);
  CheckStatistic(operands, "mean", op.mean, rows);
  return CheckStatistic(operands, "rstd", op.rstd, rows).status();
}

absl::Status Check(const LayerNormBackward& op) {
  Operands operands(op.kName);
  if (!CheckRows(operands, "in", op.in).status().ok()) return operands.status();
  const Rows rows = RowsOf(op.in);
  CheckRows(operands, "grad", op.grad).Sizes("grad", op.grad, op.in.sizes);
  CheckVector(operands, "weight", op.weight, rows.size);
  CheckStatistic(operands, "mean", op.mean, rows);
  CheckStatistic(operands, "rstd", op.rstd, rows);
  if (op.grad_in) CheckRows(operands, "grad_in", *op.grad_in).Sizes("grad_in", *op.grad_in, op.in.sizes);
  CheckVector(operands, "grad_weight", op.grad_weight, rows.size);
  return CheckVector(operands, "grad_bias", op.grad_bias, rows.size).status();
}

absl::Status Check(const RmsNorm& op) {
  Operands operands(op.kName);
  if (!CheckRows(operands, "in", op.in).status().ok()) return operands.status();
  const Rows rows = RowsOf(op.in);
  CheckVector(operands, "weight", op.weight, rows.size);
  CheckRows(operands, "out", op.out).Sizes("out", op.out, op.in.sizes);
  return CheckStatistic(operands, "rstd", op.rstd, rows).status();
}

absl::Status Check(const RmsNormBackward& op) {
  Operands operands(op.kName);
  if (!CheckRows(operands, "in", op.in).status().ok()) return operands.status();
  const Rows rows = RowsOf(op.in);
  CheckRows(operands, "grad", op.grad).Sizes("grad", op.grad, op.in.sizes);
  CheckVector(operands, "weight", op.weight, rows.size);
  CheckStatistic(operands, "rstd", op.rstd, rows);
  if (op.grad_in) CheckRows(operands, "grad_in", *op.grad_in).Sizes("grad_in", *op.grad_in, op.in.sizes);
  return CheckVector(operands, "grad_weight", op.grad_weight, rows.size).status();
}

absl::Status Check(const Rotary& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).Rank("in", op.in, 4, 4).Float("out", op.out).Output("out", op.out);
  operands.Sizes("out", op.out, op.in.sizes).Float32("cos", op.cos).Float32("sin", op.sin);
  if (!operands.status().ok()) return operands.status();
  operands.That(op.in.sizes[3] % 2 == 0, "the last dim must be even");
  const Dims table = {op.in.sizes[1], op.in.sizes[3] / 2};
  return operands.Sizes("cos", op.cos, table)
      .Sizes("sin", op.sin, table)
      .Dense("cos", op.cos)
      .Dense("sin", op.sin)
      .status();
}

absl::Status Check(const Softmax& op) {
  Operands operands(op.kName);
  CheckRows(operands, "in", op.in);
  CheckRows(operands, "out", op.out).Sizes("out", op.out, op.in.sizes);
  if (op.mask) operands.Mask("mask", *op.mask).Broadcasts("mask", *op.mask, op.in.sizes);
  return operands.That(!op.is_causal || op.in.rank() >= 2, "causal needs two dims").status();
}

absl::Status Check(const SoftmaxBackward& op) {
  Operands operands(op.kName);
  CheckRows(operands, "grad", op.grad);
  CheckRows(operands, "result", op.result).Sizes("result", op.result, op.grad.sizes);
  return CheckRows(operands, "out", op.out).Sizes("out", op.out, op.grad.sizes).status();
}

absl::Status Check(const Dropout& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).Dense("in", op.in).Dense("out", op.out).Sizes("out", op.out, op.in.sizes);
  operands.SameType("out", op.out, op.in).Mask("mask", op.mask).Dense("mask", op.mask);
  return operands.Sizes("mask", op.mask, op.in.sizes).That(op.p >= 0 && op.p < 1, "p must be in [0, 1)").status();
}

absl::Status Check(const DropoutBackward& op) {
  Operands operands(op.kName);
  operands.Float("grad", op.grad).Dense("grad", op.grad).Dense("out", op.out).Sizes("out", op.out, op.grad.sizes);
  operands.SameType("out", op.out, op.grad).Mask("mask", op.mask).Dense("mask", op.mask);
  return operands.Sizes("mask", op.mask, op.grad.sizes).That(op.p >= 0 && op.p < 1, "p must be in [0, 1)").status();
}

namespace {

constexpr std::int64_t kMostHeadDim = 256;

Operands& CheckLengths(Operands& operands, absl::string_view name, const std::optional<View>& lengths,
                       std::int64_t batch) {
  if (!lengths) return operands;
  operands.That(lengths->dtype == DType::kInt32, absl::StrCat(name, " must be int32"));
  return operands.Any(name, *lengths).Sizes(name, *lengths, {batch}).Dense(name, *lengths);
}

Operands& CheckInputs(Operands& operands, const AttentionInputs& in) {
  operands.Float("query", in.query).Rank("query", in.query, 4, 4).UnitRows("query", in.query);
  operands.Float("key", in.key).Rank("key", in.key, 4, 4).UnitRows("key", in.key).SameType("key", in.key, in.query);
  operands.Any("value", in.value).UnitRows("value", in.value).SameType("value", in.value, in.query);
  if (!operands.status().ok()) return operands;
  const std::int64_t heads = in.query.sizes[1];
  const std::int64_t groups = in.key.sizes[1];
  operands.Sizes("key", in.key, {in.query.sizes[0], groups, in.key.sizes[2], in.query.sizes[3]});
  operands.Sizes("value", in.value, in.key.sizes);
  operands.That(groups > 0 && heads % groups == 0, "the query's heads must be a multiple of the key's");
  operands.That(in.query.sizes[3] <= kMostHeadDim, absl::StrCat("a head has at most ", kMostHeadDim, " elements"));
  CheckLengths(operands, "query_lengths", in.query_lengths, in.query.sizes[0]);
  CheckLengths(operands, "key_lengths", in.key_lengths, in.query.sizes[0]);
  if (in.bias) {
    operands.Float("bias", *in.bias);
    operands.Broadcasts("bias", *in.bias, {in.query.sizes[0], heads, in.query.sizes[2], in.key.sizes[2]});
  }
  return operands.That(in.dropout_p >= 0 && in.dropout_p < 1, "dropout_p must be in [0, 1)");
}

Operands& CheckLike(Operands& operands, absl::string_view name, const View& view, const View& as) {
  return operands.SameType(name, view, as).Any(name, view).Sizes(name, view, as.sizes).UnitRows(name, view);
}

}  // namespace

absl::Status Check(const TiledAttention& op) {
  Operands operands(op.kName);
  if (!CheckInputs(operands, op.inputs).status().ok()) return operands.status();
  CheckLike(operands, "out", op.out, op.inputs.query).Output("out", op.out);
  operands.Float32("log_sum_exp", op.log_sum_exp).Sizes("log_sum_exp", op.log_sum_exp, Leading(op.inputs.query, 3));
  return operands.Dense("log_sum_exp", op.log_sum_exp).status();
}

absl::Status Check(const TiledAttentionBackward& op) {
  Operands operands(op.kName);
  if (!CheckInputs(operands, op.inputs).status().ok()) return operands.status();
  CheckLike(operands, "out", op.out, op.inputs.query);
  CheckLike(operands, "grad", op.grad, op.inputs.query);
  CheckLike(operands, "grad_query", op.grad_query, op.inputs.query).Output("grad_query", op.grad_query);
  CheckLike(operands, "grad_key", op.grad_key, op.inputs.key).Output("grad_key", op.grad_key);
  CheckLike(operands, "grad_value", op.grad_value, op.inputs.key).Output("grad_value", op.grad_value);
  operands.Float32("log_sum_exp", op.log_sum_exp).Sizes("log_sum_exp", op.log_sum_exp, Leading(op.inputs.query, 3));
  return operands.Dense("log_sum_exp", op.log_sum_exp).status();
}

}  // namespace ashlar::ops
