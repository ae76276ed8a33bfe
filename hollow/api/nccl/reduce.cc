#include "hollow/api/nccl/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ashlar::hollow {
namespace {

// A float of few bits: one sign, kExponent and kMantissa. kIeee: the top exponent is for infinities and NaNs, else only
// all bits set is a NaN. kSaturates: what is too great becomes the greatest finite value.
template <typename BitsType, int kExponent, int kMantissa, bool kIeee, bool kSaturates>
struct SmallFloat {
  using Bits = BitsType;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr Bits kMagnitude = static_cast<Bits>((1U << (kExponent + kMantissa)) - 1);
  static constexpr Bits kInfinity = static_cast<Bits>(((1U << kExponent) - 1) << kMantissa);
  static constexpr Bits kNan = kMagnitude;
  static constexpr Bits kGreatest = static_cast<Bits>(kIeee ? kInfinity - 1 : kMagnitude - 1);

  static float Decode(Bits bits) {
    const Bits magnitude = bits & kMagnitude;
    const float sign = bits > kMagnitude ? -1.0F : 1.0F;
    if (kIeee ? magnitude > kInfinity : magnitude == kNan) return std::numeric_limits<float>::quiet_NaN();
    if (kIeee && magnitude == kInfinity) return sign * std::numeric_limits<float>::infinity();
    const std::uint32_t exponent = magnitude >> kMantissa;
    const std::uint32_t fraction = magnitude & ((1U << kMantissa) - 1);
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - kBias - kMantissa);
    return sign * std::bit_cast<float>(((exponent + 127 - kBias) << 23) | (fraction << (23 - kMantissa)));
  }

  static Bits Encode(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    const Bits sign = static_cast<Bits>((word >> 31) << (kExponent + kMantissa));
    const std::uint32_t magnitude = word & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) return sign | kNan;
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    std::uint32_t bits;
    if (exponent >= 1 - kBias) {
      // Half of the last place kept, less one if that is even: the carry may go into the exponent, which is right.
      constexpr int kDropped = 23 - kMantissa;
      const std::uint32_t rounded = magnitude + ((1U << (kDropped - 1)) - 1) + ((magnitude >> kDropped) & 1);
      const std::uint32_t rebased = rounded - (static_cast<std::uint32_t>(127 - kBias) << 23);
      bits = rounded >= 0x7F800000 ? std::uint32_t{kMagnitude} : rebased >> kDropped;
    } else {
      // Below the normal ones: a multiple of the least value.
      bits = static_cast<std::uint32_t>(
          std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), kBias - 1 + kMantissa)));
    }
    if (bits > kGreatest) bits = kSaturates ? kGreatest : kInfinity;
    return static_cast<Bits>(sign | bits);
  }
};

// Source: cuda_fp16.h, cuda_bf16.h (IEEE), cuda_fp8.h: the constructors of __nv_fp8_e4m3 and _e5m2 saturate
// (__NV_SATFINITE).
using Float16 = SmallFloat<std::uint16_t, 5, 10, true, false>;
using Float8e4m3 = SmallFloat<std::uint8_t, 4, 3, false, true>;
using Float8e5m2 = SmallFloat<std::uint8_t, 5, 2, true, true>;

struct Bfloat16 {
  using Bits = std::uint16_t;
  static float Decode(Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static Bits Encode(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
    return static_cast<Bits>((word + 0x7FFF + ((word >> 16) & 1)) >> 16);
  }
};

// A type of C++ itself.
template <typename Number>
struct Plain {
  using Bits = Number;
  static Number Decode(Number value) { return value; }
  static Number Encode(Number value) { return value; }
};

// Calls function(Codec{}) with what reads and writes a value of the type.
template <typename Function>
void WithCodec(NcclType type, Function function) {
  switch (type) {
    case NcclType::kInt8:
      return function(Plain<std::int8_t>{});
    case NcclType::kUint8:
      return function(Plain<std::uint8_t>{});
    case NcclType::kInt32:
      return function(Plain<std::int32_t>{});
    case NcclType::kUint32:
      return function(Plain<std::uint32_t>{});
    case NcclType::kInt64:
      return function(Plain<std::int64_t>{});
    case NcclType::kUint64:
      return function(Plain<std::uint64_t>{});
    case NcclType::kFloat16:
      return function(Float16{});
    case NcclType::kFloat32:
      return function(Plain<float>{});
    case NcclType::kFloat64:
      return function(Plain<double>{});
    case NcclType::kBfloat16:
      return function(Bfloat16{});
    case NcclType::kFloat8e4m3:
      return function(Float8e4m3{});
    case NcclType::kFloat8e5m2:
      return function(Float8e5m2{});
  }
}

template <typename Number>
Number Add(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    return static_cast<Number>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

template <typename Number>
Number Multiply(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    return static_cast<Number>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename Number>
Number Greater(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    return std::max(a, b);
  } else {
    return std::fmax(a, b);
  }
}

template <typename Number>
Number Less(Number a, Number b) {
  if constexpr (std::is_integral_v<Number>) {
    return std::min(a, b);
  } else {
    return std::fmin(a, b);
  }
}

template <typename Codec, typename Step>
void ForEach(void* total, const void* next, std::size_t count, Step step) {
  using Bits = typename Codec::Bits;
  auto* a = static_cast<std::byte*>(total);
  const auto* b = static_cast<const std::byte*>(next);
  for (std::size_t i = 0; i < count; ++i) {
    Bits x;
    Bits y;
    std::memcpy(&x, a + i * sizeof(Bits), sizeof x);
    std::memcpy(&y, b + i * sizeof(Bits), sizeof y);
    x = Codec::Encode(step(Codec::Decode(x), Codec::Decode(y)));
    std::memcpy(a + i * sizeof(Bits), &x, sizeof x);
  }
}

}  // namespace

std::size_t NcclSizeOf(NcclType type) {
  std::size_t size = 0;
  WithCodec(type, [&size](auto codec) { size = sizeof(typename decltype(codec)::Bits); });
  return size;
}

const char* NcclNameOf(NcclType type) {
  constexpr const char* kNames[kNcclTypes] = {"int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
                                              "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  return kNames[static_cast<int>(type)];
}

bool NcclIsInteger(NcclType type) { return type <= NcclType::kUint64; }

void NcclCombine(NcclOp op, NcclType type, void* total, const void* next, std::size_t count) {
  WithCodec(type, [&](auto codec) {
    using Codec = decltype(codec);
    switch (op) {
      case NcclOp::kSum:
      case NcclOp::kAvg:
        return ForEach<Codec>(total, next, count, [](auto a, auto b) { return Add(a, b); });
      case NcclOp::kProd:
        return ForEach<Codec>(total, next, count, [](auto a, auto b) { return Multiply(a, b); });
      case NcclOp::kMax:
        return ForEach<Codec>(total, next, count, [](auto a, auto b) { return Greater(a, b); });
      case NcclOp::kMin:
        return ForEach<Codec>(total, next, count, [](auto a, auto b) { return Less(a, b); });
    }
  });
}

void NcclMultiply(NcclType type, void* values, const void* scalar, std::size_t count) {
  WithCodec(type, [&](auto codec) {
    using Codec = decltype(codec);
    typename Codec::Bits bits;
    std::memcpy(&bits, scalar, sizeof bits);
    const auto by = Codec::Decode(bits);
    ForEach<Codec>(values, values, count, [by](auto a, auto) { return Multiply(a, by); });
  });
}

void NcclBeforeAverage(NcclType type, void* values, std::size_t count, int ranks) {
  if (NcclIsInteger(type)) return;
  WithCodec(type, [&](auto codec) {
    using Codec = decltype(codec);
    using Number = decltype(Codec::Decode({}));
    const auto bits = Codec::Encode(static_cast<Number>(1.0 / ranks));
    NcclMultiply(type, values, &bits, count);
  });
}

void NcclAfterAverage(NcclType type, void* values, std::size_t count, int ranks) {
  if (!NcclIsInteger(type)) return;
  WithCodec(type, [&](auto codec) {
    using Codec = decltype(codec);
    using Number = decltype(Codec::Decode({}));
    ForEach<Codec>(values, values, count, [&](auto sum, auto) {
      if constexpr (std::is_floating_point_v<Number>) {
        return sum;
      } else if constexpr (std::is_signed_v<Number>) {
        return static_cast<Number>(sum / static_cast<std::int64_t>(ranks));
      } else {
        return static_cast<Number>(sum / static_cast<std::uint64_t>(ranks));
      }
    });
  });
}

}  // namespace ashlar::hollow
