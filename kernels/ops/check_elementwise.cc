// What the ops of elementwise.h take.
#include "absl/strings/str_cat.h"
#include "kernels/ops/operand.h"
#include "kernels/ops/ops.h"

namespace ashlar::ops {

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

}  // namespace ashlar::ops
