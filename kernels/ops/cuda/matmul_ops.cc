#include <cublas_v2.h>
#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/ops/cuda/ops_to_launches.h"
#include "kernels/ops/scratch.h"

namespace ashlar::ops::cuda {
namespace {

struct Calls {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  // cublasGemmStridedBatchedEx, which the header overloads for C++.
  cublasStatus_t (*multiply)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                             const void*, cudaDataType, int, long long, const void*, cudaDataType, int, long long,
                             const void*, void*, cudaDataType, int, long long, int, cublasComputeType_t,
                             cublasGemmAlgo_t) = nullptr;
};

template <typename Call>
bool Find(void* library, const char* name, Call* call) {
  *call = reinterpret_cast<Call>(dlsym(library, name));
  return *call != nullptr;
}

// Once for the program; the library is never unloaded.
absl::StatusOr<const Calls*> LoadCublas() {
  static const absl::StatusOr<Calls> calls = []() -> absl::StatusOr<Calls> {
    const std::string name = absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR);
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const std::string error = dlerror();
      library = dlopen(absl::StrCat(ASHLAR_CUDA_LIBRARY_DIR, "/", name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        return absl::UnavailableError(
            absl::StrCat("matmul: cuBLAS cannot be loaded: ", error, ": put its folder on LD_LIBRARY_PATH"));
      }
    }
    Calls found;
    if (!Find(library, "cublasCreate_v2", &found.create) || !Find(library, "cublasDestroy_v2", &found.destroy) ||
        !Find(library, "cublasSetStream_v2", &found.set_stream) ||
        !Find(library, "cublasSetWorkspace_v2", &found.set_workspace) ||
        !Find(library, "cublasGemmStridedBatchedEx", &found.multiply)) {
      return absl::UnavailableError(absl::StrCat("matmul: ", name, " lacks a call: ", dlerror()));
    }
    return found;
  }();
  if (!calls.ok()) return calls.status();
  return &*calls;
}

absl::Status ToStatus(const char* call, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("matmul: ", call, " returned cublasStatus_t ", static_cast<int>(status)));
}

cudaDataType_t TypeOf(DType dtype) {
  if (dtype == DType::kFloat16) return CUDA_R_16F;
  return dtype == DType::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

class LoadedCublas final : public Cublas {
 public:
  LoadedCublas(const Calls* calls, cublasHandle_t handle) : calls_(calls), handle_(handle) {}
  ~LoadedCublas() override { calls_->destroy(handle_); }

  // cuBLAS counts by columns: a row-order matrix is its transpose there, and out^T = right^T left^T.
  absl::Status Multiply(const CublasProduct& p) override {
    const cudaDataType_t type = TypeOf(p.dtype);
    const auto size = [](std::int64_t value) { return static_cast<int>(value); };
    const auto order = [](const CublasMatrix& m) { return m.is_turned ? CUBLAS_OP_T : CUBLAS_OP_N; };
    return ToStatus("cublasGemmStridedBatchedEx",
                    calls_->multiply(handle_, order(p.right), order(p.left), size(p.columns), size(p.rows),
                                     size(p.depth), &p.scale, p.right.data, type, size(p.right.row_length),
                                     p.right.batch_stride, p.left.data, type, size(p.left.row_length),
                                     p.left.batch_stride, &p.out_scale, p.out.data, type, size(p.out.row_length),
                                     p.out.batch_stride, size(p.batches), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

 private:
  const Calls* calls_;
  cublasHandle_t handle_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Cublas>> OpenCublas(cudaStream_t stream, void* workspace, std::size_t workspace_bytes) {
  const absl::StatusOr<const Calls*> calls = LoadCublas();
  if (!calls.ok()) return calls.status();
  cublasHandle_t handle = nullptr;
  if (absl::Status status = ToStatus("cublasCreate", (*calls)->create(&handle)); !status.ok()) return status;
  auto cublas = std::make_unique<LoadedCublas>(*calls, handle);
  absl::Status status = ToStatus("cublasSetStream", (*calls)->set_stream(handle, stream));
  if (!status.ok()) return status;
  status = ToStatus("cublasSetWorkspace", (*calls)->set_workspace(handle, workspace, workspace_bytes));
  if (!status.ok()) return status;
  return cublas;
}

// CudaOps: products by cuBLAS.

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
