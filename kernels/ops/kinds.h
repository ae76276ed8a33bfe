// The enumerations that device code reads too: no include, so that nvcc compiles little.
#ifndef ASHLAR_KERNELS_OPS_KINDS_H_
#define ASHLAR_KERNELS_OPS_KINDS_H_

#include <cstdint>

#ifdef __CUDACC__
#define ASHLAR_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define ASHLAR_HOST_DEVICE inline
#endif

namespace ashlar::ops {

// ASHLAR_HOST_DEVICE before a function that both compilers build.
enum class DType : std::uint8_t { kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUint8, kBool };

enum class UnaryKind : std::uint8_t {
  kNegate,
  kAbs,
  kSquare,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kLog,
  kSigmoid,
  kTanh,
  kRelu,
  kSilu,
  kGelu,      // x * Phi(x), by erf
  kGeluTanh,  // its approximation by tanh (Hendrycks, Gimpel, arXiv 1606.08415)
};
enum class BinaryKind : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide, kMaximum, kMinimum };
enum class CompareKind : std::uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
enum class ReduceKind : std::uint8_t { kSum, kMean, kMaximum, kMinimum };

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_KINDS_H_
