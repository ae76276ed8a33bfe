// Elementwise ops on CUDA: four elements a thread where every operand lies in order or is one element, else one element
// at a time by its index.
#include "kernels/ops/cuda/device.cuh"
#include "kernels/ops/cuda/walk.cuh"
#include "kernels/ops/pointwise.h"

namespace ashlar::ops::cuda {
namespace {

template <int kInputs, typename Body>
__global__ void __launch_bounds__(kBlock) InOrder(const Strided walk, const Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock * 4;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kBlock + threadIdx.x) * 4; i < walk.count; i += step) {
    const int count = walk.count - i < 4 ? static_cast<int>(walk.count - i) : 4;
    float in[kInputs][4];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) {
      if (walk.stride[0][k + 1] == 0) {
        const float one = LoadOne(walk.operand[k + 1], 0);
        for (int j = 0; j < 4; ++j) in[k][j] = one;
      } else {
        Load4(walk.operand[k + 1], i, count, in[k]);
      }
    }
    float out[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (kInputs == 1) out[j] = body(in[0][j]);
      if constexpr (kInputs == 2) out[j] = body(in[0][j], in[1][j]);
      if constexpr (kInputs == 3) out[j] = body(in[0][j], in[1][j], in[2][j]);
    }
    Store4(walk.operand[0], i, count, out);
  }
}

template <int kInputs, typename Body>
__global__ void __launch_bounds__(kBlock) ByIndex(const Strided walk, const Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < walk.count; i += step) {
    std::int64_t at[Strided::kMostOperands];
    OffsetsOf(walk, i, at);
    float in[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) in[k] = LoadOne(walk.operand[k + 1], at[k + 1]);
    float out = 0;
    if constexpr (kInputs == 1) out = body(in[0]);
    if constexpr (kInputs == 2) out = body(in[0], in[1]);
    if constexpr (kInputs == 3) out = body(in[0], in[1], in[2]);
    StoreOne(walk.operand[0], at[0], out);
  }
}

template <int kInputs, typename Body>
cudaError_t Launch(const Strided& walk, const Body& body, cudaStream_t stream) {
  if (walk.count == 0) return cudaSuccess;
  bool is_in_order = walk.dims == 1 && walk.stride[0][0] == 1;
  for (int k = 1; k <= kInputs; ++k) is_in_order = is_in_order && walk.stride[0][k] <= 1;
  if (is_in_order) {
    InOrder<kInputs><<<Grid(Ceil(walk.count, 4)), kBlock, 0, stream>>>(walk, body);
  } else {
    ByIndex<kInputs><<<Grid(walk.count), kBlock, 0, stream>>>(walk, body);
  }
  return cudaGetLastError();
}

struct UnaryBody {
  UnaryKind kind;
  __device__ float operator()(float x) const {
    float y = 0;
    VisitUnary(kind, [&]<UnaryKind kKind>() { y = UnaryOf<kKind>(x); });
    return y;
  }
};

struct SlopeBody {
  UnaryKind kind;
  __device__ float operator()(float grad, float saved) const {
    float slope = 0;
    VisitUnary(kind, [&]<UnaryKind kKind>() { slope = SlopeOf<kKind>(saved); });
    return grad * slope;
  }
};

struct AffineBody {
  Scalars scalars;
  __device__ float operator()(float x) const { return x * scalars.first + scalars.second; }
};

struct BinaryBody {
  BinaryKind kind;
  float scale;
  __device__ float operator()(float left, float right) const {
    float y = 0;
    VisitBinary(kind, [&]<BinaryKind kKind>() { y = BinaryOf<kKind>(left, right, scale); });
    return y;
  }
};

struct AddProductBody {
  float value;
  bool is_quotient;
  __device__ float operator()(float base, float left, float right) const {
    return base + value * (is_quotient ? left / right : left * right);
  }
};

}  // namespace

cudaError_t LaunchUnary(const Strided& walk, UnaryKind kind, cudaStream_t stream) {
  return Launch<1>(walk, UnaryBody{kind}, stream);
}
cudaError_t LaunchUnaryBackward(const Strided& walk, UnaryKind kind, cudaStream_t stream) {
  return Launch<2>(walk, SlopeBody{kind}, stream);
}
cudaError_t LaunchAffine(const Strided& walk, Scalars scale_shift, cudaStream_t stream) {
  return Launch<1>(walk, AffineBody{scale_shift}, stream);
}
cudaError_t LaunchBinary(const Strided& walk, BinaryKind kind, float scale, cudaStream_t stream) {
  return Launch<2>(walk, BinaryBody{kind, scale}, stream);
}
cudaError_t LaunchAddProduct(const Strided& walk, float value, bool is_quotient, cudaStream_t stream) {
  return Launch<3>(walk, AddProductBody{value, is_quotient}, stream);
}

}  // namespace ashlar::ops::cuda
