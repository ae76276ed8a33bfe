#include "allocator/policy/size_rule.h"

#include <algorithm>
#include <bit>

namespace ashlar::policy {
namespace {

// Up to the next multiple of (power of two below) / divisions; powers of two stay.
std::uint64_t RoundUpBetweenPowers(std::uint64_t bytes, std::uint64_t divisions) {
  if (std::has_single_bit(bytes)) return bytes;
  return RoundUp(bytes, std::bit_floor(bytes) / divisions);
}

std::uint64_t DivisionsFor(std::uint64_t request_bytes, const Options& options) {
  const int power = static_cast<int>(std::bit_width(request_bytes)) - 1;
  return options.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(power - 20, 0, 15))];
}

}  // namespace

std::uint64_t RoundedBytes(std::uint64_t request_bytes, const Options& options) {
  if (request_bytes < kMinBlockBytes) return kMinBlockBytes;
  const std::uint64_t divisions = DivisionsFor(request_bytes, options);
  if (divisions == 0 || request_bytes <= kMinBlockBytes * divisions ||
      request_bytes > options.roundup_bypass_threshold_bytes) {
    return RoundUp(request_bytes, kMinBlockBytes);
  }
  if (divisions == 1) {
    // 1.13 leaves these requests as they are, not even rounded to 512: an upstream defect that is kept.
    return options.compat == Compat::kTorch113 ? request_bytes : RoundUp(request_bytes, kMinBlockBytes);
  }
  return RoundUpBetweenPowers(request_bytes, divisions);
}

}  // namespace ashlar::policy
