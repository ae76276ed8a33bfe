#include "allocator/policy/servable_size.h"

#include <algorithm>

#include "allocator/policy/size_rule.h"

namespace ashlar::policy {

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
