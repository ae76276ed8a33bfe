// The size rule turns the requested bytes into the rounded size, the pool and the size of a new segment.
//
//   request 1,300,000 B --RoundedBytes--> 1,300,480 B --IsSmall: no--> large pool --SegmentBytes--> 20 MiB
#ifndef ASHLAR_ALLOCATOR_POLICY_SIZE_RULE_H_
#define ASHLAR_ALLOCATOR_POLICY_SIZE_RULE_H_

#include <cstdint>

#include "allocator/policy/options.h"

namespace ashlar::policy {

// Requests are at most this: what a device could ever hold, far below where sums could wrap.
inline constexpr std::uint64_t kMaxRequestBytes = std::uint64_t{1} << 60;

// `request_bytes` in [1, kMaxRequestBytes].
std::uint64_t RoundedBytes(std::uint64_t request_bytes, const Options& options);

constexpr bool IsSmall(std::uint64_t rounded_bytes) { return rounded_bytes <= kSmallMaxBytes; }

constexpr std::uint64_t SegmentBytes(std::uint64_t rounded_bytes, const Options& options) {
  if (IsSmall(rounded_bytes)) return kSmallSegmentBytes;
  if (rounded_bytes < kMinLargeBytes) return options.large_segment_bytes;
  return RoundUp(rounded_bytes, kRoundLargeBytes);
}

// The page in which expandable segments grow.
constexpr std::uint64_t PageBytes(bool is_small, const Options& options) {
  if (options.policy == Policy::kAshlar) return kAshlarPageBytes;
  return is_small ? kSmallSegmentBytes : options.large_segment_bytes;
}

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_SIZE_RULE_H_
