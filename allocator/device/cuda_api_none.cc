// In place of cuda_api_system.cc where the build has no CUDA.
#include "allocator/device/cuda_api.h"

namespace ashlar::device {

absl::StatusOr<CudaApi*> SystemCudaApi() {
  return absl::UnimplementedError(
      "this build has no CUDA: configure with the toolkit on PATH and ASHLAR_CUDA=AUTO or ON");
}

}  // namespace ashlar::device
