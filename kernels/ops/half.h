// float16 and bfloat16 as bits on the host: to float exactly, from float to nearest even. Overflow gives infinity, a
// NaN stays one (quiet). Without branches on data, so that loops over them vectorise. docs/internals/ops.md; IEEE
// 754-2019 binary16.
#ifndef ASHLAR_KERNELS_OPS_HALF_H_
#define ASHLAR_KERNELS_OPS_HALF_H_

#include <bit>
#include <cstdint>

namespace ashlar::ops {

inline float FromBFloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

inline std::uint16_t ToBFloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>((is_nan ? bits | 0x400000u : rounded) >> 16);
}

inline float FromFloat16(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffu;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  // Exponents 1..30 move by 127 - 15; 31 is infinity or NaN; 0 is magnitude * 2^-24, exact in float.
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t special = (magnitude << 13) | 0x7f800000u;
  const std::uint32_t small = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f);
  const std::uint32_t finite = magnitude < 0x400u ? small : normal;
  return std::bit_cast<float>((magnitude >= 0x7c00u ? special : finite) | sign);
}

inline std::uint16_t ToFloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  // From 2^-14 on: move the exponent, round the 13 bits that go; a carry runs into the exponent, and from 65520 on into
  // infinity. Below: adding 0.5 lines the last bit up with 2^-24 and lets the addition round.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude < 0x38800000u ? magnitude : 0u) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = magnitude < 0x38800000u ? small : normal;
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x1ffu) : 0x7c00u;
  return static_cast<std::uint16_t>((magnitude >= 0x477ff000u ? special : finite) | sign);
}

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_HALF_H_
