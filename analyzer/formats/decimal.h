// Unsigned decimal numbers, eight digits at a time: a trace is mostly digits of numbers whose lengths vary, which a
// digit-by-digit loop pays for with a mispredicted branch a number.
//
//   const char* at = text; std::uint64_t value;
//   if (!ScanDecimal(&at, end, &value)) ...      // does not fit 64 bits; `at` is past the digits in any case
#ifndef ASHLAR_ANALYZER_FORMATS_DECIMAL_H_
#define ASHLAR_ANALYZER_FORMATS_DECIMAL_H_

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace ashlar::formats {
namespace internal {

inline constexpr std::array<std::uint64_t, 9> kPowersOfTen = {1,      10,      100,      1000,     10000,
                                                              100000, 1000000, 10000000, 100000000};

// `word` holds eight characters, the first in the low byte, each already xor-ed with '0'.
constexpr unsigned LeadingDigits(std::uint64_t word) {
  const std::uint64_t others = ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
  return others == 0 ? 8 : static_cast<unsigned>(std::countr_zero(others)) / 8;
}

// The value of eight digits in the same layout: pairs, then fours, then eight.
constexpr std::uint64_t EightDigits(std::uint64_t word) {
  const std::uint64_t pairs = word * 10 + (word >> 8);
  constexpr std::uint64_t kMask = 0x000000ff000000ffu;
  return ((pairs & kMask) * 0x000f424000000064u + ((pairs >> 16) & kMask) * 0x0000271000000001u) >> 32 & 0xffffffffu;
}

// The slow way, which sees an overflow.
[[gnu::noinline]] inline bool ScanExactly(const char* at, const char* end, std::uint64_t* value) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t v = 0;
  for (; at < end; ++at) {
    const auto digit = static_cast<std::uint64_t>(*at - '0');
    if (v > (kMax - digit) / 10) return false;
    v = v * 10 + digit;
  }
  *value = v;
  return true;
}

}  // namespace internal

// Steps *at over the digits at it, perhaps none. False where the number does not fit.
inline bool ScanDecimal(const char** at, const char* end, std::uint64_t* value) {
  const char* const start = *at;
  const char* p = start;
  std::uint64_t v = 0;
  unsigned digits = 8;
  if constexpr (std::endian::native == std::endian::little) {
    while (digits == 8 && end - p >= 8) {
      std::uint64_t word;
      std::memcpy(&word, p, 8);
      word ^= 0x3030303030303030u;
      digits = internal::LeadingDigits(word);
      if (digits == 0) break;
      v = v * internal::kPowersOfTen[digits] + internal::EightDigits(word << (64 - 8 * digits));
      p += digits;
    }
  }
  if (digits == 8) {
    for (; p < end && static_cast<unsigned char>(*p - '0') <= 9; ++p) v = v * 10 + static_cast<std::uint64_t>(*p - '0');
  }
  *at = p;
  *value = v;
  return p - start <= 19 || internal::ScanExactly(start, p, value);  // 19 digits always fit
}

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_DECIMAL_H_
