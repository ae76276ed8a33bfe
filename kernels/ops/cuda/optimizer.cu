// Optimizer steps on CUDA. A block has one piece of one tensor of a list, four elements a thread at a time.
#include "kernels/ops/cuda/row.cuh"
#include "kernels/ops/optimizer_rules.h"

namespace ashlar::ops::cuda {
namespace {

// body(tensor, begin, count) for the block's share of the list: four elements or fewer.
template <typename Body>
__device__ void ForPiece(const ListPart& part, std::int64_t piece, const Body& body) {
  const int tensor = part.tensor_of[blockIdx.x];
  const std::int64_t begin = part.piece_of[blockIdx.x] * piece;
  const std::int64_t end = begin + piece < part.count[tensor] ? begin + piece : part.count[tensor];
  for (std::int64_t i = begin + threadIdx.x * 4; i < end; i += kBlock * 4) {
    body(tensor, i, end - i < 4 ? static_cast<int>(end - i) : 4);
  }
}

// A state: float32, aligned as its tensor's memory is.
__device__ Array StateOf(void* data, bool is_aligned) { return {data, DType::kFloat32, is_aligned}; }
__device__ bool IsAligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

__global__ void __launch_bounds__(kBlock) AdamWPieces(const ListPart part, std::int64_t piece, AdamWValues values) {
  if (values.found_infinite != nullptr && *values.found_infinite != 0) return;
  AdamWRule rule = values.rule;
  if (values.step != nullptr) {
    const double step = static_cast<double>(*values.step);
    rule.step_size = static_cast<float>(values.learning_rate / (1 - pow(static_cast<double>(values.beta1), step)));
    rule.correction = static_cast<float>(1 / sqrt(1 - pow(static_cast<double>(values.beta2), step)));
  }
  const float inverse_scale = values.inverse_scale == nullptr ? 1 : *values.inverse_scale;
  ForPiece(part, piece, [&](int t, std::int64_t i, int count) {
    const Array first = StateOf(part.first[t], IsAligned(part.first[t]));
    const Array second = StateOf(part.second[t], IsAligned(part.second[t]));
    float p[4];
    float g[4];
    float m[4];
    float v[4];
    Load4(part.parameter[t], i, count, p);
    Load4(part.gradient[t], i, count, g);
    Load4(first, i, count, m);
    Load4(second, i, count, v);
    for (int k = 0; k < 4; ++k) p[k] = rule.Step(p[k], g[k] * inverse_scale, m[k], v[k]);
    Store4(part.parameter[t], i, count, p);
    Store4(first, i, count, m);
    Store4(second, i, count, v);
  });
}

__global__ void __launch_bounds__(kBlock) SgdPieces(const ListPart part, std::int64_t piece, const SgdRule rule) {
  ForPiece(part, piece, [&](int t, std::int64_t i, int count) {
    const Array mean = StateOf(part.first[t], IsAligned(part.first[t]));
    float p[4];
    float g[4];
    float m[4] = {};
    Load4(part.parameter[t], i, count, p);
    Load4(part.gradient[t], i, count, g);
    if (mean.data != nullptr && !rule.is_first) Load4(mean, i, count, m);
    for (int k = 0; k < 4; ++k) p[k] = rule.Step(p[k], g[k], m[k]);
    Store4(part.parameter[t], i, count, p);
    if (mean.data != nullptr) Store4(mean, i, count, m);
  });
}

__global__ void __launch_bounds__(kBlock) SquarePieces(const ListPart part, std::int64_t piece, float* partial) {
  float sum = 0;
  ForPiece(part, piece, [&](int t, std::int64_t i, int count) {
    float g[4];
    Load4(part.gradient[t], i, count, g);
    for (int k = 0; k < count; ++k) sum += g[k] * g[k];
  });
  sum = JoinAll<kBlock>(sum, Plus());
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// The sum of `count` floats, by one block, in every thread.
__device__ float SumOf(const float* values, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kBlock) sum += values[i];
  return JoinAll<kBlock>(sum, Plus());
}

__global__ void __launch_bounds__(kBlock) NormOf(const float* partial, std::int64_t count, float* norm) {
  const float sum = SumOf(partial, count);
  if (threadIdx.x == 0) *norm = sqrtf(sum);
}

__global__ void __launch_bounds__(kBlock)
    ClipPieces(const ListPart part, std::int64_t piece, float most, const float* norm) {
  const float scale = fminf(1, most / (*norm + 1e-6f));
  ForPiece(part, piece, [&](int t, std::int64_t i, int count) {
    float g[4];
    Load4(part.gradient[t], i, count, g);
    for (int k = 0; k < 4; ++k) g[k] *= scale;
    Store4(part.gradient[t], i, count, g);
  });
}

// Every thread that sees an infinity stores the same 1: the order does not matter.
__global__ void __launch_bounds__(kBlock)
    UnscalePieces(const ListPart part, std::int64_t piece, const float* inverse_scale, float* found_infinite) {
  const float scale = *inverse_scale;
  ForPiece(part, piece, [&](int t, std::int64_t i, int count) {
    float g[4];
    Load4(part.gradient[t], i, count, g);
    for (int k = 0; k < count; ++k) {
      if (!isfinite(g[k])) *found_infinite = 1;
    }
    for (int k = 0; k < 4; ++k) g[k] *= scale;
    Store4(part.gradient[t], i, count, g);
  });
}

constexpr int kBlock8 = 2048;  // elements that share a scale, one block of threads
__constant__ float signed_map[256];
__constant__ float unsigned_map[256];

__global__ void __launch_bounds__(kBlock) AdamW8BitBlocks(const AdamW8BitArguments a) {
  __shared__ float maps[2][256];
  maps[0][threadIdx.x] = signed_map[threadIdx.x];
  maps[1][threadIdx.x] = unsigned_map[threadIdx.x];
  __syncthreads();
  const std::int64_t blocks = Ceil(a.count, kBlock8);
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    float m[kBlock8 / kBlock];
    float v[kBlock8 / kBlock];
    float first_most = 0;
    float second_most = 0;
    const float first_scale = a.first_scale[block];
    const float second_scale = a.second_scale[block];
    for (int j = 0; j < kBlock8 / kBlock; ++j) {
      const std::int64_t i = block * kBlock8 + j * kBlock + threadIdx.x;
      m[j] = v[j] = 0;
      if (i >= a.count) continue;
      m[j] = maps[0][a.first[i]] * first_scale;
      v[j] = maps[1][a.second[i]] * second_scale;
      StoreOne(a.parameter, i, a.rule.Step(LoadOne(a.parameter, i), LoadOne(a.gradient, i), m[j], v[j]));
      first_most = fmaxf(first_most, fabsf(m[j]));
      second_most = fmaxf(second_most, v[j]);
    }
    first_most = JoinAll<kBlock>(first_most, Largest());
    second_most = JoinAll<kBlock>(second_most, Largest());
    for (int j = 0; j < kBlock8 / kBlock; ++j) {
      const std::int64_t i = block * kBlock8 + j * kBlock + threadIdx.x;
      if (i >= a.count) continue;
      a.first[i] = first_most > 0 ? NearestCode(maps[0], m[j] / first_most) : kSignedZeroCode;
      a.second[i] = second_most > 0 ? NearestCode(maps[1], v[j] / second_most) : kUnsignedZeroCode;
    }
    if (threadIdx.x == 0) {
      a.first_scale[block] = first_most;
      a.second_scale[block] = second_most;
    }
  }
}

__device__ float SquareOf(const AdafactorArguments& a, std::int64_t i) {
  const float g = LoadOne(a.gradient, i);
  return g * g + a.epsilon1;
}

// A block a row.
__global__ void __launch_bounds__(kBlock) RowMeans(const AdafactorArguments a) {
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    float sum = 0;
    for (std::int64_t c = threadIdx.x; c < a.columns; c += kBlock) sum += SquareOf(a, r * a.columns + c);
    sum = JoinAll<kBlock>(sum, Plus());
    if (threadIdx.x == 0) {
      a.row[r] = a.beta2 * a.row[r] + (1 - a.beta2) * (sum / static_cast<float>(a.columns));
    }
  }
}

// A thread a column of one part of the rows; then a thread a column, and one block for the mean of the rows.
__global__ void __launch_bounds__(kBlock) ColumnParts(const AdafactorArguments a) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const std::int64_t length = Ceil(a.rows, a.parts);
  const std::int64_t begin = blockIdx.y * length;
  if (column >= a.columns) return;
  float sum = 0;
  for (std::int64_t r = begin; r < begin + length && r < a.rows; ++r) sum += SquareOf(a, r * a.columns + column);
  a.column_partial[blockIdx.y * a.columns + column] = sum;
}

__global__ void __launch_bounds__(kBlock) ColumnMeans(const AdafactorArguments a) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (column < a.columns) {
    float sum = 0;
    for (std::int64_t part = 0; part < a.parts; ++part) sum += a.column_partial[part * a.columns + column];
    a.column[column] = a.beta2 * a.column[column] + (1 - a.beta2) * (sum / static_cast<float>(a.rows));
  }
  if (blockIdx.x == 0) {
    const float sum = SumOf(a.row, a.rows);
    if (threadIdx.x == 0) *a.row_mean = sum / static_cast<float>(a.rows);
  }
}

__global__ void __launch_bounds__(kBlock) WholeMeans(const AdafactorArguments a) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < a.rows * a.columns; i += step) {
    a.second[i] = a.beta2 * a.second[i] + (1 - a.beta2) * SquareOf(a, i);
  }
}

__device__ float UpdateOf(const AdafactorArguments& a, std::int64_t i) {
  const float mean = a.row == nullptr ? a.second[i] : a.row[i / a.columns] / *a.row_mean * a.column[i % a.columns];
  return LoadOne(a.gradient, i) / sqrtf(mean);
}

// A block a piece: the squares of the update and of the parameter.
__global__ void __launch_bounds__(kBlock) AdafactorSquares(const AdafactorArguments a) {
  const std::int64_t count = a.rows * a.columns;
  const std::int64_t length = Ceil(count, a.pieces);
  const std::int64_t begin = blockIdx.x * length;
  const std::int64_t end = begin + length < count ? begin + length : count;
  float update = 0;
  float parameter = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kBlock) {
    const float u = UpdateOf(a, i);
    const float p = LoadOne(a.parameter, i);
    update += u * u;
    parameter += p * p;
  }
  update = JoinAll<kBlock>(update, Plus());
  parameter = JoinAll<kBlock>(parameter, Plus());
  if (threadIdx.x == 0) {
    a.update_squares[blockIdx.x] = update;
    a.parameter_squares[blockIdx.x] = parameter;
  }
}

__global__ void __launch_bounds__(kBlock) AdafactorStep(const AdafactorArguments a) {
  const std::int64_t count = a.rows * a.columns;
  const float update_rms = sqrtf(SumOf(a.update_squares, a.pieces) / static_cast<float>(count));
  const float parameter_rms = sqrtf(SumOf(a.parameter_squares, a.pieces) / static_cast<float>(count));
  const float clip = fmaxf(1, update_rms / a.clip_threshold);
  const float rate = a.is_scaled ? a.learning_rate * fmaxf(a.epsilon2, parameter_rms) : a.learning_rate;
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < count; i += step) {
    const float p = LoadOne(a.parameter, i);
    StoreOne(a.parameter, i, p * (1 - a.weight_decay * rate) - rate * UpdateOf(a, i) / clip);
  }
}

}  // namespace

cudaError_t LaunchAdamW(const ListPart& part, std::int64_t piece, const AdamWValues& values, cudaStream_t stream) {
  AdamWPieces<<<static_cast<unsigned>(part.pieces), kBlock, 0, stream>>>(part, piece, values);
  return cudaGetLastError();
}

cudaError_t LaunchSgd(const ListPart& part, std::int64_t piece, const SgdRule& rule, cudaStream_t stream) {
  SgdPieces<<<static_cast<unsigned>(part.pieces), kBlock, 0, stream>>>(part, piece, rule);
  return cudaGetLastError();
}

cudaError_t LaunchSquares(const ListPart& part, std::int64_t piece, float* partial, cudaStream_t stream) {
  SquarePieces<<<static_cast<unsigned>(part.pieces), kBlock, 0, stream>>>(part, piece, partial);
  return cudaGetLastError();
}

cudaError_t LaunchNormOf(const float* partial, std::int64_t count, float* norm, cudaStream_t stream) {
  NormOf<<<1, kBlock, 0, stream>>>(partial, count, norm);
  return cudaGetLastError();
}

cudaError_t LaunchClip(const ListPart& part, std::int64_t piece, float most, const float* norm, cudaStream_t stream) {
  ClipPieces<<<static_cast<unsigned>(part.pieces), kBlock, 0, stream>>>(part, piece, most, norm);
  return cudaGetLastError();
}

cudaError_t LaunchUnscale(const ListPart& part, std::int64_t piece, const float* inverse_scale, float* found_infinite,
                          cudaStream_t stream) {
  UnscalePieces<<<static_cast<unsigned>(part.pieces), kBlock, 0, stream>>>(part, piece, inverse_scale, found_infinite);
  return cudaGetLastError();
}

// The maps are copied in stream order before each step: 2 KiB of pageable memory, which the call has read when it
// returns (CUDA runtime API, API synchronization behavior).
cudaError_t LaunchAdamW8Bit(const AdamW8BitArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  const cudaMemcpyKind kind = cudaMemcpyHostToDevice;
  cudaError_t error = cudaMemcpyToSymbolAsync(signed_map, a.signed_map, sizeof signed_map, 0, kind, stream);
  if (error != cudaSuccess) return error;
  error = cudaMemcpyToSymbolAsync(unsigned_map, a.unsigned_map, sizeof unsigned_map, 0, kind, stream);
  if (error != cudaSuccess) return error;
  AdamW8BitBlocks<<<Grid(Ceil(a.count, kBlock8), 1), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t LaunchAdafactor(const AdafactorArguments& a, cudaStream_t stream) {
  const std::int64_t count = a.rows * a.columns;
  if (count == 0) return cudaSuccess;
  if (a.row != nullptr) {
    const dim3 grid(Grid(a.columns), static_cast<unsigned>(a.parts));
    RowMeans<<<Grid(a.rows, 1), kBlock, 0, stream>>>(a);
    ColumnParts<<<grid, kBlock, 0, stream>>>(a);
    ColumnMeans<<<Grid(a.columns), kBlock, 0, stream>>>(a);
  } else {
    WholeMeans<<<Grid(count), kBlock, 0, stream>>>(a);
  }
  AdafactorSquares<<<static_cast<unsigned>(a.pieces), kBlock, 0, stream>>>(a);
  AdafactorStep<<<Grid(Ceil(count, 8)), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ashlar::ops::cuda
