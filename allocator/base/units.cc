#include "allocator/base/units.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace ashlar {
namespace {

struct Unit {
  const char* name;
  std::uint64_t bytes;
};

constexpr std::uint64_t kGB = 1'000'000'000;  // a decimal unit, unlike "GiB" and "G"

constexpr std::array<Unit, 4> kPrintUnits = {Unit{"TiB", kGiB << 10}, Unit{"GiB", kGiB}, Unit{"MiB", kMiB},
                                             Unit{"KiB", kKiB}};

constexpr std::array<Unit, 14> kReadUnits = {
    Unit{"tib", kGiB << 10}, Unit{"gib", kGiB},   Unit{"mib", kMiB}, Unit{"kib", kKiB},     Unit{"tb", kGB * 1000},
    Unit{"gb", kGB},         Unit{"mb", 1000000}, Unit{"kb", 1000},  Unit{"t", kGiB << 10}, Unit{"g", kGiB},
    Unit{"m", kMiB},         Unit{"k", kKiB},     Unit{"bytes", 1},  Unit{"b", 1}};

absl::Status BadSize(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not a size: write bytes or a number with KiB, MiB, GiB or TiB, such as 16GiB"));
}

}  // namespace

std::string FormatBytes(std::uint64_t bytes) {
  for (const Unit& unit : kPrintUnits) {
    if (bytes >= unit.bytes) {
      return absl::StrFormat("%.2f %s", static_cast<double>(bytes) / static_cast<double>(unit.bytes), unit.name);
    }
  }
  return absl::StrCat(bytes, " B");
}

std::string FormatSignedBytes(std::int64_t bytes) {
  if (bytes >= 0) return FormatBytes(static_cast<std::uint64_t>(bytes));
  return absl::StrCat("-", FormatBytes(~static_cast<std::uint64_t>(bytes) + 1));
}

std::string FormatCount(std::uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string FormatCounted(std::uint64_t count, absl::string_view what) {
  return absl::StrCat(FormatCount(count), " ", what, count == 1 ? "" : "s");
}

absl::StatusOr<std::uint64_t> ParseBytes(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  absl::string_view number = lower;
  std::uint64_t scale = 1;
  for (const Unit& unit : kReadUnits) {
    if (absl::ConsumeSuffix(&number, unit.name)) {
      scale = unit.bytes;
      break;
    }
  }
  number = absl::StripAsciiWhitespace(number);
  if (number.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(number.front()))) return BadSize(text);
  if (absl::StrContains(number, "x")) return BadSize(text);  // SimpleAtod reads hexadecimal, where b is a digit
  if (std::uint64_t whole = 0; absl::SimpleAtoi(number, &whole)) {
    if (whole > UINT64_MAX / scale) return BadSize(text);
    return whole * scale;
  }
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value)) return BadSize(text);
  const double bytes = value * static_cast<double>(scale);
  if (bytes < 0 || bytes >= 18446744073709551616.0) return BadSize(text);
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace ashlar
