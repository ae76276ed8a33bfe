// Tiles in shared memory and their products, by a whole block of kTileThreads: tensor cores (WMMA) for float16 and
// bfloat16, fused multiply-adds for float32. Sums are float. Sizes are multiples of 16; what lies beyond a tensor's
// edge is 0.
#ifndef ASHLAR_KERNELS_OPS_CUDA_TILE_CUH_
#define ASHLAR_KERNELS_OPS_CUDA_TILE_CUH_

#include <mma.h>

#include <cstdint>
#include <type_traits>

#include "kernels/ops/cuda/device.cuh"
#include "kernels/ops/philox.h"

namespace ashlar::ops::cuda {

inline constexpr int kTileThreads = 128;
inline constexpr int kPad = 8;  // elements behind a row, so that rows begin in different banks

__device__ inline float ToFloat(float x) { return x; }
__device__ inline float ToFloat(__half x) { return __half2float(x); }
__device__ inline float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T>
__device__ T FromFloat(float x) {
  if constexpr (sizeof(T) == 4)
    return x;
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(x);
  else
    return __float2bfloat16_rn(x);
}

// Element (row, column) lies at row * step + column.
template <typename T>
struct Tile {
  T* data;
  int step;
  __device__ T& At(int row, int column) const { return data[row * step + column]; }
};

// Rows [begin, begin + rows) of a head, `size` elements of each, into a tile of `width` columns; rows from `end` on and
// columns from `size` on are 0. 16 bytes at a time where they are aligned.
template <typename T>
__device__ void LoadTile(const Tile<T>& tile, const T* head, std::int64_t row_stride, int begin, int end, int rows,
                         int size, int width) {
  constexpr int kUnit = 16 / sizeof(T);
  const bool is_aligned =
      size % kUnit == 0 && row_stride % kUnit == 0 && reinterpret_cast<std::uintptr_t>(head) % 16 == 0;
  const int units = width / kUnit;
  for (int i = static_cast<int>(threadIdx.x); i < rows * units; i += kTileThreads) {
    const int row = i / units;
    const int column = i % units * kUnit;
    T* to = &tile.At(row, column);
    const T* from = head + (begin + row) * row_stride + column;
    if (begin + row < end && is_aligned && column < size) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
      continue;
    }
    for (int k = 0; k < kUnit; ++k) {
      to[k] = begin + row < end && column + k < size ? from[k] : FromFloat<T>(0.0f);
    }
  }
}

__device__ inline void Zero(float* data, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kTileThreads) data[i] = 0;
}

// sum (m, n) = or += left (m, k) x right (k, n). kLeftTurned: left is stored (k, m); kRightTurned: right is (n, k).
template <typename T, bool kLeftTurned, bool kRightTurned>
__device__ void MultiplyTiles(const Tile<T>& left, const Tile<T>& right, const Tile<float>& sum, int m, int n, int k,
                              bool is_added) {
  if constexpr (sizeof(T) == 2) {
    namespace wmma = nvcuda::wmma;
    using LeftOrder = std::conditional_t<kLeftTurned, wmma::col_major, wmma::row_major>;
    using RightOrder = std::conditional_t<kRightTurned, wmma::col_major, wmma::row_major>;
    const int pieces = m / 16 * (n / 16);
    for (int piece = static_cast<int>(threadIdx.x) / 32; piece < pieces; piece += kTileThreads / 32) {
      const int row = piece / (n / 16) * 16;
      const int column = piece % (n / 16) * 16;
      wmma::fragment<wmma::accumulator, 16, 16, 16, float> all;
      if (is_added) {
        wmma::load_matrix_sync(all, &sum.At(row, column), sum.step, wmma::mem_row_major);
      } else {
        wmma::fill_fragment(all, 0.0f);
      }
      for (int i = 0; i < k; i += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, LeftOrder> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, RightOrder> b;
        wmma::load_matrix_sync(a, kLeftTurned ? &left.At(i, row) : &left.At(row, i), left.step);
        wmma::load_matrix_sync(b, kRightTurned ? &right.At(column, i) : &right.At(i, column), right.step);
        wmma::mma_sync(all, a, b, all);
      }
      wmma::store_matrix_sync(&sum.At(row, column), all, sum.step, wmma::mem_row_major);
    }
  } else {
    // Four rows and two columns a thread, spread so that neighbours read neighbouring columns.
    const int columns = n / 2;
    for (int job = static_cast<int>(threadIdx.x); job < m / 4 * columns; job += kTileThreads) {
      const int row = job / columns * 4;
      const int column = job % columns;
      float all[4][2] = {};
      for (int i = 0; i < k; ++i) {
        float b[2];
        for (int c = 0; c < 2; ++c) {
          b[c] = ToFloat(kRightTurned ? right.At(column + c * columns, i) : right.At(i, column + c * columns));
        }
        for (int r = 0; r < 4; ++r) {
          const float a = ToFloat(kLeftTurned ? left.At(i, row + r) : left.At(row + r, i));
          for (int c = 0; c < 2; ++c) all[r][c] += a * b[c];
        }
      }
      for (int r = 0; r < 4; ++r) {
        for (int c = 0; c < 2; ++c) {
          float& to = sum.At(row + r, column + c * columns);
          to = is_added ? to + all[r][c] : all[r][c];
        }
      }
    }
  }
}

// What a block needs to know of its (batch, head).
struct HeadShape {
  int queries;  // of this sequence
  int keys;

  __device__ HeadShape(const AttentionArguments& a, int batch) : queries(a.queries), keys(a.keys) {
    if (a.query_lengths != nullptr) queries = min(max(a.query_lengths[batch], 0), a.queries);
    if (a.key_lengths != nullptr) keys = min(max(a.key_lengths[batch], 0), a.keys);
  }
  // Keys that a query sees.
  __device__ int Seen(const AttentionArguments& a, int query) const {
    if (query >= queries) return 0;
    return a.is_causal ? min(max(query + keys - queries + 1, 0), keys) : keys;
  }
};

// 0 or 1 / (1 - p): the word that a Dropout of the whole scores has at this place.
__device__ inline float KeepFactor(const AttentionArguments& a, int batch, int head, int query, int key) {
  if (a.threshold == 0) return 1;
  const std::int64_t i = ((std::int64_t{batch} * a.heads + head) * a.queries + query) * a.keys + key;
  const PhiloxWords words = PhiloxAt(a.seed, a.offset + static_cast<std::uint64_t>(i) / 4);
  const std::uint32_t low = i % 2 == 0 ? words.word[0] : words.word[1];
  const std::uint32_t high = i % 2 == 0 ? words.word[2] : words.word[3];
  return IsKept(i % 4 < 2 ? low : high, a.threshold) ? a.keep_factor : 0;
}

template <typename T>
__device__ T* HeadAt(const HeadRows& rows, int batch, int head) {
  return static_cast<T*>(rows.data) + batch * rows.batch_stride + head * rows.head_stride;
}

// Pieces of a block's shared memory, each aligned to the 32 bytes that WMMA asks for.
class SharedPieces {
 public:
  __host__ __device__ explicit SharedPieces(char* data) : data_(data) {}
  template <typename T>
  __host__ __device__ Tile<T> Take(int rows, int width) {
    const Tile<T> tile = {reinterpret_cast<T*>(data_ + used_), width + kPad};
    used_ +=
        static_cast<int>(Ceil(static_cast<std::int64_t>(rows) * (width + kPad) * static_cast<int>(sizeof(T)), 32) * 32);
    return tile;
  }
  __host__ __device__ int used() const { return used_; }

 private:
  char* data_;
  int used_ = 0;
};

// launch(T{}, edge): an element's type, and the largest edge of 64 or 32 whose shared memory the device gives.
template <typename Bytes, typename Launch>
cudaError_t ByTile(DType dtype, const Bytes& bytes, const Launch& launch) {
  int device = 0;
  int most = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error != cudaSuccess) return error;
  const int element = dtype == DType::kFloat32 ? 4 : 2;
  // Half of what there is lets two blocks share a multiprocessor and hide each other's waits.
  int edge = bytes(64, element) <= most / 2 ? 64 : 32;
  if (bytes(edge, element) > most) edge = 16;
  if (bytes(edge, element) > most) return cudaErrorInvalidConfiguration;
  if (dtype == DType::kFloat32) return launch(float{}, edge, bytes(edge, element));
  if (dtype == DType::kFloat16) return launch(__half{}, edge, bytes(edge, element));
  return launch(__nv_bfloat16{}, edge, bytes(edge, element));
}

inline int Padded(int size) { return static_cast<int>(Ceil(size, 16) * 16); }

}  // namespace ashlar::ops::cuda

#endif  // ASHLAR_KERNELS_OPS_CUDA_TILE_CUH_
