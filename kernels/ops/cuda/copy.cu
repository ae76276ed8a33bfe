// Copies, casts, fills and choices on CUDA: elements as bits where no arithmetic is needed.
#include <cuda/std/limits>

#include "kernels/ops/cuda/device.cuh"
#include "kernels/ops/cuda/walk.cuh"
#include "kernels/ops/pointwise.h"

namespace ashlar::ops::cuda {
namespace {

int BytesOf(DType dtype) {
  switch (dtype) {
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    default:
      return 1;
  }
}

__host__ __device__ bool IsWhole(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kUint8 || dtype == DType::kBool;
}

// launch(T) with the unsigned integer of an element's size.
template <typename Launch>
void VisitBits(DType dtype, const Launch& launch) {
  switch (BytesOf(dtype)) {
    case 1:
      return launch(std::uint8_t{});
    case 2:
      return launch(std::uint16_t{});
    case 4:
      return launch(std::uint32_t{});
    default:
      return launch(std::uint64_t{});
  }
}

template <typename Body>
__global__ void __launch_bounds__(kBlock) ForEach(const Strided walk, const Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x; i < walk.count; i += step) {
    std::int64_t at[Strided::kMostOperands];
    OffsetsOf(walk, i, at);
    body(walk, at, i);
  }
}

template <typename Body>
cudaError_t Launch(const Strided& walk, const Body& body, cudaStream_t stream) {
  if (walk.count == 0) return cudaSuccess;
  ForEach<<<Grid(walk.count), kBlock, 0, stream>>>(walk, body);
  return cudaGetLastError();
}

template <typename T>
struct CopyBits {
  __device__ void operator()(const Strided& walk, const std::int64_t* at, std::int64_t) const {
    static_cast<T*>(walk.operand[0].data)[at[0]] = static_cast<const T*>(walk.operand[1].data)[at[1]];
  }
};

__device__ std::int64_t LoadWhole(const Array& array, std::int64_t i) {
  switch (array.dtype) {
    case DType::kInt64:
      return static_cast<const std::int64_t*>(array.data)[i];
    case DType::kInt32:
      return static_cast<const std::int32_t*>(array.data)[i];
    default:
      return static_cast<const std::uint8_t*>(array.data)[i];
  }
}

template <typename T>
__device__ T Saturated(double value) {
  using Limits = ::cuda::std::numeric_limits<T>;
  if (value != value) return 0;
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

__device__ void StoreNumber(const Array& array, std::int64_t i, double value) {
  switch (array.dtype) {
    case DType::kInt64:
      static_cast<std::int64_t*>(array.data)[i] = Saturated<std::int64_t>(value);
      return;
    case DType::kInt32:
      static_cast<std::int32_t*>(array.data)[i] = Saturated<std::int32_t>(value);
      return;
    case DType::kUint8:
      static_cast<std::uint8_t*>(array.data)[i] = Saturated<std::uint8_t>(value);
      return;
    case DType::kBool:
      static_cast<std::uint8_t*>(array.data)[i] = value != 0;
      return;
    default:
      StoreOne(array, i, static_cast<float>(value));
  }
}

struct Cast {
  __device__ void operator()(const Strided& walk, const std::int64_t* at, std::int64_t) const {
    const Array& in = walk.operand[1];
    const Array& out = walk.operand[0];
    if (!IsWhole(in.dtype)) return StoreNumber(out, at[0], static_cast<double>(LoadOne(in, at[1])));
    const std::int64_t value = LoadWhole(in, at[1]);
    if (out.dtype == DType::kInt64) {
      static_cast<std::int64_t*>(out.data)[at[0]] = value;
    } else {
      StoreNumber(out, at[0], static_cast<double>(value));
    }
  }
};

template <typename T>
struct Constant {
  T bits;
  __device__ void operator()(const Strided& walk, const std::int64_t* at, std::int64_t) const {
    static_cast<T*>(walk.operand[0].data)[at[0]] = bits;
  }
};

struct Ramp {
  double start;
  double step;
  __device__ void operator()(const Strided& walk, const std::int64_t* at, std::int64_t i) const {
    StoreNumber(walk.operand[0], at[0], start + static_cast<double>(i) * step);
  }
};

struct Comparison {
  CompareKind kind;
  __device__ void operator()(const Strided& walk, const std::int64_t* at, std::int64_t) const {
    const Array& left = walk.operand[1];
    const Array& right = walk.operand[2];
    const bool is_whole = IsWhole(left.dtype) && IsWhole(right.dtype);
    const auto number = [](const Array& array, std::int64_t i) {
      return IsWhole(array.dtype) ? static_cast<double>(LoadWhole(array, i)) : static_cast<double>(LoadOne(array, i));
    };
    static_cast<std::uint8_t*>(walk.operand[0].data)[at[0]] =
        is_whole ? CompareOf(kind, LoadWhole(left, at[1]), LoadWhole(right, at[2]))
                 : CompareOf(kind, number(left, at[1]), number(right, at[2]));
  }
};

template <typename T>
struct BitsChoice {
  bool has_bits;
  T bits;
  __device__ void operator()(const Strided& walk, const std::int64_t* at, std::int64_t) const {
    const bool is_yes = static_cast<const std::uint8_t*>(walk.operand[1].data)[at[1]] != 0;
    const T no = static_cast<const T*>(walk.operand[3].data)[at[3]];
    const T yes = has_bits ? bits : static_cast<const T*>(walk.operand[2].data)[at[2]];
    static_cast<T*>(walk.operand[0].data)[at[0]] = is_yes ? yes : no;
  }
};

}  // namespace

cudaError_t LaunchCopy(const Strided& walk, cudaStream_t stream) {
  const Array& out = walk.operand[0];
  const Array& in = walk.operand[1];
  if (walk.count == 0) return cudaSuccess;
  const bool is_in_order = walk.dims == 1 && walk.stride[0][0] == 1;
  if (in.dtype == out.dtype) {
    if (is_in_order && walk.stride[0][1] == 1) {
      const std::size_t bytes = static_cast<std::size_t>(walk.count * BytesOf(in.dtype));
      return cudaMemcpyAsync(out.data, in.data, bytes, cudaMemcpyDeviceToDevice, stream);
    }
    cudaError_t error = cudaSuccess;
    VisitBits(in.dtype, [&](auto bits) { error = Launch(walk, CopyBits<decltype(bits)>{}, stream); });
    return error;
  }
  if (!IsWhole(in.dtype) && !IsWhole(out.dtype)) return LaunchAffine(walk, {1, 0}, stream);
  return Launch(walk, Cast{}, stream);
}

cudaError_t LaunchFill(const Strided& walk, std::uint64_t bits, cudaStream_t stream) {
  const Array& out = walk.operand[0];
  if (walk.count == 0) return cudaSuccess;
  if (bits == 0 && walk.dims == 1 && walk.stride[0][0] == 1) {
    return cudaMemsetAsync(out.data, 0, static_cast<std::size_t>(walk.count * BytesOf(out.dtype)), stream);
  }
  cudaError_t error = cudaSuccess;
  VisitBits(out.dtype, [&](auto type) {
    using T = decltype(type);
    error = Launch(walk, Constant<T>{static_cast<T>(bits)}, stream);
  });
  return error;
}

cudaError_t LaunchArange(const Strided& walk, double start, double step, cudaStream_t stream) {
  return Launch(walk, Ramp{start, step}, stream);
}

cudaError_t LaunchCompare(const Strided& walk, CompareKind kind, cudaStream_t stream) {
  return Launch(walk, Comparison{kind}, stream);
}

cudaError_t LaunchWhere(const Strided& walk, bool has_bits, std::uint64_t bits, cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  VisitBits(walk.operand[0].dtype, [&](auto type) {
    using T = decltype(type);
    error = Launch(walk, BitsChoice<T>{has_bits, static_cast<T>(bits)}, stream);
  });
  return error;
}

}  // namespace ashlar::ops::cuda
