// Reductions on CUDA, in parts that the sizes alone decide, and ops along an index.
#include "kernels/ops/cuda/row.cuh"
#include "kernels/ops/cuda/walk.cuh"

namespace ashlar::ops::cuda {
namespace {

constexpr int kColumns = 32;  // outputs of a block, side by side in the input
constexpr int kRows = 8;      // threads that share an output

__device__ float EmptyOf(ReduceKind kind) {
  if (kind == ReduceKind::kMaximum) return kMinusInfinity;
  return kind == ReduceKind::kMinimum ? -kMinusInfinity : 0;
}

struct Joined {
  ReduceKind kind;
  __device__ float operator()(float a, float b) const {
    if (kind == ReduceKind::kMaximum) return Largest()(a, b);
    return kind == ReduceKind::kMinimum ? Smallest()(a, b) : a + b;
  }
};

// `value` is part `part` of output `output`.
__device__ void Finish(const ReduceArguments& a, std::int64_t output, std::int64_t part, float value) {
  if (a.parts > 1) {
    a.partial[output * a.parts + part] = value;
    return;
  }
  std::int64_t at[Strided::kMostOperands];
  OffsetsOf(a.kept, output, at);
  StoreOne(a.kept.operand[0], at[0], a.kind == ReduceKind::kMean ? value / static_cast<float>(a.reduced.count) : value);
}

__device__ float ElementOf(const ReduceArguments& a, std::int64_t begin, std::int64_t i) {
  std::int64_t at[Strided::kMostOperands];
  OffsetsOf(a.reduced, i, at);
  return LoadOne(a.kept.operand[1], begin + at[0]);
}

// A block for an output's part.
__global__ void __launch_bounds__(kBlock) ReduceRows(const ReduceArguments a) {
  const Joined join = {a.kind};
  const std::int64_t length = Ceil(a.reduced.count, a.parts);
  for (std::int64_t job = blockIdx.x; job < a.kept.count * a.parts; job += gridDim.x) {
    const std::int64_t output = job / a.parts;
    const std::int64_t part = job % a.parts;
    std::int64_t at[Strided::kMostOperands];
    OffsetsOf(a.kept, output, at);
    const std::int64_t end = part * length + length < a.reduced.count ? part * length + length : a.reduced.count;
    float value = EmptyOf(a.kind);
    for (std::int64_t i = part * length + threadIdx.x; i < end; i += kBlock)
      value = join(value, ElementOf(a, at[1], i));
    value = JoinAll<kBlock>(value, join);
    if (threadIdx.x == 0) Finish(a, output, part, value);
  }
}

// A block for a part of 32 outputs that lie side by side: each row of the input is one access of a warp.
__global__ void __launch_bounds__(kBlock) ReduceColumns(const ReduceArguments a) {
  const Joined join = {a.kind};
  __shared__ float shared[kRows][kColumns + 1];
  const int column = static_cast<int>(threadIdx.x) % kColumns;
  const int row = static_cast<int>(threadIdx.x) / kColumns;
  const std::int64_t length = Ceil(a.reduced.count, a.parts);
  const std::int64_t groups = Ceil(a.kept.count, kColumns);
  for (std::int64_t job = blockIdx.x; job < groups * a.parts; job += gridDim.x) {
    const std::int64_t output = job % groups * kColumns + column;
    const std::int64_t part = job / groups;
    float value = EmptyOf(a.kind);
    if (output < a.kept.count) {
      std::int64_t at[Strided::kMostOperands];
      OffsetsOf(a.kept, output, at);
      const std::int64_t end = part * length + length < a.reduced.count ? part * length + length : a.reduced.count;
#pragma unroll 4
      for (std::int64_t i = part * length + row; i < end; i += kRows) value = join(value, ElementOf(a, at[1], i));
    }
    shared[row][column] = value;
    __syncthreads();
    if (row == 0 && output < a.kept.count) {
      for (int r = 1; r < kRows; ++r) value = join(value, shared[r][column]);
      Finish(a, output, part, value);
    }
    __syncthreads();
  }
}

// A warp for an output's parts.
__global__ void __launch_bounds__(kBlock) ReduceParts(ReduceArguments a) {
  const Joined join = {a.kind};
  const std::int64_t parts = a.parts;
  for (std::int64_t output = FirstRow<32>(); output < a.kept.count; output += RowStep<32>()) {
    float value = EmptyOf(a.kind);
    for (std::int64_t part = threadIdx.x % 32; part < parts; part += 32) {
      value = join(value, a.partial[output * parts + part]);
    }
    value = JoinAll<32>(value, join);
    a.parts = 1;
    if (threadIdx.x % 32 == 0) Finish(a, output, 0, value);
  }
}

__global__ void __launch_bounds__(kBlock) MaxRows(const Strided walk, std::int64_t size, std::int64_t stride) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < walk.count; i += step) {
    std::int64_t at[Strided::kMostOperands];
    OffsetsOf(walk, i, at);
    std::int64_t best = 0;
    float most = LoadOne(walk.operand[2], at[2]);
    for (std::int64_t k = 1; k < size && most == most; ++k) {
      const float value = LoadOne(walk.operand[2], at[2] + k * stride);
      if (value > most || value != value) {
        best = k;
        most = value;
      }
    }
    StoreOne(walk.operand[0], at[0], most);
    static_cast<std::int64_t*>(walk.operand[1].data)[at[1]] = best;
  }
}

// A thread an output element.
__global__ void __launch_bounds__(kBlock) GatherRows(const IndexedArguments a) {
  const std::int64_t total = a.walk.count * a.count;
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t job = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; job < total; job += step) {
    const std::int64_t k = job % a.count;
    std::int64_t at[Strided::kMostOperands];
    OffsetsOf(a.walk, job / a.count, at);
    const std::int64_t entry = LoadIndex(a.walk.operand[1], at[1] + k * a.index_stride);
    const bool is_inside = entry >= 0 && entry < a.table_size;
    StoreOne(a.walk.operand[0], at[0] + k * a.other_stride,
             is_inside ? LoadOne(a.walk.operand[2], at[2] + entry * a.table_stride) : nanf(""));
  }
}

// A thread walks one line of the index in order, so that sums are the same each time.
__global__ void __launch_bounds__(kBlock) ScatterRows(const IndexedArguments a) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < a.walk.count; i += step) {
    std::int64_t at[Strided::kMostOperands];
    OffsetsOf(a.walk, i, at);
    for (std::int64_t k = 0; k < a.count; ++k) {
      const std::int64_t entry = LoadIndex(a.walk.operand[1], at[1] + k * a.index_stride);
      if (entry < 0 || entry >= a.table_size) continue;
      const std::int64_t to = at[2] + entry * a.table_stride;
      const float add = LoadOne(a.walk.operand[0], at[0] + k * a.other_stride);
      StoreOne(a.walk.operand[2], to, LoadOne(a.walk.operand[2], to) + add);
    }
  }
}

}  // namespace

cudaError_t LaunchReduce(const ReduceArguments& a, cudaStream_t stream) {
  if (a.kept.count == 0) return cudaSuccess;
  if (a.is_by_columns) {
    ReduceColumns<<<Grid(Ceil(a.kept.count, kColumns) * a.parts, 1), kBlock, 0, stream>>>(a);
  } else {
    ReduceRows<<<Grid(a.kept.count * a.parts, 1), kBlock, 0, stream>>>(a);
  }
  if (a.parts > 1) ReduceParts<<<Grid(a.kept.count, kBlock / 32), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t LaunchMaxAlong(const Strided& walk, std::int64_t size, std::int64_t stride, cudaStream_t stream) {
  if (walk.count == 0) return cudaSuccess;
  MaxRows<<<Grid(walk.count), kBlock, 0, stream>>>(walk, size, stride);
  return cudaGetLastError();
}

cudaError_t LaunchGather(const IndexedArguments& a, cudaStream_t stream) {
  if (a.walk.count * a.count == 0) return cudaSuccess;
  GatherRows<<<Grid(a.walk.count * a.count), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t LaunchScatterAdd(const IndexedArguments& a, cudaStream_t stream) {
  if (a.walk.count * a.count == 0) return cudaSuccess;
  ScatterRows<<<Grid(a.walk.count), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ashlar::ops::cuda
