// Losses over a vocabulary on CUDA: a block a row, one more for the mean, whose sums are split by thread alone.
#include "kernels/ops/cuda/row.cuh"

namespace ashlar::ops::cuda {
namespace {

constexpr int kWide = 512;

// The mean in one block: loss = sum of `row_loss` / total.
template <bool kIsNll>
__global__ void __launch_bounds__(kWide) MeanLoss(const LossArguments a) {
  float sum = 0;
  float count = 0;
  for (std::int64_t r = threadIdx.x; r < a.rows; r += kWide) {
    const std::int64_t target = LoadIndex(a.targets, r);
    if (target == a.ignore_index) continue;
    count += 1;
    if constexpr (kIsNll) {
      const bool is_inside = target >= 0 && target < a.classes;
      sum -= is_inside ? LoadOne(a.values, r * a.classes + target) : nanf("");
    } else if (a.row_loss != nullptr) {
      sum += a.row_loss[r];
    }
  }
  sum = JoinAll<kWide>(sum, Plus());
  count = JoinAll<kWide>(count, Plus());
  if (threadIdx.x == 0) {
    *a.total = count;
    if (a.loss != nullptr) *a.loss = sum / count;
  }
}

// One pass: each thread keeps the largest so far and the sum below it.
__global__ void __launch_bounds__(kWide) RowLoss(const LossArguments a) {
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    CachedRow<kWide, 0> row(Behind(a.values, r * a.classes), a.classes);
    float most = kMinusInfinity;
    float sum = 0;
    row.ForEach([&](float(&x)[4], std::int64_t, int count) {
      float highest = most;
      for (int k = 0; k < count; ++k) highest = fmaxf(highest, x[k]);
      if (highest > most) sum *= expf(most - highest);
      most = highest;
      for (int k = 0; k < count; ++k) sum += most == kMinusInfinity ? 0 : expf(x[k] - most);
    });
    const float all = JoinAll<kWide>(most, Largest());
    sum = JoinAll<kWide>(most == kMinusInfinity ? 0 : sum * expf(most - all), Plus());
    if (threadIdx.x == 0) {
      const std::int64_t target = LoadIndex(a.targets, r);
      const bool is_inside = target >= 0 && target < a.classes;
      const float log_sum_exp = all + logf(sum);
      a.log_sum_exp[r] = log_sum_exp;
      a.row_loss[r] = target == a.ignore_index ? 0
                      : is_inside              ? log_sum_exp - LoadOne(a.values, r * a.classes + target)
                                               : nanf("");
    }
  }
}

__global__ void __launch_bounds__(kWide) RowLossGrad(const LossArguments a) {
  const float slope = *a.grad_loss / *a.total;
  for (std::int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const std::int64_t target = LoadIndex(a.targets, r);
    const bool is_counted = target != a.ignore_index && target >= 0 && target < a.classes;
    const float log_sum_exp = a.log_sum_exp[r];
    CachedRow<kWide, 0> row(Behind(a.values, r * a.classes), a.classes);
    const Array out = Behind(a.out, r * a.classes);
    row.ForEach([&](float(&x)[4], std::int64_t begin, int count) {
      float y[4];
      for (int k = 0; k < 4; ++k) {
        y[k] = is_counted ? slope * (expf(x[k] - log_sum_exp) - (begin + k == target ? 1 : 0)) : 0;
      }
      Store4(out, begin, count, y);
    });
  }
}

__global__ void __launch_bounds__(kBlock) NllGrad(const LossArguments a) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (r >= a.rows) return;
  const std::int64_t target = LoadIndex(a.targets, r);
  if (target == a.ignore_index || target < 0 || target >= a.classes) return;
  StoreOne(a.out, r * a.classes + target, -*a.grad_loss / *a.total);
}

}  // namespace

cudaError_t LaunchCountTargets(const LossArguments& a, cudaStream_t stream) {
  MeanLoss<false><<<1, kWide, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t LaunchNllLoss(const LossArguments& a, cudaStream_t stream) {
  MeanLoss<true><<<1, kWide, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t LaunchNllLossBackward(const LossArguments& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  NllGrad<<<Grid(a.rows), kBlock, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t LaunchCrossEntropy(const LossArguments& a, cudaStream_t stream) {
  if (a.rows > 0) RowLoss<<<Grid(a.rows, 1), kWide, 0, stream>>>(a);
  MeanLoss<false><<<1, kWide, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t LaunchCrossEntropyBackward(const LossArguments& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  RowLossGrad<<<Grid(a.rows, 1), kWide, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace ashlar::ops::cuda
