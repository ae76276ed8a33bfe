// CudaOps: from ops to launches. Its parts: elementwise_ops.cc, row_ops.cc, matmul_ops.cc, list_ops.cc.
#ifndef ASHLAR_KERNELS_OPS_CUDA_OPS_TO_LAUNCHES_H_
#define ASHLAR_KERNELS_OPS_CUDA_OPS_TO_LAUNCHES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/ops/cuda/cuda_ops.h"
#include "kernels/ops/cuda/launch.h"
#include "kernels/ops/kinds.h"
#include "kernels/ops/ops.h"

namespace ashlar::ops::cuda {

// cuBLAS, loaded when it is first needed: nothing links it, so that a program starts without it.

// A row-order matrix of a batch: turned, its columns lie in order instead.
struct CublasMatrix {
  void* data = nullptr;
  bool is_turned = false;
  std::int64_t row_length = 1;    // elements from one row (turned: column) to the next
  std::int64_t batch_stride = 0;  // elements
};

struct CublasProduct {
  DType dtype = DType::kFloat32;
  std::int64_t rows = 0, columns = 0, depth = 0, batches = 1;
  float scale = 1, out_scale = 0;
  CublasMatrix left, right, out;
};

class Cublas {
 public:
  virtual ~Cublas() = default;
  virtual absl::Status Multiply(const CublasProduct& product) = 0;
};

// A handle on the stream that works in `workspace`. kUnavailable: no libcublas, or one that lacks a call.
absl::StatusOr<std::unique_ptr<Cublas>> OpenCublas(cudaStream_t stream, void* workspace, std::size_t workspace_bytes);

class CudaOps final : public Ops {
 public:
  CudaOps(Workspace* workspace, CudaOpsOptions options)
      : Ops(workspace), options_(options), stream_(reinterpret_cast<cudaStream_t>(Handle(options.stream))) {}

 protected:
#define ASHLAR_OVERRIDE_DO(Op) absl::Status Do(const Op& op) override;
  ASHLAR_FOR_EACH_OP(ASHLAR_OVERRIDE_DO)
#undef ASHLAR_OVERRIDE_DO

 private:
  absl::Status OpenCublasOnce();

  CudaOpsOptions options_;
  cudaStream_t stream_;
  Scratch cublas_workspace_;
  std::unique_ptr<Cublas> cublas_;
};

// "softmax: cudaErrorInvalidValue: invalid argument".
absl::Status LaunchStatus(const char* op, cudaError_t error);

Array ArrayOf(const View& view);
Array ArrayOf(const std::optional<View>& view);  // nothing: data nullptr
inline float* FloatsOf(const View& view) { return static_cast<float*>(view.data); }

// Operands of `sizes`, which each broadcasts to, merged; the first is the output.
Strided WalkOf(const Dims& sizes, std::initializer_list<const View*> operands);

struct RowShape {
  std::int64_t rows;
  std::int64_t size;  // of the last dim
};
RowShape RowShapeOf(const View& view);

}  // namespace ashlar::ops::cuda

#endif  // ASHLAR_KERNELS_OPS_CUDA_OPS_TO_LAUNCHES_H_
