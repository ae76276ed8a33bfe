// The number formats and the generator under the ops, against models that share no code with them.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "allocator/base/rng.h"
#include "gtest/gtest.h"
#include "kernels/ops/half.h"
#include "kernels/ops/optimizer_rules.h"
#include "kernels/ops/philox.h"

namespace ashlar::ops {
namespace {

// A format of `exponent_bits` and `mantissa_bits`, its value in float64 straight from the definition.
struct Format {
  int exponent_bits;
  int mantissa_bits;
};
constexpr Format kHalf = {5, 10};
constexpr Format kBrain = {8, 7};

double ValueOf(Format format, std::uint32_t bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits >> format.mantissa_bits) & ((1u << format.exponent_bits) - 1));
  const double sign = (bits >> 15) & 1 ? -1 : 1;
  if (exponent == (1 << format.exponent_bits) - 1) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  const double fraction = std::ldexp(static_cast<double>(mantissa), -format.mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
}

// To nearest even: float64 divides by the last place exactly, and nearbyint rounds halves to even.
double Rounded(Format format, double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = std::max(std::ilogb(x), 1 - bias);
  const double place = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double rounded = std::nearbyint(x / place) * place;
  const double largest = std::ldexp(2 - std::ldexp(1.0, -format.mantissa_bits), bias);
  return std::abs(rounded) > largest ? std::copysign(std::numeric_limits<double>::infinity(), x) : rounded;
}

bool IsSame(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

TEST(HalfTest, EveryPatternWidensToItsValueAndBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const std::uint16_t pattern = static_cast<std::uint16_t>(bits);
    ASSERT_TRUE(IsSame(static_cast<double>(FromFloat16(pattern)), ValueOf(kHalf, bits))) << bits;
    ASSERT_TRUE(IsSame(static_cast<double>(FromBFloat16(pattern)), ValueOf(kBrain, bits))) << bits;
    if (std::isnan(ValueOf(kHalf, bits))) {
      EXPECT_TRUE(std::isnan(FromFloat16(ToFloat16(FromFloat16(pattern)))));
    } else {
      ASSERT_EQ(ToFloat16(FromFloat16(pattern)), pattern);
    }
    if (std::isnan(ValueOf(kBrain, bits))) {
      EXPECT_TRUE(std::isnan(FromBFloat16(ToBFloat16(FromBFloat16(pattern)))));
    } else {
      ASSERT_EQ(ToBFloat16(FromBFloat16(pattern)), pattern);
    }
  }
}

void ExpectRounded(std::uint32_t bits) {
  const float x = std::bit_cast<float>(bits);
  const double want_half = Rounded(kHalf, static_cast<double>(x));
  const double want_brain = Rounded(kBrain, static_cast<double>(x));
  ASSERT_TRUE(IsSame(static_cast<double>(FromFloat16(ToFloat16(x))), want_half)) << x;
  ASSERT_TRUE(IsSame(static_cast<double>(FromBFloat16(ToBFloat16(x))), want_brain)) << x;
}

// Each half and each midpoint between two, the floats beside them, and every exponent with random mantissas.
TEST(HalfTest, EveryBoundaryRoundsToNearestEven) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const std::uint32_t brain = pattern << 16;
    const std::uint32_t half = std::bit_cast<std::uint32_t>(static_cast<float>(ValueOf(kHalf, pattern)));
    const std::uint32_t next = std::bit_cast<std::uint32_t>(static_cast<float>(ValueOf(kHalf, pattern + 1)));
    for (const std::uint32_t at : {brain, brain + 0x8000u, half, half + (next - half) / 2}) {
      for (const std::uint32_t bits : {at - 1, at, at + 1}) ExpectRounded(bits);
    }
  }
  Rng rng(3);
  for (int i = 0; i < 200'000; ++i) ExpectRounded(static_cast<std::uint32_t>(rng.Next()));
}

// The known answers of Random123 1.14, tests/kat_vectors, "philox4x32 10".
TEST(PhiloxTest, KnownAnswers) {
  const auto expect = [](PhiloxWords counter, std::uint32_t key0, std::uint32_t key1, PhiloxWords want) {
    const PhiloxWords got = Philox(counter, key0, key1);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(got.word[i], want.word[i]) << i;
  };
  expect({{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}});
  expect({{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}}, 0xffffffffu, 0xffffffffu,
         {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}});
  expect({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u,
         {{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}});
}

TEST(PhiloxTest, ThresholdsAreProbabilitiesRoundedUp) {
  EXPECT_EQ(DropThreshold(0), 0u);
  EXPECT_EQ(DropThreshold(0.5), 1u << 23);
  EXPECT_EQ(DropThreshold(0x1p-30), 1u);
  EXPECT_FALSE(IsKept(0x7fffffff, DropThreshold(0.5)));
  EXPECT_TRUE(IsKept(0x80000000, DropThreshold(0.5)));
}

TEST(QuantizeTest, CodesDecodeAndReturn) {
  for (const Map8Bit* map : {&SignedMap8Bit(), &UnsignedMap8Bit()}) {
    for (std::size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(NearestCode(map->data(), (*map)[i]), i);
      EXPECT_TRUE(i == 0 || (*map)[i - 1] < (*map)[i]);
    }
  }
  EXPECT_EQ(SignedMap8Bit()[kSignedZeroCode], 0);
  EXPECT_EQ(UnsignedMap8Bit()[kUnsignedZeroCode], 0);
  EXPECT_EQ(NearestCode(SignedMap8Bit().data(), -5), 0);
  EXPECT_EQ(NearestCode(SignedMap8Bit().data(), 5), 255);
}

}  // namespace
}  // namespace ashlar::ops
