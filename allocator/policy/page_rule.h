// The page rule: how much a growth maps, and in pages of which size.
//
//   spare 20 GiB, reserved 3 GiB, wanted 40 MiB   ->   2 pages of 32 MiB
//   spare 300 MiB, reserved 23 GiB, wanted 40 MiB ->   20 pages of 2 MiB
//
// A page is one handle of the driver: mapping costs by the handle, and only a page that is wholly free can move. So
// pages are large while the device has room, and small where the room gets scarce.
#ifndef ASHLAR_ALLOCATOR_POLICY_PAGE_RULE_H_
#define ASHLAR_ALLOCATOR_POLICY_PAGE_RULE_H_

#include <cstdint>

#include "allocator/policy/options.h"

namespace ashlar::policy {

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

#endif  // ASHLAR_ALLOCATOR_POLICY_PAGE_RULE_H_
