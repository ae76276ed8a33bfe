// Rows that a warp or a block works on, and sums over its threads, the same on every run.
#ifndef ASHLAR_KERNELS_OPS_CUDA_ROW_CUH_
#define ASHLAR_KERNELS_OPS_CUDA_ROW_CUH_

#include <cstdint>
#include <cub/block/block_reduce.cuh>

#include "kernels/ops/cuda/device.cuh"

namespace ashlar::ops::cuda {

struct Largest {
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};
struct Smallest {
  __device__ float operator()(float a, float b) const { return a < b || a != a ? a : b; }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// One value of all threads of a warp (kThreads 32) or a block, given to each of them.
template <int kThreads, typename Join>
__device__ float JoinAll(float value, Join join) {
  if constexpr (kThreads == 32) {
    for (int step = 16; step > 0; step /= 2) value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
  } else {
    using Reduce = cub::BlockReduce<float, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    __shared__ float joined;
    const float all = Reduce(storage).Reduce(value, join);
    if (threadIdx.x == 0) joined = all;
    __syncthreads();
    value = joined;
    __syncthreads();
    return value;
  }
}

// A row that a warp or a block reads: kept in registers (kVectors fours a thread), or where kVectors is 0 read anew at
// each pass.
template <int kThreads, int kVectors>
class CachedRow {
 public:
  __device__ CachedRow(const Array& row, std::int64_t size) : row_(row), size_(size) {
    if constexpr (kVectors > 0) {
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const std::int64_t begin = (std::int64_t{j} * kThreads + Lane()) * 4;
        if (begin < size_) Load4(row_, begin, Count(begin), x_[j]);
      }
    }
  }

  // body(x, begin, count): four elements from `begin`, which may be changed where they are kept.
  template <typename Body>
  __device__ void ForEach(const Body& body) {
    if constexpr (kVectors > 0) {
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const std::int64_t begin = (std::int64_t{j} * kThreads + Lane()) * 4;
        if (begin < size_) body(x_[j], begin, Count(begin));
      }
    } else {
      for (std::int64_t begin = Lane() * 4; begin < size_; begin += kThreads * 4) {
        float x[4];
        Load4(row_, begin, Count(begin), x);
        body(x, begin, Count(begin));
      }
    }
  }

 private:
  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % kThreads; }
  __device__ int Count(std::int64_t begin) const { return size_ - begin < 4 ? static_cast<int>(size_ - begin) : 4; }

  Array row_;
  std::int64_t size_;
  float x_[kVectors > 0 ? kVectors : 1][4];
};

// Calls launch<kThreads, kVectors>(grid, block): a warp a row up to 1,024 elements, a block of 256 up to 8,192, and
// blocks of 512 that read twice beyond.
template <typename Launch>
void ByRowSize(std::int64_t rows, std::int64_t size, const Launch& launch) {
  if (size <= 1024) {
    launch.template operator()<32, 8>(Grid(rows, 8), 256);
  } else if (size <= 8192) {
    launch.template operator()<256, 8>(Grid(rows, 1), 256);
  } else {
    launch.template operator()<512, 0>(Grid(rows, 1), 512);
  }
}

// The first row of this warp or block, and the step to its next.
template <int kThreads>
__device__ std::int64_t FirstRow() {
  return kThreads == 32 ? std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32 : std::int64_t{blockIdx.x};
}
template <int kThreads>
__device__ std::int64_t RowStep() {
  return kThreads == 32 ? std::int64_t{gridDim.x} * (blockDim.x / 32) : std::int64_t{gridDim.x};
}

}  // namespace ashlar::ops::cuda

#endif  // ASHLAR_KERNELS_OPS_CUDA_ROW_CUH_
