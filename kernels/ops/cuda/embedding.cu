// Embedding on CUDA. The backward pass sorts the positions by index (a stable radix sort), finds where each index
// begins (a reduce-by-key), and gives each index a block that sums its rows in a fixed order: no atomics.
#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>

#include "kernels/ops/cuda/device.cuh"

namespace ashlar::ops::cuda {
namespace {

struct Earlier {
  __device__ int operator()(int a, int b) const { return a < b ? a : b; }
};

// A warp a row; 16 bytes a lane where rows allow it. An index outside gives bits that are NaN in every float dtype.
template <typename T>
__global__ void __launch_bounds__(kBlock) CopyRows(const EmbeddingArguments a, std::int64_t row_units) {
  const std::int64_t step = std::int64_t{gridDim.x} * (kBlock / 32);
  for (std::int64_t r = std::int64_t{blockIdx.x} * (kBlock / 32) + threadIdx.x / 32; r < a.count; r += step) {
    const std::int64_t index = LoadIndex(a.indices, r);
    const bool is_inside = index >= 0 && index < a.vocabulary;
    const T* from = static_cast<const T*>(a.weight.data) + index * row_units;
    T* to = static_cast<T*>(a.out.data) + r * row_units;
    T nan;
    memset(&nan, 0xff, sizeof nan);
    for (std::int64_t i = threadIdx.x % 32; i < row_units; i += 32) to[i] = is_inside ? from[i] : nan;
  }
}

template <typename T>
cudaError_t LaunchCopyRows(const EmbeddingArguments& a, std::int64_t row_units, cudaStream_t stream) {
  CopyRows<T><<<Grid(a.count, kBlock / 32), kBlock, 0, stream>>>(a, row_units);
  return cudaGetLastError();
}

struct Parts {
  int* keys[2];
  int* positions[2];
  int* distinct;
  int* begins;
  int* runs;
  void* cub;
};

Parts PartsOf(const EmbeddingBackwardArguments& a) {
  char* at = static_cast<char*>(a.scratch);
  const std::size_t array = static_cast<std::size_t>(Ceil(a.count * 4, 256) * 256);
  const auto next = [&](std::size_t bytes) {
    char* begin = at;
    at += bytes;
    return begin;
  };
  Parts parts = {};
  for (int i = 0; i < 2; ++i) parts.keys[i] = reinterpret_cast<int*>(next(array));
  for (int i = 0; i < 2; ++i) parts.positions[i] = reinterpret_cast<int*>(next(array));
  parts.distinct = reinterpret_cast<int*>(next(array));
  parts.begins = reinterpret_cast<int*>(next(array));
  parts.runs = reinterpret_cast<int*>(next(256));
  parts.cub = at;
  return parts;
}

// The vocabulary's size stands for what is left out: it sorts last.
__global__ void __launch_bounds__(kBlock) MakeKeys(const EmbeddingBackwardArguments a, int* keys, int* positions) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= a.count) return;
  const std::int64_t index = LoadIndex(a.indices, i);
  const bool is_summed = index >= 0 && index < a.vocabulary && index != a.padding_index;
  keys[i] = static_cast<int>(is_summed ? index : a.vocabulary);
  positions[i] = static_cast<int>(i);
}

constexpr int kLanes = 32;  // of four columns each
constexpr int kRows = 8;    // threads that share a column, each every eighth row

__global__ void __launch_bounds__(kBlock) SumRuns(const EmbeddingBackwardArguments a, const int* positions,
                                                  const int* distinct, const int* begins, const int* runs) {
  const int run = static_cast<int>(blockIdx.x);
  if (run >= *runs || distinct[run] >= a.vocabulary) return;
  __shared__ float shared[kRows][kLanes * 4];
  const int begin = begins[run];
  const int end = run + 1 < *runs ? begins[run + 1] : static_cast<int>(a.count);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const Array to = Behind(a.grad_weight, distinct[run] * a.size);
  for (std::int64_t first = std::int64_t{blockIdx.y} * kLanes * 4; first < a.size;
       first += std::int64_t{gridDim.y} * kLanes * 4) {
    const std::int64_t column = first + lane * 4;
    const int count = a.size - column < 4 ? static_cast<int>(a.size - column) : 4;
    float sum[4] = {};
    if (count > 0) {
#pragma unroll 4
      for (int i = begin + row; i < end; i += kRows) {
        float x[4];
        Load4(Behind(a.grad, positions[i] * a.size), column, count, x);
        for (int k = 0; k < 4; ++k) sum[k] += x[k];
      }
    }
    for (int k = 0; k < 4; ++k) shared[row][lane * 4 + k] = sum[k];
    __syncthreads();
    if (row == 0 && count > 0) {
      float old[4] = {};
      if (a.is_accumulated) Load4(to, column, count, old);
      for (int k = 0; k < 4; ++k) {
        for (int r = 1; r < kRows; ++r) sum[k] += shared[r][lane * 4 + k];
        sum[k] += old[k];
      }
      Store4(to, column, count, sum);
    }
    __syncthreads();
  }
}

int BitsOf(std::int64_t value) {
  int bits = 1;
  while (value >> bits != 0) ++bits;
  return bits;
}

cudaError_t SortAndFind(const EmbeddingBackwardArguments& a, const Parts& parts, void* cub, std::size_t* sort_bytes,
                        std::size_t* find_bytes, int* sorted, cudaStream_t stream) {
  cub::DoubleBuffer<int> keys(parts.keys[0], parts.keys[1]);
  cub::DoubleBuffer<int> positions(parts.positions[0], parts.positions[1]);
  const int count = static_cast<int>(a.count);
  cudaError_t error =
      cub::DeviceRadixSort::SortPairs(cub, *sort_bytes, keys, positions, count, 0, BitsOf(a.vocabulary), stream);
  if (error != cudaSuccess) return error;
  *sorted = positions.selector;
  return cub::DeviceReduce::ReduceByKey(cub, *find_bytes, keys.Current(), parts.distinct,
                                        thrust::counting_iterator<int>(0), parts.begins, parts.runs, Earlier(), count,
                                        stream);
}

}  // namespace

cudaError_t LaunchEmbedding(const EmbeddingArguments& a, cudaStream_t stream) {
  if (a.count == 0 || a.size == 0) return cudaSuccess;
  const std::int64_t bytes = a.size * (a.weight.dtype == DType::kFloat32 ? 4 : 2);
  const auto is_multiple = [&](std::int64_t unit) {
    return (bytes | reinterpret_cast<std::int64_t>(a.weight.data) | reinterpret_cast<std::int64_t>(a.out.data)) %
               unit ==
           0;
  };
  if (is_multiple(16)) return LaunchCopyRows<uint4>(a, bytes / 16, stream);
  if (is_multiple(4)) return LaunchCopyRows<std::uint32_t>(a, bytes / 4, stream);
  return LaunchCopyRows<std::uint16_t>(a, bytes / 2, stream);
}

cudaError_t AskCubBytes(std::int64_t count, std::size_t* bytes) {
  EmbeddingBackwardArguments a;
  a.count = count;
  a.vocabulary = 0x7fffffff;
  std::size_t sort = 0;
  std::size_t find = 0;
  int sorted = 0;
  const cudaError_t error = SortAndFind(a, {}, nullptr, &sort, &find, &sorted, nullptr);
  *bytes = sort > find ? sort : find;
  return error;
}

cudaError_t LaunchEmbeddingBackward(const EmbeddingBackwardArguments& a, cudaStream_t stream) {
  if (a.count == 0 || a.size == 0) return cudaSuccess;
  const Parts parts = PartsOf(a);
  MakeKeys<<<Grid(a.count), kBlock, 0, stream>>>(a, parts.keys[0], parts.positions[0]);
  std::size_t sort_bytes = a.cub_bytes;
  std::size_t find_bytes = a.cub_bytes;
  int sorted = 0;
  const cudaError_t error = SortAndFind(a, parts, parts.cub, &sort_bytes, &find_bytes, &sorted, stream);
  if (error != cudaSuccess) return error;
  const dim3 grid(static_cast<unsigned>(a.count),
                  static_cast<unsigned>(Ceil(a.size, kLanes * 4) < 64 ? Ceil(a.size, kLanes * 4) : 64));
  SumRuns<<<grid, kBlock, 0, stream>>>(a, parts.positions[sorted], parts.distinct, parts.begins, parts.runs);
  return cudaGetLastError();
}

}  // namespace ashlar::ops::cuda
