// Reads the numbers of settings, and says what is wrong with their text in words that follow it: "'5MiB' is no number".
//
//   std::uint64_t value = 0;
//   absl::string_view problem = WholeProblem("20.5", value);  // "is no whole number"
//
// A setting of ours is a number and nothing else. PyTorch reads its own by std::stoull (up to 2.6 std::stoi) and
// std::stod: what stands behind the number is not looked at, and "-1" is the largest number there is.
#ifndef ASHLAR_ALLOCATOR_POLICY_CONF_NUMBER_H_
#define ASHLAR_ALLOCATOR_POLICY_CONF_NUMBER_H_

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace ashlar::policy {

inline constexpr absl::string_view kNoNumber = "is no number";
inline constexpr absl::string_view kTooSmall = "is too small";
inline constexpr absl::string_view kTooLarge = "is too large";
inline constexpr absl::string_view kNoPower = "is no power of two";

// Why the text is no whole number from 0 to 2^64 - 1; empty where it is one, which `value` is then.
inline absl::string_view WholeProblem(absl::string_view text, std::uint64_t& value) {
  if (absl::SimpleAtoi(text, &value)) return "";
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || std::isnan(number)) return kNoNumber;
  if (number < 0) return kTooSmall;
  return number >= 0x1p64 ? kTooLarge : "is no whole number";
}

// Which of the two PyTorch reads a whole number by.
enum class Width : std::uint8_t { kInt, kUnsignedLongLong };

// Takes a sign from the front; true for a minus.
inline bool TakeMinus(absl::string_view& text) {
  if (text.empty() || (text.front() != '-' && text.front() != '+')) return false;
  const bool is_minus = text.front() == '-';
  text.remove_prefix(1);
  return is_minus;
}

// As PyTorch: the number at the front. Why there is none; empty where there is one, which `value` is then.
inline absl::string_view TorchWholeProblem(absl::string_view text, Width width, std::uint64_t& value) {
  text = absl::StripLeadingAsciiWhitespace(text);
  const bool is_minus = TakeMinus(text);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument) return kNoNumber;
  if (error != std::errc()) return is_minus ? kTooSmall : kTooLarge;
  constexpr std::uint64_t kMostInt = std::numeric_limits<std::int32_t>::max();
  if (width == Width::kInt && number > kMostInt + (is_minus ? 1 : 0)) return is_minus ? kTooSmall : kTooLarge;
  value = is_minus ? 0 - number : number;
  return "";
}

// The same for a number with a fraction.
inline absl::string_view TorchNumberProblem(absl::string_view text, double& value) {
  text = absl::StripLeadingAsciiWhitespace(text);
  const bool is_minus = TakeMinus(text);
  if (!text.empty() && text.front() == '-') return kNoNumber;  // a second sign, which from_chars would take
  const auto read = [&value](absl::string_view digits, std::chars_format format) {
    return std::from_chars(digits.data(), digits.data() + digits.size(), value, format);
  };
  const bool is_hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  std::from_chars_result result = is_hex ? read(text.substr(2), std::chars_format::hex) : std::from_chars_result{};
  if (!is_hex || result.ec == std::errc::invalid_argument) result = read(text, std::chars_format::general);
  if (result.ec == std::errc::invalid_argument) return kNoNumber;
  if (result.ec != std::errc() || std::fpclassify(value) == FP_SUBNORMAL) {
    return "is beyond the numbers of double precision";
  }
  if (is_minus) value = -value;
  return "";
}

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_CONF_NUMBER_H_
