// CudaOps: elementwise ops, reductions, indices.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/ops/cuda/ops_to_launches.h"
#include "kernels/ops/half.h"
#include "kernels/ops/scratch.h"
#include "kernels/ops/view.h"

namespace ashlar::ops {

absl::StatusOr<std::unique_ptr<Ops>> MakeCudaOps(Workspace* workspace, CudaOpsOptions options) {
  return std::make_unique<cuda::CudaOps>(workspace, options);
}

namespace cuda {

absl::Status LaunchStatus(const char* op, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // clears it: the next op is not to blame
  return absl::InternalError(absl::StrCat(op, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error)));
}

Array ArrayOf(const View& view) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(view.data);
  return {view.data, view.dtype, address % static_cast<std::uintptr_t>(4 * SizeOf(view.dtype)) == 0};
}

Array ArrayOf(const std::optional<View>& view) { return view ? ArrayOf(*view) : Array(); }

Strided WalkOf(const Dims& sizes, std::initializer_list<const View*> operands) {
  const Runs runs(sizes, operands);
  Strided walk;
  walk.dims = runs.dims();
  walk.count = ElementCount(sizes);
  for (int dim = 0; dim < walk.dims; ++dim) {
    walk.size[dim] = runs.size(dim);
    for (int k = 0; k < Strided::kMostOperands; ++k) walk.stride[dim][k] = runs.stride(dim, k);
  }
  // One element lies in order.
  if (walk.count == 1) walk.stride[0][0] = 1;
  int k = 0;
  for (const View* operand : operands) walk.operand[k++] = ArrayOf(*operand);
  return walk;
}

RowShape RowShapeOf(const View& view) {
  const std::int64_t size = view.sizes.back();
  return {size == 0 ? 0 : ElementCount(view.sizes) / size, size};
}

namespace {

// The bits of a number in a dtype.
std::uint64_t BitsOf(DType dtype, double value) {
  std::uint64_t bits = 0;
  const auto put = [&](auto encoded) { std::memcpy(&bits, &encoded, sizeof encoded); };
  switch (dtype) {
    case DType::kFloat32:
      put(static_cast<float>(value));
      break;
    case DType::kFloat16:
      put(ToFloat16(static_cast<float>(value)));
      break;
    case DType::kBFloat16:
      put(ToBFloat16(static_cast<float>(value)));
      break;
    case DType::kInt64:
      put(static_cast<std::int64_t>(value));
      break;
    case DType::kInt32:
      put(static_cast<std::int32_t>(value));
      break;
    case DType::kUint8:
      put(static_cast<std::uint8_t>(value));
      break;
    case DType::kBool:
      put(static_cast<std::uint8_t>(value != 0));
      break;
  }
  return bits;
}

// The dims of `view` that `is_taken` names.
template <typename IsTaken>
View Dimmed(const View& view, const IsTaken& is_taken) {
  View taken = view;
  taken.sizes.clear();
  taken.strides.clear();
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    if (!is_taken(i)) continue;
    taken.sizes.push_back(view.sizes[i]);
    taken.strides.push_back(view.strides[i]);
  }
  return taken;
}

View WithoutDim(const View& view, int dim) {
  return Dimmed(view, [&](std::size_t i) { return i != static_cast<std::size_t>(dim); });
}

IndexedArguments IndexedOf(const View& other, const View& index, const View& table, int dim) {
  const std::size_t along = static_cast<std::size_t>(dim);
  const View rest = WithoutDim(other, dim);
  const View at_index = WithoutDim(index, dim);
  View at_table = WithoutDim(table, dim);
  at_table.sizes = rest.sizes;  // which may be shorter
  return {.walk = WalkOf(rest.sizes, {&rest, &at_index, &at_table}),
          .count = index.sizes[along],
          .table_size = table.sizes[along],
          .other_stride = other.strides[along],
          .index_stride = index.strides[along],
          .table_stride = table.strides[along]};
}

}  // namespace

absl::Status CudaOps::Do(const Fill& op) {
  return LaunchStatus(op.kName, LaunchFill(WalkOf(op.out.sizes, {&op.out}), BitsOf(op.out.dtype, op.value), stream_));
}

absl::Status CudaOps::Do(const Arange& op) {
  return LaunchStatus(op.kName, LaunchArange(WalkOf(op.out.sizes, {&op.out}), op.start, op.step, stream_));
}

absl::Status CudaOps::Do(const Copy& op) {
  return LaunchStatus(op.kName, LaunchCopy(WalkOf(op.out.sizes, {&op.out, &op.in}), stream_));
}

absl::Status CudaOps::Do(const Unary& op) {
  return LaunchStatus(op.kName, LaunchUnary(WalkOf(op.out.sizes, {&op.out, &op.in}), op.kind, stream_));
}

absl::Status CudaOps::Do(const UnaryBackward& op) {
  const Strided walk = WalkOf(op.out.sizes, {&op.out, &op.grad, &op.saved});
  return LaunchStatus(op.kName, LaunchUnaryBackward(walk, op.kind, stream_));
}

absl::Status CudaOps::Do(const Affine& op) {
  const Scalars scalars = {static_cast<float>(op.scale), static_cast<float>(op.shift)};
  return LaunchStatus(op.kName, LaunchAffine(WalkOf(op.out.sizes, {&op.out, &op.in}), scalars, stream_));
}

absl::Status CudaOps::Do(const Binary& op) {
  const Strided walk = WalkOf(op.out.sizes, {&op.out, &op.left, &op.right});
  return LaunchStatus(op.kName, LaunchBinary(walk, op.kind, static_cast<float>(op.scale), stream_));
}

absl::Status CudaOps::Do(const AddProduct& op) {
  const Strided walk = WalkOf(op.out.sizes, {&op.out, &op.base, &op.left, &op.right});
  return LaunchStatus(op.kName, LaunchAddProduct(walk, static_cast<float>(op.value), op.is_quotient, stream_));
}

absl::Status CudaOps::Do(const Compare& op) {
  const Strided walk = WalkOf(op.out.sizes, {&op.out, &op.left, &op.right});
  return LaunchStatus(op.kName, LaunchCompare(walk, op.kind, stream_));
}

absl::Status CudaOps::Do(const Where& op) {
  const Strided walk = WalkOf(op.out.sizes, {&op.out, &op.mask, &op.yes, &op.no});
  return LaunchStatus(op.kName, LaunchWhere(walk, false, 0, stream_));
}

absl::Status CudaOps::Do(const MaskedFill& op) {
  const Strided walk = WalkOf(op.out.sizes, {&op.out, &op.mask, &op.in, &op.in});
  return LaunchStatus(op.kName, LaunchWhere(walk, true, BitsOf(op.out.dtype, op.value), stream_));
}

absl::Status CudaOps::Do(const Reduce& op) {
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), ScratchBytes(op));
  if (!scratch.ok()) return scratch.status();
  const std::size_t lead = op.in.sizes.size() - op.out.sizes.size();
  const auto is_kept = [&](std::size_t i) { return i >= lead && op.out.sizes[i - lead] == op.in.sizes[i]; };
  const View in_kept = Dimmed(op.in, is_kept);
  const View out_kept = Dimmed(op.out, [&](std::size_t i) { return is_kept(i + lead); });
  const View reduced = Dimmed(op.in, [&](std::size_t i) { return !is_kept(i); });
  ReduceArguments arguments = {.kind = op.kind,
                               .kept = WalkOf(in_kept.sizes, {&out_kept, &in_kept}),
                               .reduced = WalkOf(reduced.sizes, {&reduced}),
                               .parts = PartsOf(op).parts,
                               .partial = scratch->floats()};
  arguments.is_by_columns = arguments.kept.stride[0][1] == 1 && arguments.kept.size[0] >= 16;
  return LaunchStatus(op.kName, LaunchReduce(arguments, stream_));
}

absl::Status CudaOps::Do(const MaxAlong& op) {
  const View values = WithoutDim(op.values, op.dim);
  const View indices = WithoutDim(op.indices, op.dim);
  const View in = WithoutDim(op.in, op.dim);
  const std::size_t along = static_cast<std::size_t>(op.dim);
  const Strided walk = WalkOf(values.sizes, {&values, &indices, &in});
  return LaunchStatus(op.kName, LaunchMaxAlong(walk, op.in.sizes[along], op.in.strides[along], stream_));
}

absl::Status CudaOps::Do(const Gather& op) {
  return LaunchStatus(op.kName, LaunchGather(IndexedOf(op.out, op.index, op.in, op.dim), stream_));
}

absl::Status CudaOps::Do(const ScatterAdd& op) {
  return LaunchStatus(op.kName, LaunchScatterAdd(IndexedOf(op.in, op.index, op.out, op.dim), stream_));
}

}  // namespace cuda
}  // namespace ashlar::ops
