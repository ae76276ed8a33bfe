#include "allocator/policy/page_rule.h"

#include <algorithm>
#include <bit>

namespace ashlar::policy {

GrowthSize LeastGrowth(const GrowthNeed& need) {
  return {RoundUp(need.wanted_bytes, need.page_bytes), need.page_bytes};
}

GrowthSize GrowthOf(const GrowthNeed& need, const Options& options) {
  if (options.policy == Policy::kTorch) return LeastGrowth(need);
  const std::uint64_t share = need.is_small ? kSmallPoolShare : 1;
  const std::uint64_t by_size = std::max(need.wanted_bytes, need.reserved_bytes / kReservedShare / share);
  const std::uint64_t most =
      std::min({need.spare_bytes / kSpareShare / share, by_size, kLargestPageBytes, need.room_bytes});
  if (most < 2 * need.page_bytes) return LeastGrowth(need);
  const std::uint64_t page_bytes = need.page_bytes * std::bit_floor(most / need.page_bytes);
  return {std::min(RoundUp(need.wanted_bytes, page_bytes), RoundDown(need.room_bytes, page_bytes)), page_bytes};
}

}  // namespace ashlar::policy
