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

// Computes the greatest request that given memory would serve, for the report on a request that was too great. Sizes
// are rounded, in bytes; 0 = none. The size classes are those of docs/internals/policy.md: a small request has at most
// 1 MiB, a large one more, and neither is served from the other's memory.

// From a run of free bytes of its lane.
std::uint64_t LargestInRun(bool is_small, std::uint64_t run_bytes);

// From `free_bytes` of the device: a new segment, or, with expandable segments, pages that continue the `tail_bytes`
// free at the end of one. It may be greater than a request that is refused: 18 MiB of the device serve a request of
// 12 MiB, not one of 5 MiB, whose segment has 20.
std::uint64_t LargestFromDevice(bool is_small, std::uint64_t free_bytes, std::uint64_t tail_bytes,
                                const Options& options);

// Whether `free_bytes` of the device serve a request of this rounded size, all of it, in one of these ways.
bool IsServedFromDevice(std::uint64_t rounded_bytes, std::uint64_t free_bytes, std::uint64_t tail_bytes,
                        const Options& options);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_SIZE_RULE_H_
