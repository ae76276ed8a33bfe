// The pages of Policy::kAshlar: where growth maps the fewest, how large they are, and which free ones may move there.
//
//   const GrowthPlace place = FindLeastGrowth(decision);       // it takes 4 pages
//   for (const FreePages& free : PagesToMove(heap, decision, place, 2 * kAshlarPageBytes)) ...   // the device has 2
#ifndef ASHLAR_ALLOCATOR_POLICY_ASHLAR_STRATEGY_H_
#define ASHLAR_ALLOCATOR_POLICY_ASHLAR_STRATEGY_H_

#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/policy/heap.h"

namespace ashlar::policy {

// The granularity of cuMemCreate on every card that has virtual memory management so far.
inline constexpr std::uint64_t kAshlarPageBytes = 2 * kMiB;

// The page rule: how much a growth maps, and in pages of which size.
//
//   spare 20 GiB, reserved 3 GiB, wanted 40 MiB   ->   2 pages of 32 MiB
//   spare 300 MiB, reserved 23 GiB, wanted 40 MiB ->   20 pages of 2 MiB
//
// A page is one handle of the driver: mapping costs by the handle, and only a page that is wholly free can move. So
// pages are large while the device has room, and small where the room gets scarce. The numbers were chosen on the
// recorded runs of docs/internals/policy.md, by the cost model of SimDevice.
inline constexpr std::uint64_t kLargestPageBytes = 64 * kMiB;
inline constexpr std::uint64_t kSpareShare = 512;     // a page is at most this part of what is not reserved,
inline constexpr std::uint64_t kReservedShare = 16;   // and of what is reserved, where the request is not larger
inline constexpr std::uint64_t kSmallPoolShare = 16;  // in the small pool, of each

// Where growth maps the fewest bytes; of equals the lowest.
struct GrowthPlace {
  Block* start = nullptr;       // nullptr: a new reservation is needed
  std::uint64_t map_bytes = 0;  // whole pages
};
GrowthPlace FindLeastGrowth(const Decision& decision);

// Whole free pages of `bytes` or a little more, which may be unmapped and mapped where `place` needs them: of the
// decision's lane first, then of its stream, then of other streams. All there are where that is less.
struct FreePages {
  Block* block = nullptr;
  std::vector<PageRun> runs;  // by address
};
std::vector<FreePages> PagesToMove(const Heap& heap, const Decision& decision, const GrowthPlace& place,
                                   std::uint64_t bytes);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_ASHLAR_STRATEGY_H_
