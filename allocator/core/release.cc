// The ladder's releasing rungs: garbage collection, oversize blocks, the whole cache.
#include <algorithm>

#include "allocator/core/caching_allocator.h"

namespace ashlar::core {

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
  for (Block* block : heap_.GarbageVictims(target_bytes)) unreported_error_.Update(ReleaseSegment(block));
}

bool CachingAllocator::ReleaseOversize(const policy::Plan& plan) {
  const policy::Heap::OversizeVictims victims = heap_.FindOversizeVictims(plan);
  for (Block* block : victims.blocks) unreported_error_.Update(ReleaseSegment(block));
  return victims.enough;
}

absl::Status CachingAllocator::ReleaseCached(const policy::PoolPair* in_use) {
  absl::Status status = SynchronizeEvents();
  status.Update(ReleasePoolBlocks(heap_.default_pair().large));
  status.Update(ReleasePoolBlocks(heap_.default_pair().small));
  for (auto it = heap_.private_pairs().begin(); it != heap_.private_pairs().end();) {
    policy::PoolPair& pair = *it->second;
    if (pair.use_count > 0) {
      ++it;
      continue;
    }
    status.Update(ReleasePoolBlocks(pair.small));
    status.Update(ReleasePoolBlocks(pair.large));
    const bool is_gone = &pair != in_use && pair.small.segment_count == 0 && pair.large.segment_count == 0;
    if (is_gone) {
      UnbindEngines(pair.small);
      UnbindEngines(pair.large);
    }
    it = is_gone ? heap_.private_pairs().erase(it) : std::next(it);
  }
  return status;
}

absl::Status CachingAllocator::ReleasePoolBlocks(policy::Pool& pool) {
  const std::vector<Block*> expandable = policy::Heap::FreeExpandable(pool);
  absl::Status status;
  for (Block* block : policy::Heap::WholeFree(pool)) status.Update(ReleaseSegment(block));
  for (Block* block : expandable) status.Update(UnmapBlock(block));
  return status;
}

absl::Status CachingAllocator::ReleaseSegment(Block* whole) {
  const policy::Segment& segment = *whole->segment;
  const policy::Lane& lane = *segment.lane;
  const std::uint64_t address = segment.address;
  const std::uint64_t size_bytes = segment.size_bytes;
  absl::Status status = device_->FreeSegment(address);
  stats_.segment.Subtract(lane.pool->is_small, 1);
  stats_.reserved_bytes.Subtract(lane.pool->is_small, static_cast<std::int64_t>(size_bytes));
  if (size_bytes >= options().max_split_size_bytes) stats_.oversize_segments.Subtract(1);
  ++stats_.num_device_free;
  heap_.RemoveSegment(whole);
  Emit(trace::Action::kSegmentFree, address, size_bytes, lane.stream, *lane.pool);
  return status;
}

}  // namespace ashlar::core
