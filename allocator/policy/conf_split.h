// The settings of a text of PYTORCH_CUDA_ALLOC_CONF's grammar, as they stand: options.cc reads them.
//
//   SplitConf("max_split_size_mb:64,roundup_power2_divisions:[1:2,>:4]")  ->  {max_split_size_mb, 64},
//                                                                             {roundup_power2_divisions, [1:2,>:4]}
#ifndef ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_
#define ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace ashlar::policy {

struct Setting {
  std::string key;
  std::string value;
};

// How PyTorch's releases cut a text. Each cuts it into words and the signs , : [ ] and takes them in turn.
enum class Grammar : std::uint8_t {
  kUpTo26,  // only spaces are no part of a word; the signs between words are looked at
  kLater,   // no blank is; any sign may stand where a colon or a comma should
};

// The words and signs.
std::vector<std::string> ConfTokens(absl::string_view text, Grammar grammar);

// The settings up to the first that is none, and what is wrong with that.
struct Split {
  std::vector<Setting> settings = {};
  absl::Status status = {};
};
Split SplitAsFarAsItGoes(absl::string_view conf, Grammar grammar);

absl::StatusOr<std::vector<Setting>> SplitConf(absl::string_view conf, Grammar grammar = Grammar::kLater);

// `b` behind `a`, of which either may be nothing: a comma at the end of `a` is the one between them.
std::string JoinedConf(absl::string_view a, absl::string_view b);

// The text without the settings of this key; as given where there are none, or where it is no text of settings.
std::string WithoutKey(absl::string_view conf, absl::string_view key);

// Reads the numbers of settings, and says what is wrong with their text in words that follow it: "'5MiB' is no number".
//
//   std::uint64_t value = 0;
//   absl::string_view problem = WholeProblem("20.5", value);  // "is no whole number"
//
// A setting of ours is a number and nothing else. PyTorch reads its own by std::stoull (up to 2.6 std::stoi) and
// std::stod: what stands behind the number is not looked at, and "-1" is the largest number there is.

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
  const auto read = [&value](absl::string_view digits, absl::chars_format format) {
    return absl::from_chars(digits.data(), digits.data() + digits.size(), value, format);
  };
  const bool is_hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  absl::from_chars_result result = is_hex ? read(text.substr(2), absl::chars_format::hex) : absl::from_chars_result{};
  if (!is_hex || result.ec == std::errc::invalid_argument) result = read(text, absl::chars_format::general);
  if (result.ec == std::errc::invalid_argument) return kNoNumber;
  if (result.ec != std::errc() || std::fpclassify(value) == FP_SUBNORMAL) {
    return "is beyond the numbers of double precision";
  }
  if (is_minus) value = -value;
  return "";
}

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_
