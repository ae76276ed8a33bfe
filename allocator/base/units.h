// Rounds, prints and reads the quantities of ashlar/units.h, for every floor.
#ifndef ASHLAR_ALLOCATOR_BASE_UNITS_H_
#define ASHLAR_ALLOCATOR_BASE_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ashlar/units.h"  // IWYU pragma: export

namespace ashlar {

// `value` rounded up to a multiple of `step` (step > 0); the caller makes sure that it cannot pass 2^64.
constexpr std::uint64_t RoundUp(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }
// A count of bytes where it may also be less than nothing; the caller makes sure that it is below 2^63.
constexpr std::int64_t Signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }
constexpr std::uint64_t RoundDown(std::uint64_t value, std::uint64_t step) { return value / step * step; }

// As FormatBytes, with a sign.
std::string FormatSignedBytes(std::int64_t bytes);

// "81,402": digits grouped by thousands.
std::string FormatCount(std::uint64_t count);
// "1,234 requests", "1 request" of "request".
std::string FormatCounted(std::uint64_t count, absl::string_view what);

// Reads "16GiB", "16G" (both 2^30), "10GB" (10^9, as disks and cards are sold), "512 MiB", "1073741824".
// Errors name the text and the allowed forms.
absl::StatusOr<std::uint64_t> ParseBytes(absl::string_view text);

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_UNITS_H_
