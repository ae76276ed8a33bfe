// Byte units, streams and pools: the quantities every floor shares.
//
// Sizes and addresses are plain std::uint64_t whose name says the unit (`size_bytes`, `address`); a stream and a
// pool are types of their own, so that they cannot be swapped with a size. All intervals are half-open. Sizes print
// in binary units, with the base in the unit's name: 1.50 GiB = 1.5 * 2^30 bytes.
#ifndef ASHLAR_ALLOCATOR_BASE_UNITS_H_
#define ASHLAR_ALLOCATOR_BASE_UNITS_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A stream handle as the integer the framework prints; 0 is the default stream. Orders as the integers do.
enum class Stream : std::uint64_t {};
constexpr std::uint64_t Handle(Stream stream) { return static_cast<std::uint64_t>(stream); }

// A memory pool as PyTorch names it, (capture id, user id); {0, 0} is the default pool.
struct PoolId {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  auto operator<=>(const PoolId&) const = default;
  constexpr bool IsDefault() const { return first == 0 && second == 0; }
};

// `value` rounded up to a multiple of `step` (step > 0); the caller makes sure that it cannot pass 2^64.
constexpr std::uint64_t RoundUp(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }
// A count of bytes where it may also be less than nothing; the caller makes sure that it is below 2^63.
constexpr std::int64_t Signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }
constexpr std::uint64_t RoundDown(std::uint64_t value, std::uint64_t step) { return value / step * step; }

// "220.00 MiB", "1.26 GiB", "512 B": two decimals from KiB up, the largest unit that keeps the figure >= 1.
std::string FormatBytes(std::uint64_t bytes);
std::string FormatSignedBytes(std::int64_t bytes);

// "81,402": digits grouped by thousands.
std::string FormatCount(std::uint64_t count);

// Reads "16GiB", "1.5 GB" (GB, MB, KB mean the binary units here, as in PyTorch's texts), "512MiB", "1073741824".
// Errors name the text and the allowed forms.
absl::StatusOr<std::uint64_t> ParseBytes(absl::string_view text);

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_UNITS_H_
