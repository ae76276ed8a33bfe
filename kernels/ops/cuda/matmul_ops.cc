// CudaOps: products by cuBLAS.
#include <algorithm>

#include "kernels/ops/cuda/ops_to_launches.h"
#include "kernels/ops/scratch.h"

namespace ashlar::ops::cuda {
namespace {

CublasMatrix MatrixOf(const View& view) {
  const std::size_t row = view.sizes.size() - 2;
  const std::size_t column = row + 1;
  // Either dim may have one element, whose stride says nothing.
  const bool is_turned = view.sizes[column] > 1 && view.strides[column] != 1;
  const std::int64_t step = is_turned ? view.strides[column] : view.strides[row];
  const std::int64_t least = is_turned ? view.sizes[row] : view.sizes[column];
  return {.data = view.data,
          .is_turned = is_turned,
          .row_length = std::max({step, least, std::int64_t{1}}),
          .batch_stride = view.rank() == 3 ? view.strides[0] : 0};
}

}  // namespace

absl::Status CudaOps::OpenCublasOnce() {
  if (cublas_ != nullptr) return absl::OkStatus();
  std::uint64_t bytes = options_.cublas_workspace_bytes;
  if (bytes == 0) {
    int device = 0;
    int major = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error != cudaSuccess) return LaunchStatus(MatMul::kName, error);
    bytes = major >= 9 ? kCublasWorkspaceBytesSm90 : kCublasWorkspaceBytes;
  }
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), bytes);
  if (!scratch.ok()) return scratch.status();
  absl::StatusOr<std::unique_ptr<Cublas>> cublas = OpenCublas(stream_, scratch->data(), bytes);
  if (!cublas.ok()) return cublas.status();
  cublas_workspace_ = *std::move(scratch);
  cublas_ = *std::move(cublas);
  return absl::OkStatus();
}

absl::Status CudaOps::Do(const MatMul& op) {
  if (ElementCount(op.out.sizes) == 0) return absl::OkStatus();
  if (absl::Status status = OpenCublasOnce(); !status.ok()) return status;
  double out_scale = op.out_scale;
  if (op.bias) {
    // The bias is in `out` before the product is added.
    const absl::Status status =
        out_scale == 0
            ? Do(Copy{.in = *op.bias, .out = op.out})
            : Do(Binary{
                  .kind = BinaryKind::kAdd, .left = *op.bias, .right = op.out, .scale = out_scale, .out = op.out});
    if (!status.ok()) return status;
    out_scale = 1;
  }
  const std::size_t rank = op.out.sizes.size();
  return cublas_->Multiply({.dtype = op.out.dtype,
                            .rows = op.out.sizes[rank - 2],
                            .columns = op.out.sizes[rank - 1],
                            .depth = op.left.sizes[rank - 1],
                            .batches = rank == 3 ? op.out.sizes[0] : 1,
                            .scale = static_cast<float>(op.scale),
                            .out_scale = static_cast<float>(out_scale),
                            .left = MatrixOf(op.left),
                            .right = MatrixOf(op.right),
                            .out = MatrixOf(op.out)});
}

}  // namespace ashlar::ops::cuda
