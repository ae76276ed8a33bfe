// Softmax and dropout on CUDA.
#include "kernels/ops/cuda/row.cuh"
#include "kernels/ops/philox.h"

namespace ashlar::ops::cuda {
namespace {

// Where a score row's mask begins.
__device__ std::int64_t MaskOffset(const SoftmaxArguments& a, std::int64_t row) {
  std::int64_t offset = 0;
  for (int dim = a.mask_dims - 1; dim >= 0; --dim) {
    offset += row % a.mask_size[dim] * a.mask_stride[dim];
    row /= a.mask_size[dim];
  }
  return offset;
}

// One row. Up to 8,192 elements stay in registers, scaled and masked; longer ones are read again for each pass.
template <int kThreads, int kVectors>
__global__ void __launch_bounds__(512) SoftmaxRows(const SoftmaxArguments a) {
  for (std::int64_t r = FirstRow<kThreads>(); r < a.rows; r += RowStep<kThreads>()) {
    CachedRow<kThreads, kVectors> row(Behind(a.in, r * a.size), a.size);
    const std::int64_t seen = a.is_causal ? r % a.queries + a.size - a.queries + 1 : a.size;
    const std::uint8_t* mask = a.mask == nullptr ? nullptr : a.mask + MaskOffset(a, r);
    const auto score = [&](float x, std::int64_t i) {
      const bool is_out = i >= seen || (mask != nullptr && mask[i * a.mask_step] != 0);
      return is_out ? kMinusInfinity : x * a.scale;
    };
    float most = kMinusInfinity;
    row.ForEach([&](float(&x)[4], std::int64_t begin, int count) {
      for (int k = 0; k < count; ++k) {
        const float value = score(x[k], begin + k);
        if constexpr (kVectors > 0) x[k] = value;
        most = fmaxf(most, value);
      }
    });
    most = JoinAll<kThreads>(most, Largest());
    const auto kept = [&](float x, std::int64_t i) {
      if constexpr (kVectors > 0) return x;
      return score(x, i);
    };
    float sum = 0;
    row.ForEach([&](float(&x)[4], std::int64_t begin, int count) {
      for (int k = 0; k < count; ++k) sum += expf(kept(x[k], begin + k) - most);
    });
    sum = JoinAll<kThreads>(sum, Plus());
    const bool is_empty = most == kMinusInfinity;
    const float shift = most + logf(sum);
    const float factor = 1 / sum;
    const Array out = Behind(a.out, r * a.size);
    row.ForEach([&](float(&x)[4], std::int64_t begin, int count) {
      float y[4] = {};
      for (int k = 0; k < count; ++k) {
        const float value = kept(x[k], begin + k);
        if (is_empty) {
          y[k] = a.is_log ? kMinusInfinity : 0;
        } else {
          y[k] = a.is_log ? value - shift : expf(value - most) * factor;
        }
      }
      Store4(out, begin, count, y);
    });
  }
}

template <int kThreads, int kVectors>
__global__ void __launch_bounds__(512) SoftmaxGrad(const SoftmaxBackwardArguments a) {
  for (std::int64_t r = FirstRow<kThreads>(); r < a.rows; r += RowStep<kThreads>()) {
    CachedRow<kThreads, kVectors> grad(Behind(a.grad, r * a.size), a.size);
    const Array result = Behind(a.result, r * a.size);
    float sum = 0;
    grad.ForEach([&](float(&g)[4], std::int64_t begin, int count) {
      float y[4];
      Load4(result, begin, count, y);
      for (int k = 0; k < count; ++k) {
        if (a.is_log ? y[k] != kMinusInfinity : y[k] != 0) sum += a.is_log ? g[k] : g[k] * y[k];
      }
    });
    sum = JoinAll<kThreads>(sum, Plus());
    const Array out = Behind(a.out, r * a.size);
    grad.ForEach([&](float(&g)[4], std::int64_t begin, int count) {
      float y[4];
      Load4(result, begin, count, y);
      for (int k = 0; k < 4; ++k) {
        if (a.is_log) {
          y[k] = y[k] == kMinusInfinity ? 0 : a.scale * (g[k] - expf(y[k]) * sum);
        } else {
          y[k] = a.scale * y[k] * (g[k] - sum);
        }
      }
      Store4(out, begin, count, y);
    });
  }
}

// Four elements and one counter a thread.
__global__ void __launch_bounds__(kBlock) DropoutFours(const DropoutArguments a) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock * 4;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kBlock + threadIdx.x) * 4; i < a.count; i += step) {
    const int count = a.count - i < 4 ? static_cast<int>(a.count - i) : 4;
    const PhiloxWords words = PhiloxAt(a.seed, a.offset + static_cast<std::uint64_t>(i) / 4);
    float x[4];
    Load4(a.in, i, count, x);
    std::uint8_t kept[4];
    for (int k = 0; k < 4; ++k) kept[k] = IsKept(words.word[k], a.threshold);
    for (int k = 0; k < 4; ++k) x[k] = kept[k] ? x[k] * a.factor : 0;
    for (int k = 0; k < count; ++k) a.mask[i + k] = kept[k];
    Store4(a.out, i, count, x);
  }
}

__global__ void __launch_bounds__(kBlock) DropoutGrad(const DropoutArguments a) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock * 4;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kBlock + threadIdx.x) * 4; i < a.count; i += step) {
    const int count = a.count - i < 4 ? static_cast<int>(a.count - i) : 4;
    float x[4];
    Load4(a.in, i, count, x);
    for (int k = 0; k < count; ++k) x[k] = a.mask[i + k] != 0 ? x[k] * a.factor : 0;
    Store4(a.out, i, count, x);
  }
}

}  // namespace

cudaError_t LaunchSoftmax(const SoftmaxArguments& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  ByRowSize(a.rows, a.size, [&]<int kThreads, int kVectors>(unsigned grid, int block) {
    SoftmaxRows<kThreads, kVectors><<<grid, block, 0, stream>>>(a);
  });
  return cudaGetLastError();
}

cudaError_t LaunchSoftmaxBackward(const SoftmaxBackwardArguments& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  ByRowSize(a.rows, a.size, [&]<int kThreads, int kVectors>(unsigned grid, int block) {
    SoftmaxGrad<kThreads, kVectors><<<grid, block, 0, stream>>>(a);
  });
  return cudaGetLastError();
}

cudaError_t LaunchDropout(const DropoutArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  DropoutFours<<<Grid(Ceil(a.count, 4)), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t LaunchDropoutBackward(const DropoutArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  DropoutGrad<<<Grid(Ceil(a.count, 4)), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ashlar::ops::cuda
