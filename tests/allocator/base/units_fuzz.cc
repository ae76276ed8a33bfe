// A text that reads as a size reads back as the same size when printed as a plain number, and close to it when printed
// with a unit.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = ashlar::ParseBytes(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!bytes.ok()) return 0;
  const auto again = ashlar::ParseBytes(absl::StrCat(*bytes));
  ASHLAR_CHECK(again.ok());
  ASHLAR_CHECK_EQ(*again, *bytes);
  const auto rounded = ashlar::ParseBytes(ashlar::FormatBytes(*bytes));
  // 2^64 - 1 prints as 16777216.00 TiB, which is one more than fits.
  const bool prints_past_the_end = static_cast<double>(*bytes) >= 0.9999999 * 0x1p64;
  ASHLAR_CHECK(rounded.ok() || prints_past_the_end);
  if (!rounded.ok()) return 0;
  const double exact = static_cast<double>(*bytes);
  ASHLAR_CHECK_LE(std::abs(static_cast<double>(*rounded) - exact), 1 + exact * 0.005);
  return 0;
}
