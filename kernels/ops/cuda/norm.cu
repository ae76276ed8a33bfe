// Layer norm, RMS norm and rotary positions on CUDA. A row is read once and kept in registers up to 8,192 elements.
#include "kernels/ops/cuda/row.cuh"

namespace ashlar::ops::cuda {
namespace {

template <int kThreads, int kVectors>
__global__ void __launch_bounds__(512) Norm(const NormArguments a) {
  const float inverse_size = 1.0f / static_cast<float>(a.size);
  for (std::int64_t r = FirstRow<kThreads>(); r < a.rows; r += RowStep<kThreads>()) {
    CachedRow<kThreads, kVectors> row(Behind(a.in, r * a.size), a.size);
    float mean = 0;
    if (a.mean != nullptr) {
      float sum = 0;
      row.ForEach([&](float(&x)[4], std::int64_t, int count) {
        for (int k = 0; k < count; ++k) sum += x[k];
      });
      mean = JoinAll<kThreads>(sum, Plus()) * inverse_size;
    }
    float squares = 0;
    row.ForEach([&](float(&x)[4], std::int64_t, int count) {
      for (int k = 0; k < count; ++k) squares += (x[k] - mean) * (x[k] - mean);
    });
    const float rstd = 1 / sqrtf(JoinAll<kThreads>(squares, Plus()) * inverse_size + a.epsilon);
    const Array out = Behind(a.out, r * a.size);
    row.ForEach([&](float(&x)[4], std::int64_t begin, int count) {
      float weight[4] = {1, 1, 1, 1};
      float bias[4] = {};
      if (a.weight.data != nullptr) Load4(a.weight, begin, count, weight);
      if (a.bias.data != nullptr) Load4(a.bias, begin, count, bias);
      float y[4];
      for (int k = 0; k < 4; ++k) y[k] = (x[k] - mean) * rstd * weight[k] + bias[k];
      Store4(out, begin, count, y);
    });
    if (threadIdx.x % kThreads == 0) {
      if (a.mean != nullptr) a.mean[r] = mean;
      a.rstd[r] = rstd;
    }
  }
}

// dx = rstd * (g w - mean(g w) - xhat mean(g w xhat)); an RMS norm has no mean term.
template <int kThreads, int kVectors>
__global__ void __launch_bounds__(512) NormGradIn(const NormBackwardArguments a) {
  const float inverse_size = 1.0f / static_cast<float>(a.size);
  for (std::int64_t r = FirstRow<kThreads>(); r < a.rows; r += RowStep<kThreads>()) {
    const float mean = a.mean == nullptr ? 0 : a.mean[r];
    const float rstd = a.rstd[r];
    const Array in = Behind(a.in, r * a.size);
    CachedRow<kThreads, kVectors> grad(Behind(a.grad, r * a.size), a.size);
    const auto weighted = [&](const float(&g)[4], std::int64_t begin, int count, float(&gw)[4], float(&xhat)[4]) {
      float weight[4] = {1, 1, 1, 1};
      if (a.weight.data != nullptr) Load4(a.weight, begin, count, weight);
      Load4(in, begin, count, xhat);
      for (int k = 0; k < 4; ++k) gw[k] = g[k] * weight[k];
      for (int k = 0; k < 4; ++k) xhat[k] = (xhat[k] - mean) * rstd;
    };
    float sum = 0;
    float dot = 0;
    grad.ForEach([&](float(&g)[4], std::int64_t begin, int count) {
      float gw[4];
      float xhat[4];
      weighted(g, begin, count, gw, xhat);
      for (int k = 0; k < count; ++k) sum += gw[k];
      for (int k = 0; k < count; ++k) dot += gw[k] * xhat[k];
    });
    sum = a.mean == nullptr ? 0 : JoinAll<kThreads>(sum, Plus()) * inverse_size;
    dot = JoinAll<kThreads>(dot, Plus()) * inverse_size;
    const Array out = Behind(a.grad_in, r * a.size);
    grad.ForEach([&](float(&g)[4], std::int64_t begin, int count) {
      float gw[4];
      float xhat[4];
      weighted(g, begin, count, gw, xhat);
      float y[4];
      for (int k = 0; k < 4; ++k) y[k] = rstd * (gw[k] - sum - xhat[k] * dot);
      Store4(out, begin, count, y);
    });
  }
}

constexpr int kColumns = 32;
constexpr int kRows = 8;

// Partial sums of g xhat and g: a block has 32 columns of one part of the rows.
__global__ void __launch_bounds__(kBlock) NormGradWeight(const NormBackwardArguments a) {
  __shared__ float shared[2][kRows][kColumns + 1];
  const int column_of = static_cast<int>(threadIdx.x) % kColumns;
  const int row_of = static_cast<int>(threadIdx.x) / kColumns;
  const std::int64_t length = Ceil(a.rows, a.parts);
  const std::int64_t groups = Ceil(a.size, kColumns);
  for (std::int64_t job = blockIdx.x; job < groups * a.parts; job += gridDim.x) {
    const std::int64_t column = job % groups * kColumns + column_of;
    const std::int64_t part = job / groups;
    const std::int64_t end = part * length + length < a.rows ? part * length + length : a.rows;
    float weight = 0;
    float bias = 0;
    if (column < a.size) {
#pragma unroll 4
      for (std::int64_t r = part * length + row_of; r < end; r += kRows) {
        const float g = LoadOne(a.grad, r * a.size + column);
        const float x = LoadOne(a.in, r * a.size + column);
        weight += g * ((x - (a.mean == nullptr ? 0 : a.mean[r])) * a.rstd[r]);
        bias += g;
      }
    }
    shared[0][row_of][column_of] = weight;
    shared[1][row_of][column_of] = bias;
    __syncthreads();
    const int kinds = a.mean == nullptr ? 1 : 2;
    if (row_of < kinds && column < a.size) {
      float sum = 0;
      for (int r = 0; r < kRows; ++r) sum += shared[row_of][r][column_of];
      a.partial[(part * kinds + row_of) * a.size + column] = sum;
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kBlock) NormSumParts(const NormBackwardArguments a) {
  const int kinds = a.mean == nullptr ? 1 : 2;
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < kinds * a.size; i += step) {
    const Array& out = i < a.size ? a.grad_weight : a.grad_bias;
    if (out.data == nullptr) continue;
    float sum = 0;
    for (std::int64_t part = 0; part < a.parts; ++part) sum += a.partial[part * kinds * a.size + i];
    StoreOne(out, i % a.size, sum);
  }
}

// A thread a pair. walk.size and stride are those of the dims (B, S, H, D), outermost first.
__global__ void __launch_bounds__(kBlock) RotaryPairs(const RotaryArguments a) {
  const std::int64_t half = a.walk.size[3] / 2;
  const std::int64_t total = a.walk.count / 2;
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t job = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; job < total; job += step) {
    const std::int64_t i = job % half;
    const std::int64_t h = job / half % a.walk.size[2];
    const std::int64_t s = job / half / a.walk.size[2] % a.walk.size[1];
    const std::int64_t b = job / half / a.walk.size[2] / a.walk.size[1];
    const std::int64_t first = a.is_interleaved ? 2 * i : i;
    const std::int64_t second = a.is_interleaved ? 2 * i + 1 : i + half;
    const auto at = [&](int k, std::int64_t d) {
      return b * a.walk.stride[0][k] + s * a.walk.stride[1][k] + h * a.walk.stride[2][k] + d * a.walk.stride[3][k];
    };
    const float x = LoadOne(a.walk.operand[1], at(1, first));
    const float y = LoadOne(a.walk.operand[1], at(1, second));
    const float c = a.cos[s * half + i];
    const float w = a.is_inverse ? -a.sin[s * half + i] : a.sin[s * half + i];
    StoreOne(a.walk.operand[0], at(0, first), x * c - y * w);
    StoreOne(a.walk.operand[0], at(0, second), x * w + y * c);
  }
}

}  // namespace

cudaError_t LaunchNorm(const NormArguments& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  ByRowSize(a.rows, a.size, [&]<int kThreads, int kVectors>(unsigned grid, int block) {
    Norm<kThreads, kVectors><<<grid, block, 0, stream>>>(a);
  });
  return cudaGetLastError();
}

cudaError_t LaunchNormBackward(const NormBackwardArguments& a, cudaStream_t stream) {
  if (a.size == 0) return cudaSuccess;
  if (a.partial != nullptr) {
    NormGradWeight<<<Grid(Ceil(a.size, kColumns) * a.parts, 1), kBlock, 0, stream>>>(a);
    NormSumParts<<<Grid(2 * a.size), kBlock, 0, stream>>>(a);
  }
  if (a.grad_in.data != nullptr && a.rows > 0) {
    ByRowSize(a.rows, a.size, [&]<int kThreads, int kVectors>(unsigned grid, int block) {
      NormGradIn<kThreads, kVectors><<<grid, block, 0, stream>>>(a);
    });
  }
  return cudaGetLastError();
}

cudaError_t LaunchRotary(const RotaryArguments& a, cudaStream_t stream) {
  if (a.walk.count == 0) return cudaSuccess;
  RotaryPairs<<<Grid(a.walk.count / 2), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ashlar::ops::cuda
