// Policy::kTorch: PyTorch's rules. An expandable segment grows in pages of one size, behind its last block or in the
// first hole that is large enough; and what the cache holds goes back to the device before a request fails.
#include "allocator/base/units.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/strategy.h"

namespace ashlar::policy {
namespace {

bool HasRoom(const Block* block, std::uint64_t wanted_bytes) {
  std::uint64_t bytes = 0;
  for (; bytes < wanted_bytes && IsUsable(block); block = block->next) bytes += block->size_bytes;
  return bytes >= wanted_bytes;
}

class TorchPolicy final : public Strategy {
 public:
  constexpr TorchPolicy() : Strategy({.name = "torch", .prefers_little_room = true, .pages_tell_pool = true}) {}

  void Settle(bool /*has_order*/, Options& /*options*/) const override {}

  std::uint64_t PageBytes(bool is_small, const Options& options) const override {
    return is_small ? kSmallSegmentBytes : options.large_segment_bytes;
  }

  Block* FindGrowth(const Decision& decision) const override {
    const Lane* lane = Heap::FindLane(*decision.pool, decision.stream);
    if (lane == nullptr) return nullptr;
    for (const auto& [address, unmapped] : lane->unmapped) {
      Block* start = IsUsable(unmapped->prev) ? unmapped->prev : unmapped;
      if (HasRoom(start, decision.rounded_bytes)) return start;
    }
    return nullptr;
  }

  GrowthSize SizeOf(const GrowthNeed& need) const override { return LeastGrowth(need); }

  bool KeepsShortReservations(const Options& options) const override {
    return RulesOf(options.compat).keeps_short_reservations;
  }

  // The segment that it would take without expandable segments.
  std::uint64_t GrowthBytes(const Decision& decision) const override { return decision.segment_bytes; }

  absl::Span<const Rung> RungsAfterRefusal(const Options& options) const override {
    static constexpr Rung kRungs[] = {Rung::kReturnOversize, Rung::kWaitForAll, Rung::kReturnAll};
    static constexpr Rung kWithSearch[] = {Rung::kReturnOversize, Rung::kWaitForAll, Rung::kSearch, Rung::kReturnAll};
    static constexpr Rung kFewWaits[] = {Rung::kReturnOversize, Rung::kWaitForFew};
    if (options.sync_just_enough) return kFewWaits;
    return options.search_after_sync ? absl::MakeConstSpan(kWithSearch) : absl::MakeConstSpan(kRungs);
  }
};

constexpr TorchPolicy kTorchPolicy;

}  // namespace

const Strategy& TorchStrategy() { return kTorchPolicy; }

}  // namespace ashlar::policy
