// A flag whose value is a size in bytes: "16GiB", "10GB" (10^9), or a plain number of bytes.
#ifndef ASHLAR_ANALYZER_CLI_SIZE_FLAG_H_
#define ASHLAR_ANALYZER_CLI_SIZE_FLAG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace ashlar::cli {

// Sizes that a flag takes; half-open.
struct SizeRange {
  std::uint64_t begin_bytes = 1;
  std::uint64_t end_bytes = ~std::uint64_t{0};
  // A plain number below it is GiB or MiB whose unit was forgotten: no device, and no part of one, is that small.
  std::uint64_t least_plain_bytes = std::uint64_t{64} << 10;
};

// The memory of a device, or a part of it; up to the most that a replay simulates.
SizeRange DeviceSizes();

// Sets `out`; leaves it where the text is empty. Errors name the flag: no size, out of the range, or a plain number so
// small that its unit was forgotten.
absl::Status ReadSize(const char* flag, const std::string& text, const SizeRange& range,
                      std::optional<std::uint64_t>& out);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_SIZE_FLAG_H_
