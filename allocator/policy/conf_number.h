// Says what is wrong with the text of a number in a setting, in words that follow the text: "'5MiB' is no number".
//
//   std::uint64_t value = 0;
//   absl::string_view problem = WholeProblem("20.5", value);  // "is no whole number"
#ifndef ASHLAR_ALLOCATOR_POLICY_CONF_NUMBER_H_
#define ASHLAR_ALLOCATOR_POLICY_CONF_NUMBER_H_

#include <bit>
#include <cmath>
#include <cstdint>

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

// The same for a power of two; 0 is none, and is read all the same.
inline absl::string_view PowerProblem(absl::string_view text, std::uint64_t& value) {
  const absl::string_view problem = WholeProblem(text, value);
  return problem.empty() && !std::has_single_bit(value) ? kNoPower : problem;
}

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_CONF_NUMBER_H_
