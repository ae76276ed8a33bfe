// The ops on a CUDA device. Work is queued on the stream; Run returns before it is done.
//
//   absl::StatusOr<std::unique_ptr<Ops>> ops = MakeCudaOps(&workspace, {.stream = stream});
//
// The workspace hands out memory of the current device in the stream's order, and outlives the ops. Products are those
// of cuBLAS, which is loaded at the first one: a program that never multiplies needs no libcublas, and one that was
// built with CUDA starts where there is none.
// Errors: kUnimplemented in a build without device code (ASHLAR_CUDA_KERNELS); kUnavailable where cuBLAS cannot be
// loaded; kInternal, with the op's and the CUDA error's name, for a launch that failed. A kernel's own failure shows at
// a later call, as with all CUDA work.
#ifndef ASHLAR_KERNELS_OPS_CUDA_CUDA_OPS_H_
#define ASHLAR_KERNELS_OPS_CUDA_CUDA_OPS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"
#include "kernels/ops/ops.h"

namespace ashlar::ops {

struct CudaOpsOptions {
  Stream stream = {};
  // What cuBLAS gets at the first product; 0: by the device (kernels/ops/scratch.h).
  std::uint64_t cublas_workspace_bytes = 0;
};

absl::StatusOr<std::unique_ptr<Ops>> MakeCudaOps(Workspace* workspace, CudaOpsOptions options = {});

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_CUDA_CUDA_OPS_H_
