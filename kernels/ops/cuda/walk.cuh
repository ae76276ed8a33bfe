// Where element i of a walk lies in each operand.
#ifndef ASHLAR_KERNELS_OPS_CUDA_WALK_CUH_
#define ASHLAR_KERNELS_OPS_CUDA_WALK_CUH_

#include <cstdint>

#include "kernels/ops/cuda/launch.h"

namespace ashlar::ops::cuda {

__device__ inline void OffsetsOf(const Strided& walk, std::int64_t i, std::int64_t (&at)[Strided::kMostOperands]) {
#pragma unroll
  for (int k = 0; k < Strided::kMostOperands; ++k) at[k] = 0;
  for (int dim = 0; dim < walk.dims; ++dim) {
    std::int64_t index = i;
    if (dim + 1 < walk.dims) {
      // 64-bit division is some twenty times slower.
      if ((i | walk.size[dim]) >> 32 == 0) {
        const std::uint32_t quotient = static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(walk.size[dim]);
        index = static_cast<std::uint32_t>(i) - quotient * static_cast<std::uint32_t>(walk.size[dim]);
        i = quotient;
      } else {
        index = i % walk.size[dim];
        i /= walk.size[dim];
      }
    }
#pragma unroll
    for (int k = 0; k < Strided::kMostOperands; ++k) at[k] += index * walk.stride[dim][k];
  }
}

}  // namespace ashlar::ops::cuda

#endif  // ASHLAR_KERNELS_OPS_CUDA_WALK_CUH_
