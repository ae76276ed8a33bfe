#include "allocator/policy/size_rule.h"

#include <algorithm>
#include <bit>

#include "allocator/policy/strategy.h"

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
    return RulesOf(options.compat).rounds_after_one_division ? RoundUp(request_bytes, kMinBlockBytes) : request_bytes;
  }
  return RoundUpBetweenPowers(request_bytes, divisions);
}

std::uint64_t LargestInRun(bool is_small, std::uint64_t run_bytes) {
  if (is_small) return std::min(run_bytes, kSmallMaxBytes);
  return run_bytes > kSmallMaxBytes ? run_bytes : 0;
}

std::uint64_t LargestFromDevice(bool is_small, std::uint64_t free_bytes, std::uint64_t tail_bytes,
                                const Options& options) {
  if (options.expandable_segments) {
    const std::uint64_t pages = RoundDown(free_bytes, PageBytes(is_small, options));
    return pages == 0 ? 0 : LargestInRun(is_small, tail_bytes + pages);
  }
  if (is_small) return free_bytes >= kSmallSegmentBytes ? kSmallMaxBytes : 0;
  const std::uint64_t fitted = RoundDown(free_bytes, kRoundLargeBytes);
  if (fitted >= kMinLargeBytes) return fitted;
  return free_bytes >= options.large_segment_bytes ? kMinLargeBytes - kMinBlockBytes : 0;
}

bool IsServedFromDevice(std::uint64_t rounded_bytes, std::uint64_t free_bytes, std::uint64_t tail_bytes,
                        const Options& options) {
  if (!options.expandable_segments) return free_bytes >= SegmentBytes(rounded_bytes, options);
  return LargestFromDevice(IsSmall(rounded_bytes), free_bytes, tail_bytes, options) >= rounded_bytes;
}

}  // namespace ashlar::policy
