#include "allocator/core/inspect.h"

#include "allocator/core/state.h"
#include "allocator/core/thread_caches.h"

namespace ashlar::core {

void Inspection::WhileStill(absl::FunctionRef<void()> look) const {
  const ExclusiveSection section(allocator_.caches());
  look();
}

std::vector<trace::SnapshotSegment> Inspection::SegmentsNow() const { return SegmentsOf(allocator_.ledger_.heap()); }

std::vector<trace::ReservedRange> Inspection::ReservationsNow() const {
  return ReservationsOf(allocator_.ledger_.heap());
}

std::vector<trace::LargePage> Inspection::LargePagesNow() const { return LargePagesOf(allocator_.ledger_.heap()); }

trace::RecordedStart Inspection::StartNow() const { return StartOf(allocator_.ledger_.heap()); }

std::vector<trace::AnyFact> Inspection::PoolsNow() const {
  std::vector<trace::AnyFact> facts = allocator_.pools_.Facts();
  if (const trace::fact::WaitsOwed owed = allocator_.ladder_.OwedNow(); owed.owed > 0) facts.emplace_back(owed);
  for (const policy::AddressRange& range : allocator_.ledger_.heap().registered().All()) {
    facts.emplace_back(trace::fact::RangeRegistered{range.address, range.size_bytes});
  }
  return facts;
}

std::optional<std::uint64_t> Inspection::LimitNow() const { return allocator_.limits_.bytes(); }

bool Inspection::HasAgesNow() const { return HasAges(allocator_.ledger_.heap()); }

std::uint64_t Inspection::TurnNow() const { return allocator_.caches().turn(); }

trace::Snapshot Inspection::HeadNow(int device) const {
  return RecordedHeadOf(allocator_.options(), allocator_.limits_, device);
}

const policy::Heap& Inspection::heap() const {
  allocator_.caches().Settle();
  return allocator_.ledger_.heap();
}

Inspection::PathCosts Inspection::path_costs() const {
  const ExclusiveSection section(allocator_.caches());
  section.StopThreadCaches();  // a thread that has not yet seen that the allocator is serial counts its lock
  const policy::LaneCosts lanes = allocator_.ledger_.heap().Costs();
  return {.sections = allocator_.caches().section_count(),
          .thread_cache_locks = allocator_.caches().LockCount(),
          .arenas = allocator_.fast_path_.arena_count(),
          .index_probes = lanes.probes,
          .cuts = lanes.cuts,
          .joins = lanes.joins,
          .queues_polled = allocator_.pending_.queues_polled()};
}

std::vector<policy::Block*> Reconstruction::RestoreSegment(const policy::Request& lane_of, bool is_small,
                                                           bool is_expandable, std::uint64_t address,
                                                           const std::vector<policy::Heap::KnownBlock>& blocks) {
  const ExclusiveSection section(allocator_.caches());
  std::vector<policy::Block*> restored = allocator_.ledger_.Restore(lane_of, is_small, is_expandable, address, blocks);
  allocator_.fast_path_.Bind(*restored.front()->segment->lane);
  return restored;
}

void Reconstruction::TakePages(PoolId pool) {
  const ExclusiveSection section(allocator_.caches());
  allocator_.ledger_.heap().Pair(pool).takes_pages = true;
}

absl::StatusOr<Block*> Reconstruction::AllocateMissed(std::uint64_t bytes, Stream stream, PoolId pool) {
  const ExclusiveSection section(allocator_.caches());
  const policy::Decision decision = allocator_.ladder_.SkipSearch({bytes, stream, pool});
  return allocator_.Serve(section, decision, HandOutAs::kPointer);
}

absl::StatusOr<Block*> Reconstruction::AllocateDirected(std::uint64_t bytes, Stream stream, PoolId pool,
                                                        const Direction& direction, bool is_missed) {
  const ExclusiveSection section(allocator_.caches());
  policy::Request request{bytes, stream, pool};
  if (absl::Status status = allocator_.BeginRequest(section, request); !status.ok()) return status;
  Ladder& ladder = allocator_.ladder_;
  ladder.follower().Direct(direction);
  const policy::Decision decision = is_missed ? ladder.SkipSearch(request) : ladder.Search(request);
  absl::StatusOr<Block*> block = allocator_.Serve(section, decision, HandOutAs::kPointer);
  ladder.follower().End();
  return block;
}

Block* Reconstruction::AllocateAt(const policy::AddressRange& range) {
  return allocator_.AllocateAt(range, range.size_bytes, HandOutAs::kPointer);
}

void Reconstruction::CountSearch() {
  const ExclusiveSection section(allocator_.caches());
  policy::Heap& heap = allocator_.ledger_.heap();
  heap.Tick(heap.Decide({.bytes = policy::kSmallMaxBytes + 1, .stream = {}, .pool = {}}));
}

void Reconstruction::PollNewsOf(device::SimDevice& device) {
  const ExclusiveSection section(allocator_.caches());
  allocator_.ladder_.PollNewsOf(device);
}

void Reconstruction::PutToSleep(PoolId pool) {
  const ExclusiveSection section(allocator_.caches());
  section.StopThreadCaches();
  allocator_.PutToSleep(allocator_.PairsOf({pool}), {.keep = Keep::kNothing}).IgnoreError();
}

void Reconstruction::WakeUp(PoolId pool) {
  const ExclusiveSection section(allocator_.caches());
  section.StopThreadCaches();
  const Sleeper::Pairs pairs = allocator_.PairsOf({pool});
  const Sleeper::Woken woken = allocator_.WakeUp(pairs);
  if (!absl::IsResourceExhausted(woken.status)) return;
  policy::Decision all{.request_bytes = woken.lacking_bytes, .rounded_bytes = woken.lacking_bytes};
  all.pool = &pairs.front()->large;
  allocator_.ledger_.RecordOom(all, allocator_.device_->GetMemoryInfo().free_bytes);
}

void Reconstruction::RestoreOwed(const trace::fact::WaitsOwed& owed) {
  const ExclusiveSection section(allocator_.caches());
  allocator_.ladder_.RestoreOwed(owed);
}

}  // namespace ashlar::core
