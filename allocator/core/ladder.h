// The rungs that a request climbs when nothing in the cache fits:
//
//   collect garbage -> new segment -> overflow pools (-> borrow) -> release oversize blocks, new segment
//     -> synchronise (-> search again), release everything, new segment -> out of memory
//
// The rungs in brackets are beyond PyTorch: options (docs/library/settings.md), off unless asked for.
//
//   Ladder ladder(ledger, device, pending, limits, pools);
//   policy::Decision decision = ladder.Search(request);
//   GrowthResult served = ladder.Serve(decision);      // the block that was found, or the first rung that gives one
//
// It calls the device and books in the ledger; it knows no thread, no lock and no fast path. While a graph is being
// captured it waits for nothing and returns nothing. Thread rule: not thread-safe; the allocator's exclusive section
// guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_LADDER_H_
#define ASHLAR_ALLOCATOR_CORE_LADDER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/core/pending_frees.h"
#include "allocator/core/plan_follower.h"
#include "allocator/core/pools.h"
#include "allocator/core/rungs.h"
#include "allocator/device/device.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/heap.h"
#include "allocator/trace/fact.h"

namespace ashlar::core {

// Bounds the waits on the device that borrow_across_streams inserts, without a clock, so that a replay comes to the
// same decisions: each wait owes 1,000, each request that is served since pays `most_waits` back, and no more than
// `most_waits` waits may be owed. So in 1,000 requests there are at most about that many, and as many at once.
//
//   if (!owed.MayWait(served, options.borrow_most_waits)) return nullptr;
//   ...
//   owed.Add(served, options.borrow_most_waits);
//
// `served`: requests served so far. Thread rule: not thread-safe; the allocator's exclusive section guards it.
class WaitBudget {
 public:
  static constexpr std::uint64_t kOneWait = 1000;

  // Where `most_waits` is nothing there is no bound, and nothing is owed.
  bool MayWait(std::uint64_t served, std::optional<std::uint64_t> most_waits) const {
    return !most_waits.has_value() || OwedNow(served, *most_waits) + kOneWait <= *most_waits * kOneWait;
  }
  void Add(std::uint64_t served, std::optional<std::uint64_t> most_waits) {
    owed_ = most_waits.has_value() ? OwedNow(served, *most_waits) + kOneWait : 0;
    served_ = served;
  }
  // After the last wait.
  std::uint32_t owed() const { return static_cast<std::uint32_t>(owed_); }

  trace::fact::WaitsOwed Standing(std::uint64_t served) const {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    return {owed(), static_cast<std::uint32_t>(std::min(served - served_, kMost))};
  }
  void Restore(const trace::fact::WaitsOwed& standing, std::uint64_t served) {
    owed_ = standing.owed;
    served_ = served - standing.served_since;  // may count from before 0
  }

 private:
  std::uint64_t OwedNow(std::uint64_t served, std::uint64_t most_waits) const {
    const std::uint64_t since = served - served_;
    const std::uint64_t paid = most_waits == 0 ? 0 : since > owed_ / most_waits ? owed_ : since * most_waits;
    return owed_ - paid;
  }

  std::uint64_t owed_ = 0;
  std::uint64_t served_ = 0;  // at the last wait
};

class Ladder {
 public:
  // All outlive this.
  Ladder(Ledger& ledger, device::Device& device, PendingFrees& pending, const Limits& limits, const Pools& pools);

  // The plan that requests follow, where the options name one.
  PlanFollower& follower() { return follower_; }

  // What the request needs, and the free block that serves it. The request's pool is there afterwards.
  policy::Decision Search(const policy::Request& request);
  // The same for a request that was searched for before: no block, and nothing grows older.
  policy::Decision SkipSearch(const policy::Request& request);
  struct PlannedSegmentAnswer {
    policy::Decision decision = {};   // of the request, with what the arena has, else as without a placement plan
    policy::Lane* arena = nullptr;    // the lane that has it; nullptr: there is none
    std::uint64_t lacking_bytes = 0;  // for which there is no room then
  };
  // For a request that wants its planned segment first (Decision::is_planned_segment). None is obtained without room
  // for all that the placement plan has: half a plan may need more than none.
  PlannedSegmentAnswer ObtainPlannedSegment(const policy::Decision& decision);
  // Places the request in the plan's block, or climbs. The block placed, or why the last rung failed.
  GrowthResult Serve(const policy::Decision& decision);

  // From now on only what this device, which `device` is or stands before, has news of is polled.
  void PollNewsOf(device::SimDevice& device) { simulated_ = &device; }

  // Completes the frees whose events are done. Asks the device whether it is lost where some are not.
  void Poll();
  // Synchronises every pending free and returns all whole-free memory. The first error of the device.
  absl::Status EmptyCache();
  // The same of one private pool.
  absl::Status EmptyPool(PoolId pool);
  // All that is whole-free in the pair.
  absl::Status ReturnFreeOf(const policy::PoolPair& pair) { return release_.FreeOf(pair); }
  // Returns whole-free large segments to reclaim `target_bytes`.
  void CollectGarbage(std::uint64_t target_bytes) { release_.Garbage(target_bytes); }

  // What borrowing owes.
  trace::fact::WaitsOwed OwedNow() const { return owed_.Standing(Served()); }
  void RestoreOwed(const trace::fact::WaitsOwed& standing) { owed_.Restore(standing, Served()); }

  // What the device said on the way, where it was not the request's answer.
  DeviceErrors& errors() { return errors_; }
  const DeviceErrors& errors() const { return errors_; }

  // DeviceRelease::searches.
  std::uint64_t searches() const { return release_.searches(); }

 private:
  GrowthResult Climb(const policy::Decision& decision);
  GrowthResult ClimbAfterRefusal(const policy::Decision& decision);
  GrowthResult GrowAfterFewWaits(const policy::Decision& decision);
  GrowthResult GrowByMoving(const policy::Decision& decision);
  policy::Decision Steered(policy::Decision decision);
  bool HasRoom(std::uint64_t bytes) const;
  policy::Block* SearchAgain(const policy::Decision& decision);
  policy::Block* SearchOverflow(const policy::Decision& decision);
  policy::Block* Borrow(const policy::Decision& decision);
  GrowthResult AfterFailedRelease(const GrowthResult& grown, const absl::Status& released);
  absl::Status Synchronize();
  // Requests so far.
  std::uint64_t Served() const { return static_cast<std::uint64_t>(ledger_.stats().allocation.all().allocated); }

  Ledger& ledger_;
  device::Device& device_;
  device::SimDevice* simulated_ = nullptr;
  PendingFrees& pending_;
  const Limits& limits_;
  const Pools& pools_;
  WaitBudget owed_;
  PlanFollower follower_;
  DeviceErrors errors_;
  DeviceGrowth growth_;
  DeviceRelease release_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_LADDER_H_
