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

// The page rule: how much a growth maps, and in pages of which size.
//
//   spare 20 GiB, reserved 3 GiB, wanted 40 MiB   ->   2 pages of 32 MiB
//   spare 300 MiB, reserved 23 GiB, wanted 40 MiB ->   20 pages of 2 MiB
//
// A page is one handle of the driver: mapping costs by the handle, and only a page that is wholly free can move. So
// pages are large while the device has room, and small where the room gets scarce.

// Of Policy::kAshlar: chosen on the recorded runs of docs/internals/policy.md, by the cost model of SimDevice.
inline constexpr std::uint64_t kLargestPageBytes = 64 * kMiB;
inline constexpr std::uint64_t kSpareShare = 512;     // a page is at most this part of what is not reserved,
inline constexpr std::uint64_t kReservedShare = 16;   // and of what is reserved, where the request is not larger
inline constexpr std::uint64_t kSmallPoolShare = 16;  // in the small pool, of each

// What a growth knows. Bytes.
struct GrowthNeed {
  std::uint64_t wanted_bytes = 0;    // at least 1
  std::uint64_t room_bytes = 0;      // unmapped addresses there; a multiple of page_bytes
  std::uint64_t reserved_bytes = 0;  // by the allocator
  std::uint64_t spare_bytes = 0;     // what it may reserve besides
  std::uint64_t page_bytes = 0;      // of the segment: every page is a multiple
  bool is_small = false;             // of the small pool
};

struct GrowthSize {
  std::uint64_t size_bytes = 0;  // whole pages, at most the room
  std::uint64_t page_bytes = 0;
};

// In the segment's own pages, no more than is wanted takes.
GrowthSize LeastGrowth(const GrowthNeed& need);
// By the policy of the options.
GrowthSize GrowthOf(const GrowthNeed& need, const Options& options);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_SIZE_RULE_H_
