#include "kernels/workloads/cuda/cuda_machine.h"

namespace ashlar::kernels {

absl::StatusOr<std::unique_ptr<Machine>> OpenCudaMachine() {
  return absl::UnimplementedError(
      "this build has no device code for CUDA: configure the preset cuda, which needs nvcc and cuBLAS's headers");
}

}  // namespace ashlar::kernels
