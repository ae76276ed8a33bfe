// The ladder's releasing rungs: garbage collection, oversize blocks, the whole cache.
#include <iterator>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"

namespace ashlar::core {
namespace {

// Reservations whose first page could not be had; in a pool without users nobody will ask for it again.
std::vector<policy::Block*> EmptyReservations(const policy::Pool& pool) {
  std::vector<policy::Block*> out;
  for (const auto& [stream, lane] : pool.lanes) {
    for (const auto& [address, unmapped] : lane.unmapped) {
      if (!unmapped->IsSplit()) out.push_back(unmapped);
    }
  }
  return out;
}

}  // namespace

bool CachingAllocator::CountsAges() const {
  return limit_bytes_.has_value() && options().garbage_collection_threshold > 0;
}

void CachingAllocator::CollectGarbage() {
  const auto threshold =
      static_cast<std::uint64_t>(options().garbage_collection_threshold * static_cast<double>(*limit_bytes_));
  if (heap_.reserved_bytes() <= threshold) return;
  ReleaseVictims(heap_.reserved_bytes() - threshold);
}

void CachingAllocator::ReleaseVictims(std::uint64_t target_bytes) {
  for (policy::Block* block : heap_.GarbageVictims(target_bytes)) unreported_error_.Update(ReleaseSegment(block));
}

bool CachingAllocator::ReleaseOversize(const policy::Plan& plan) {
  const policy::Heap::OversizeVictims victims = heap_.FindOversizeVictims(plan);
  for (policy::Block* block : victims.blocks) unreported_error_.Update(ReleaseSegment(block));
  return victims.enough;
}

absl::Status CachingAllocator::CannotReturn(const char* call) const {
  if (routes_.captures() == 0) return lost_;
  return absl::FailedPreconditionError(
      absl::StrCat(call, " would wait for the device while a graph is being captured: call it after EndPool"));
}

absl::Status CachingAllocator::ReleaseCached(const policy::PoolPair* in_use) {
  absl::Status status = SynchronizeEvents();
  status.Update(ReturnCached(in_use));
  return status;
}

absl::Status CachingAllocator::ReturnCached(const policy::PoolPair* in_use) {
  absl::Status status = ReleasePoolBlocks(heap_.default_pair().large);
  status.Update(ReleasePoolBlocks(heap_.default_pair().small));
  for (auto it = heap_.private_pairs().begin(); it != heap_.private_pairs().end();) {
    it = it->second->use_count > 0 ? std::next(it) : ReturnPrivate(it, in_use, status);
  }
  return status;
}

CachingAllocator::PrivatePairs::iterator CachingAllocator::ReturnPrivate(PrivatePairs::iterator at,
                                                                         const policy::PoolPair* in_use,
                                                                         absl::Status& status) {
  policy::PoolPair& pair = *at->second;
  status.Update(ReleasePoolBlocks(pair.small));
  status.Update(ReleasePoolBlocks(pair.large));
  if (&pair == in_use) return std::next(at);
  for (policy::Pool* pool : {&pair.small, &pair.large}) {
    for (policy::Block* reservation : EmptyReservations(*pool)) status.Update(ReleaseReservation(reservation));
  }
  if (pair.small.segment_count + pair.large.segment_count > 0) return std::next(at);
  return heap_.private_pairs().erase(at);
}

absl::Status CachingAllocator::ReleasePoolBlocks(policy::Pool& pool) {
  const std::vector<policy::Block*> expandable = policy::Heap::FreeExpandable(pool);
  absl::Status status;
  for (policy::Block* block : policy::Heap::WholeFree(pool)) status.Update(ReleaseSegment(block));
  for (policy::Block* block : expandable) status.Update(UnmapBlock(block));
  return status;
}

absl::Status CachingAllocator::ReleaseSegment(policy::Block* whole) {
  const policy::Segment& segment = *whole->segment;
  policy::Lane& lane = *segment.lane;
  const std::uint64_t address = segment.address;
  const std::uint64_t size_bytes = segment.size_bytes;
  absl::Status status = device_->FreeSegment(address);
  stats_.segment.Subtract(lane.pool->is_small, 1);
  stats_.reserved_bytes.Subtract(lane.pool->is_small, static_cast<std::int64_t>(size_bytes));
  if (size_bytes >= options().max_split_size_bytes) stats_.oversize_segments.Subtract(1);
  ++stats_.num_device_free;
  heap_.RemoveSegment(whole);
  Emit(trace::Action::kSegmentFree, address, size_bytes, lane.stream, *lane.pool);
  ForgetIfEmpty(lane, address, address + size_bytes);
  return status;
}

}  // namespace ashlar::core
