// cuBLAS, loaded when it is first needed: nothing links it, so that a program starts without it.
#ifndef ASHLAR_KERNELS_OPS_CUDA_CUBLAS_H_
#define ASHLAR_KERNELS_OPS_CUDA_CUBLAS_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/ops/kinds.h"

namespace ashlar::ops::cuda {

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

}  // namespace ashlar::ops::cuda

#endif  // ASHLAR_KERNELS_OPS_CUDA_CUBLAS_H_
