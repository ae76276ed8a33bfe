// The formulas of elementwise.h, one float at a time, for both compilers.
#ifndef ASHLAR_KERNELS_OPS_POINTWISE_H_
#define ASHLAR_KERNELS_OPS_POINTWISE_H_

#include <cmath>

#include "kernels/ops/kinds.h"

namespace ashlar::ops {

inline constexpr float kSqrtHalf = 0.70710678118654752f;
inline constexpr float kInverseSqrt2Pi = 0.39894228040143268f;
inline constexpr float kSqrt2OverPi = 0.79788456080286536f;
inline constexpr float kGeluCubic = 0.044715f;

ASHLAR_HOST_DEVICE float SigmoidOf(float x) { return 1 / (1 + expf(-x)); }

template <UnaryKind kKind>
ASHLAR_HOST_DEVICE float UnaryOf(float x) {
  if constexpr (kKind == UnaryKind::kNegate) return -x;
  if constexpr (kKind == UnaryKind::kAbs) return fabsf(x);
  if constexpr (kKind == UnaryKind::kSquare) return x * x;
  if constexpr (kKind == UnaryKind::kSqrt) return sqrtf(x);
  if constexpr (kKind == UnaryKind::kRsqrt) return 1 / sqrtf(x);
  if constexpr (kKind == UnaryKind::kReciprocal) return 1 / x;
  if constexpr (kKind == UnaryKind::kExp) return expf(x);
  if constexpr (kKind == UnaryKind::kLog) return logf(x);
  if constexpr (kKind == UnaryKind::kSigmoid) return SigmoidOf(x);
  if constexpr (kKind == UnaryKind::kTanh) return tanhf(x);
  if constexpr (kKind == UnaryKind::kRelu) return x < 0 ? 0 : x;  // a NaN stays
  if constexpr (kKind == UnaryKind::kSilu) return x * SigmoidOf(x);
  if constexpr (kKind == UnaryKind::kGelu) return 0.5f * x * (1 + erff(x * kSqrtHalf));
  if constexpr (kKind == UnaryKind::kGeluTanh) {
    return 0.5f * x * (1 + tanhf(kSqrt2OverPi * (x + kGeluCubic * x * x * x)));
  }
}

// d f(x) / dx from `saved`: f(x) where SavesResult, else x.
template <UnaryKind kKind>
ASHLAR_HOST_DEVICE float SlopeOf(float saved) {
  if constexpr (kKind == UnaryKind::kNegate) return -1;
  if constexpr (kKind == UnaryKind::kAbs) return saved > 0 ? 1.0f : saved < 0 ? -1.0f : 0.0f;
  if constexpr (kKind == UnaryKind::kSquare) return 2 * saved;
  if constexpr (kKind == UnaryKind::kSqrt) return 0.5f / saved;
  if constexpr (kKind == UnaryKind::kRsqrt) return -0.5f * saved * saved * saved;
  if constexpr (kKind == UnaryKind::kReciprocal) return -saved * saved;
  if constexpr (kKind == UnaryKind::kExp) return saved;
  if constexpr (kKind == UnaryKind::kLog) return 1 / saved;
  if constexpr (kKind == UnaryKind::kSigmoid) return saved * (1 - saved);
  if constexpr (kKind == UnaryKind::kTanh) return 1 - saved * saved;
  if constexpr (kKind == UnaryKind::kRelu) return saved > 0 ? 1.0f : 0.0f;
  if constexpr (kKind == UnaryKind::kSilu) {
    const float sigmoid = SigmoidOf(saved);
    return sigmoid * (1 + saved * (1 - sigmoid));
  }
  if constexpr (kKind == UnaryKind::kGelu) {
    return 0.5f * (1 + erff(saved * kSqrtHalf)) + saved * kInverseSqrt2Pi * expf(-0.5f * saved * saved);
  }
  if constexpr (kKind == UnaryKind::kGeluTanh) {
    const float tanh = tanhf(kSqrt2OverPi * (saved + kGeluCubic * saved * saved * saved));
    const float inner = kSqrt2OverPi * (1 + 3 * kGeluCubic * saved * saved);
    return 0.5f * (1 + tanh) + 0.5f * saved * (1 - tanh * tanh) * inner;
  }
}

template <BinaryKind kKind>
ASHLAR_HOST_DEVICE float BinaryOf(float left, float right, float scale) {
  if constexpr (kKind == BinaryKind::kAdd) return left + scale * right;
  if constexpr (kKind == BinaryKind::kSubtract) return left - scale * right;
  if constexpr (kKind == BinaryKind::kMultiply) return left * right;
  if constexpr (kKind == BinaryKind::kDivide) return left / right;
  // A NaN on either side wins, as in IEEE 754-2019 maximum and minimum.
  if constexpr (kKind == BinaryKind::kMaximum) return left > right || left != left ? left : right;
  if constexpr (kKind == BinaryKind::kMinimum) return left < right || left != left ? left : right;
}

template <typename T>
ASHLAR_HOST_DEVICE bool CompareOf(CompareKind kind, T left, T right) {
  switch (kind) {
    case CompareKind::kEqual:
      return left == right;
    case CompareKind::kNotEqual:
      return left != right;
    case CompareKind::kLess:
      return left < right;
    case CompareKind::kLessEqual:
      return left <= right;
    case CompareKind::kGreater:
      return left > right;
    case CompareKind::kGreaterEqual:
      return left >= right;
  }
  return false;
}

// Calls `body.template operator()<kind>()`.
template <typename Body>
ASHLAR_HOST_DEVICE void VisitUnary(UnaryKind kind, const Body& body) {
#define ASHLAR_UNARY_CASE(K) \
  case UnaryKind::K:         \
    return body.template operator()<UnaryKind::K>();
  switch (kind) {
    ASHLAR_UNARY_CASE(kNegate)
    ASHLAR_UNARY_CASE(kAbs)
    ASHLAR_UNARY_CASE(kSquare)
    ASHLAR_UNARY_CASE(kSqrt)
    ASHLAR_UNARY_CASE(kRsqrt)
    ASHLAR_UNARY_CASE(kReciprocal)
    ASHLAR_UNARY_CASE(kExp)
    ASHLAR_UNARY_CASE(kLog)
    ASHLAR_UNARY_CASE(kSigmoid)
    ASHLAR_UNARY_CASE(kTanh)
    ASHLAR_UNARY_CASE(kRelu)
    ASHLAR_UNARY_CASE(kSilu)
    ASHLAR_UNARY_CASE(kGelu)
    ASHLAR_UNARY_CASE(kGeluTanh)
  }
#undef ASHLAR_UNARY_CASE
}

template <typename Body>
ASHLAR_HOST_DEVICE void VisitBinary(BinaryKind kind, const Body& body) {
#define ASHLAR_BINARY_CASE(K) \
  case BinaryKind::K:         \
    return body.template operator()<BinaryKind::K>();
  switch (kind) {
    ASHLAR_BINARY_CASE(kAdd)
    ASHLAR_BINARY_CASE(kSubtract)
    ASHLAR_BINARY_CASE(kMultiply)
    ASHLAR_BINARY_CASE(kDivide)
    ASHLAR_BINARY_CASE(kMaximum)
    ASHLAR_BINARY_CASE(kMinimum)
  }
#undef ASHLAR_BINARY_CASE
}

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_POINTWISE_H_
