// A build without device code.
#include "kernels/ops/cuda/cuda_ops.h"

namespace ashlar::ops {

absl::StatusOr<std::unique_ptr<Ops>> MakeCudaOps(Workspace*, CudaOpsOptions) {
  return absl::UnimplementedError(
      "built without device code: configure the preset cuda, which needs nvcc and cuBLAS's headers");
}

}  // namespace ashlar::ops
