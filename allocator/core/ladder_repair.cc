// The rungs of Policy::kAshlar once the device has refused: whole free pages move to where the request needs them.
#include "allocator/core/ladder.h"

namespace ashlar::core {

// First as many as are missing beside what the device should have, then, where other programs hold that, all of them.
Growth Ladder::GrowByRepair(const policy::Plan& plan) {
  Growth grown{.refusal = Refusal::kOutOfMemory};
  const std::uint64_t spare_bytes = limits_.SpareBytes(ledger_.heap().reserved_bytes());
  for (const std::uint64_t spare : {spare_bytes, std::uint64_t{0}}) {
    if (grown.refusal != Refusal::kOutOfMemory || !release_.PagesFor(plan, spare)) continue;
    ledger_.CountRetry();
    grown = growth_.Grow(plan);
  }
  return grown;
}

// Repair, then repair with what waited for other streams, and at last with everything that the cache holds.
Growth Ladder::GrowAfterRepair(const policy::Plan& plan) {
  Growth grown = GrowByRepair(plan);
  if (grown.refusal != Refusal::kOutOfMemory) return grown;
  if (ledger_.options().sync_just_enough) return GrowAfterFewWaits(plan);
  absl::Status released = Synchronize();
  if (policy::Block* found = SearchAgain(plan); found != nullptr) return AfterFailedRelease({.block = found}, released);
  grown = GrowByRepair(plan);
  if (grown.refusal != Refusal::kOutOfMemory) return AfterFailedRelease(grown, released);
  released.Update(release_.Everything(plan.pair));
  ledger_.CountRetry();
  return AfterFailedRelease(growth_.Grow(plan), released);
}

}  // namespace ashlar::core
