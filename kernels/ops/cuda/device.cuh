// What the kernels share: elements of any float dtype as floats, four at a time, and the grid that a launch takes. A
// dtype is an argument, not a template parameter: the branch is the same for a whole launch and costs nothing beside
// memory, and nvcc compiles a third.
#ifndef ASHLAR_KERNELS_OPS_CUDA_DEVICE_CUH_
#define ASHLAR_KERNELS_OPS_CUDA_DEVICE_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/ops/cuda/launch.h"

namespace ashlar::ops::cuda {

inline constexpr int kBlock = 256;
inline constexpr float kMinusInfinity = -__builtin_huge_valf();

__host__ __device__ constexpr std::int64_t Ceil(std::int64_t count, std::int64_t step) {
  return (count + step - 1) / step;
}

// Blocks for `threads` of work; kernels step by the grid beyond its limit.
inline unsigned Grid(std::int64_t threads, int block = kBlock) {
  const std::int64_t blocks = Ceil(threads, block);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks);
}

__device__ inline float LoadOne(const Array& array, std::int64_t i) {
  switch (array.dtype) {
    case DType::kFloat32:
      return static_cast<const float*>(array.data)[i];
    case DType::kFloat16:
      return __half2float(static_cast<const __half*>(array.data)[i]);
    case DType::kBFloat16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(array.data)[i]);
    case DType::kInt64:
      return static_cast<float>(static_cast<const std::int64_t*>(array.data)[i]);
    case DType::kInt32:
      return static_cast<float>(static_cast<const std::int32_t*>(array.data)[i]);
    default:
      return static_cast<const std::uint8_t*>(array.data)[i];
  }
}

__device__ inline void StoreOne(const Array& array, std::int64_t i, float value) {
  switch (array.dtype) {
    case DType::kFloat32:
      static_cast<float*>(array.data)[i] = value;
      return;
    case DType::kFloat16:
      static_cast<__half*>(array.data)[i] = __float2half_rn(value);
      return;
    case DType::kBFloat16:
      static_cast<__nv_bfloat16*>(array.data)[i] = __float2bfloat16_rn(value);
      return;
    default:
      return;
  }
}

// Four neighbours from element i on, i a multiple of 4, as one access; `count` < 4 at an end, or where the array is not
// aligned to four elements, one by one.
__device__ inline void Load4(const Array& array, std::int64_t i, int count, float (&x)[4]) {
  if (count == 4 && array.is_aligned) {
    if (array.dtype == DType::kFloat32) {
      const float4 four = *reinterpret_cast<const float4*>(static_cast<const float*>(array.data) + i);
      x[0] = four.x;
      x[1] = four.y;
      x[2] = four.z;
      x[3] = four.w;
      return;
    }
    const uint2 bits = *reinterpret_cast<const uint2*>(static_cast<const std::uint16_t*>(array.data) + i);
    if (array.dtype == DType::kFloat16) {
      const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&bits.x));
      const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&bits.y));
      x[0] = low.x;
      x[1] = low.y;
      x[2] = high.x;
      x[3] = high.y;
    } else {
      x[0] = __uint_as_float(bits.x << 16);
      x[1] = __uint_as_float(bits.x & 0xffff0000u);
      x[2] = __uint_as_float(bits.y << 16);
      x[3] = __uint_as_float(bits.y & 0xffff0000u);
    }
    return;
  }
  for (int k = 0; k < 4; ++k) x[k] = k < count ? LoadOne(array, i + k) : 0;
}

__device__ inline void Store4(const Array& array, std::int64_t i, int count, const float (&x)[4]) {
  if (count == 4 && array.is_aligned) {
    if (array.dtype == DType::kFloat32) {
      *reinterpret_cast<float4*>(static_cast<float*>(array.data) + i) = make_float4(x[0], x[1], x[2], x[3]);
      return;
    }
    uint2 bits;
    if (array.dtype == DType::kFloat16) {
      *reinterpret_cast<__half2*>(&bits.x) = __floats2half2_rn(x[0], x[1]);
      *reinterpret_cast<__half2*>(&bits.y) = __floats2half2_rn(x[2], x[3]);
    } else {
      *reinterpret_cast<__nv_bfloat162*>(&bits.x) = __floats2bfloat162_rn(x[0], x[1]);
      *reinterpret_cast<__nv_bfloat162*>(&bits.y) = __floats2bfloat162_rn(x[2], x[3]);
    }
    *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(array.data) + i) = bits;
    return;
  }
  for (int k = 0; k < count; ++k) StoreOne(array, i + k, x[k]);
}

// `array` from element `i` on; rows stay aligned where their length is a multiple of 4.
__device__ inline Array Behind(Array array, std::int64_t i) {
  const int bytes = array.dtype == DType::kFloat32 ? 4 : 2;
  array.data = static_cast<char*>(array.data) + i * bytes;
  array.is_aligned = array.is_aligned && i % 4 == 0;
  return array;
}

__device__ inline std::int64_t LoadIndex(const Array& indices, std::int64_t i) {
  return indices.dtype == DType::kInt64 ? static_cast<const std::int64_t*>(indices.data)[i]
                                        : static_cast<const std::int32_t*>(indices.data)[i];
}

}  // namespace ashlar::ops::cuda

#endif  // ASHLAR_KERNELS_OPS_CUDA_DEVICE_CUH_
