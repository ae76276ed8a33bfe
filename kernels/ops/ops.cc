#include "kernels/ops/ops.h"

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "kernels/ops/operand.h"

namespace ashlar::ops {

absl::StatusOr<void*> AllocatorWorkspace::Allocate(std::uint64_t bytes) {
  const absl::StatusOr<std::uint64_t> address = allocator_->AllocateAddress(bytes, stream_);
  if (!address.ok()) return address.status();
  return reinterpret_cast<void*>(*address);
}

void AllocatorWorkspace::Free(void* address) {
  ASHLAR_CHECK(allocator_->FreeAddress(reinterpret_cast<std::uint64_t>(address)));
}

absl::StatusOr<Scratch> Scratch::Take(Workspace* workspace, std::uint64_t bytes) {
  Scratch scratch;
  if (bytes == 0) return scratch;
  absl::StatusOr<void*> data = workspace->Allocate(bytes);
  if (!data.ok()) return data.status();
  scratch.workspace_ = workspace;
  scratch.data_ = *data;
  return scratch;
}

// What the ops of elementwise.h take.

const char* NameOf(UnaryKind kind) {
  static constexpr const char* kNames[] = {"neg", "abs",     "square", "sqrt", "rsqrt", "reciprocal", "exp",
                                           "log", "sigmoid", "tanh",   "relu", "silu",  "gelu",       "gelu_tanh"};
  return kNames[static_cast<int>(kind)];
}

const char* NameOf(BinaryKind kind) {
  static constexpr const char* kNames[] = {"add", "sub", "mul", "div", "maximum", "minimum"};
  return kNames[static_cast<int>(kind)];
}

bool SavesResult(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::kSqrt:
    case UnaryKind::kRsqrt:
    case UnaryKind::kReciprocal:
    case UnaryKind::kExp:
    case UnaryKind::kSigmoid:
    case UnaryKind::kTanh:
    case UnaryKind::kRelu:
      return true;
    default:
      return false;
  }
}

absl::Status Check(const Fill& op) { return Operands(op.kName).Any("out", op.out).Output("out", op.out).status(); }

absl::Status Check(const Arange& op) {
  Operands operands(op.kName);
  operands.Any("out", op.out).Rank("out", op.out, 1, 1).Output("out", op.out);
  return operands.That(IsFloat(op.out.dtype) || IsIndex(op.out.dtype), "out must be of a float or index dtype")
      .status();
}

absl::Status Check(const Copy& op) {
  Operands operands(op.kName);
  operands.Any("in", op.in).Any("out", op.out).Output("out", op.out);
  return operands.Broadcasts("in", op.in, op.out.sizes).status();
}

absl::Status Check(const Unary& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).Float("out", op.out).Output("out", op.out);
  return operands.Broadcasts("in", op.in, op.out.sizes).status();
}

absl::Status Check(const UnaryBackward& op) {
  Operands operands(op.kName);
  operands.Float("grad", op.grad).Float("saved", op.saved).Float("out", op.out).Output("out", op.out);
  return operands.Broadcasts("grad", op.grad, op.out.sizes).Broadcasts("saved", op.saved, op.out.sizes).status();
}

absl::Status Check(const Affine& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).Float("out", op.out).Output("out", op.out);
  return operands.Broadcasts("in", op.in, op.out.sizes).status();
}

absl::Status Check(const Binary& op) {
  Operands operands(op.kName);
  operands.Float("left", op.left).Float("right", op.right).Float("out", op.out).Output("out", op.out);
  operands.Broadcasts("left", op.left, op.out.sizes).Broadcasts("right", op.right, op.out.sizes);
  const bool is_scalable = op.kind == BinaryKind::kAdd || op.kind == BinaryKind::kSubtract;
  return operands.That(is_scalable || op.scale == 1, "only add and subtract take a scale").status();
}

absl::Status Check(const AddProduct& op) {
  Operands operands(op.kName);
  operands.Float("base", op.base).Float("left", op.left).Float("right", op.right).Float("out", op.out);
  operands.Output("out", op.out).Broadcasts("base", op.base, op.out.sizes);
  return operands.Broadcasts("left", op.left, op.out.sizes).Broadcasts("right", op.right, op.out.sizes).status();
}

absl::Status Check(const Compare& op) {
  Operands operands(op.kName);
  operands.Any("left", op.left).Any("right", op.right).Mask("out", op.out).Output("out", op.out);
  return operands.Broadcasts("left", op.left, op.out.sizes).Broadcasts("right", op.right, op.out.sizes).status();
}

absl::Status Check(const Where& op) {
  Operands operands(op.kName);
  operands.Mask("mask", op.mask).Any("yes", op.yes).Any("no", op.no).Any("out", op.out).Output("out", op.out);
  operands.SameType("yes", op.yes, op.out).SameType("no", op.no, op.out).Broadcasts("mask", op.mask, op.out.sizes);
  return operands.Broadcasts("yes", op.yes, op.out.sizes).Broadcasts("no", op.no, op.out.sizes).status();
}

absl::Status Check(const MaskedFill& op) {
  Operands operands(op.kName);
  operands.Any("in", op.in).Mask("mask", op.mask).Any("out", op.out).Output("out", op.out);
  operands.SameType("in", op.in, op.out).Broadcasts("mask", op.mask, op.out.sizes);
  return operands.Broadcasts("in", op.in, op.out.sizes).status();
}

absl::Status Check(const Reduce& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).Float("out", op.out).Output("out", op.out);
  return operands.Broadcasts("out", op.out, op.in.sizes).status();
}

namespace {

Dims WithSize(const Dims& sizes, int dim, std::int64_t size) {
  Dims changed = sizes;
  changed[static_cast<std::size_t>(dim)] = size;
  return changed;
}

// `index` and what is read or written at it: their sizes agree, and fit in the table but along `dim`.
Operands& CheckIndexed(Operands& operands, absl::string_view name, const View& view, const View& index,
                       const View& table, int dim) {
  operands.Index("index", index).Rank("index", index, table.rank(), table.rank()).Sizes(name, view, index.sizes);
  operands.That(dim >= 0 && dim < table.rank(), absl::StrCat("dim ", dim, " must be one of ", ToString(table)));
  if (!operands.status().ok()) return operands;
  for (int i = 0; i < table.rank(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    operands.That(i == dim || index.sizes[at] <= table.sizes[at],
                  absl::StrCat("index ", ToString(index), " must fit in ", ToString(table), " but along dim ", dim));
  }
  return operands;
}

}  // namespace

absl::Status Check(const MaxAlong& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).That(op.dim >= 0 && op.dim < op.in.rank(), "dim must be one of in's");
  if (!operands.status().ok()) return operands.status();
  operands.That(op.in.sizes[static_cast<std::size_t>(op.dim)] > 0, "in has nothing along dim");
  const Dims sizes = WithSize(op.in.sizes, op.dim, 1);
  operands.SameType("values", op.values, op.in).Any("values", op.values).Any("indices", op.indices);
  operands.Sizes("values", op.values, sizes).Sizes("indices", op.indices, sizes).Output("values", op.values);
  return operands.Output("indices", op.indices)
      .That(op.indices.dtype == DType::kInt64, "indices must be int64")
      .status();
}

absl::Status Check(const Gather& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).Float("out", op.out).Output("out", op.out);
  return CheckIndexed(operands, "out", op.out, op.index, op.in, op.dim).status();
}

absl::Status Check(const ScatterAdd& op) {
  Operands operands(op.kName);
  operands.Float("in", op.in).Float("out", op.out).Output("out", op.out);
  return CheckIndexed(operands, "in", op.in, op.index, op.out, op.dim).status();
}

// What linear layers and attention take.

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

// What losses and optimizers take.

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

absl::Status Check(const AdamWStep& op) {
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

absl::Status Check(const AdamW8BitStep& op) {
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

absl::Status Check(const SgdStep& op) {
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

absl::Status Check(const AdafactorStep& op) {
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
