// The allocator as recorders, replays and tests need it, beyond what programs may call: a look at one moment, and a
// state that is put together rather than allocated.
//
//   const Inspection inspection(allocator);
//   inspection.WhileStill([&] { segments = inspection.SegmentsNow(); });
//
//   Reconstruction(allocator).RestoreSegment(lane_of, is_small, is_expandable, address, blocks);
//
// Both only refer to the allocator, which outlives them: made where they are used, they cost nothing. Sizes are bytes.
#ifndef ASHLAR_ALLOCATOR_CORE_INSPECT_H_
#define ASHLAR_ALLOCATOR_CORE_INSPECT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "allocator/base/units.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/heap.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {

class Inspection {
 public:
  explicit Inspection(const CachingAllocator& allocator) : allocator_(allocator) {}

  // Runs `look` while no other thread is inside and no decision is made: what it sees is one moment, between two events
  // of the sink. `look` may call what ends in Now, nothing else. By any thread.
  void WhileStill(absl::FunctionRef<void()> look) const;

  // --- only from within WhileStill, or from the allocator's sink ---
  std::vector<trace::SnapshotSegment> SegmentsNow() const;    // by address
  std::vector<trace::ReservedRange> ReservationsNow() const;  // oldest first
  std::vector<trace::LargePage> LargePagesNow() const;        // by address
  trace::RecordedStart StartNow() const;
  // Routes, users and traits, as the facts that lead there; what borrowing owes; ranges that are registered.
  std::vector<trace::AnyFact> PoolsNow() const;
  std::optional<std::uint64_t> LimitNow() const;
  bool HasAgesNow() const;        // HasAges of state.h
  std::uint64_t TurnNow() const;  // ThreadCaches::turn
  // What a recording of it says before its first event (state.h).
  trace::Snapshot HeadNow(int device) const;

  // Only while no other thread uses the allocator. Good until the next call of the allocator: a free may be put off
  // then (thread_caches.h).
  const policy::Heap& heap() const;

  // What was done so far, as counts that are the same on every machine; a call of this counts too.
  struct PathCosts {
    std::uint64_t sections = 0;            // times everything stood still
    std::uint64_t thread_cache_locks = 0;  // those that the sections took included
    std::uint64_t arenas = 0;              // (pool, stream) pairs that hold segments now
    std::uint64_t index_probes = 0;        // bins of free sets looked at, and lists behind them
    std::uint64_t cuts = 0;                // blocks cut in two
    std::uint64_t joins = 0;               // blocks that became part of a neighbour
    std::uint64_t queues_polled = 0;       // streams whose pending frees were asked for, each time
  };
  PathCosts path_costs() const;

 private:
  const CachingAllocator& allocator_;
};

class Reconstruction {
 public:
  explicit Reconstruction(CachingAllocator& allocator) : allocator_(allocator) {}

  // Takes over a segment that exists on the device already. Returns the blocks in the given order, for a replay to set
  // what KnownBlock does not have.
  std::vector<policy::Block*> RestoreSegment(const policy::Request& lane_of, bool is_small, bool is_expandable,
                                             std::uint64_t address,
                                             const std::vector<policy::Heap::KnownBlock>& blocks);
  // What a tag did (CachingAllocator::TagPool), of which a record tells no more than where pages were mapped.
  void TakePages(PoolId pool);
  // A request that was searched for before, and is not searched for again (a callback has run since).
  absl::StatusOr<Block*> AllocateMissed(std::uint64_t bytes, Stream stream, PoolId pool);
  // A request that a plan placed, as a recording says. `is_missed`: as for AllocateMissed.
  absl::StatusOr<Block*> AllocateDirected(std::uint64_t bytes, Stream stream, PoolId pool, const Direction& direction,
                                          bool is_missed);
  // Exactly this range of free memory, whatever the rules would have chosen; nullptr where it is not free.
  Block* AllocateAt(const policy::AddressRange& range);
  // Makes what is free in the default large pool older, as the search for a large request does.
  void CountSearch();
  // A replay's device says which streams finished work: the others are not asked before each request.
  void PollNewsOf(device::SimDevice& device);
  // As a recording says: without emptying the cache first, and keeping nothing. Pools that are not there: nothing. A
  // pool that does not wake, since a smaller device has no memory for it, is out of memory.
  void PutToSleep(PoolId pool);
  void WakeUp(PoolId pool);
  // Of borrow_most_waits.
  void RestoreOwed(const trace::fact::WaitsOwed& owed);

 private:
  CachingAllocator& allocator_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_INSPECT_H_
