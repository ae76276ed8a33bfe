#include "kernels/workloads/cuda/cuda_machine.h"

namespace ashlar::kernels {

absl::StatusOr<std::unique_ptr<Machine>> OpenCudaMachine() {
  return absl::UnimplementedError(
      "this build has no device code for CUDA: it was built without nvcc, or without "
      "ASHLAR_CUDA_KERNELS");
}

}  // namespace ashlar::kernels
