// A build without device code.
#include "kernels/ops/cuda/cuda_ops.h"

namespace ashlar::ops {

absl::StatusOr<std::unique_ptr<Ops>> MakeCudaOps(Workspace*, CudaOpsOptions) {
  return absl::UnimplementedError(
      "built without device code: configure with ASHLAR_CUDA and ASHLAR_CUDA_KERNELS on, where nvcc is found");
}

}  // namespace ashlar::ops
