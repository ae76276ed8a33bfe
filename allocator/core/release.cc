// The ladder's releasing rungs: garbage collection, oversize blocks, the whole cache.
#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"

namespace ashlar::core {

bool CachingAllocator::CountsAges() const {
  return limit_bytes_.has_value() && options().garbage_collection_threshold > 0;
}

void CachingAllocator::CollectGarbage() {
  const auto threshold =
      static_cast<std::uint64_t>(options().garbage_collection_threshold * static_cast<double>(*limit_bytes_));
  if (heap_.reserved_bytes() <= threshold) return;
  CollectGarbage(heap_.reserved_bytes() - threshold);
}

void CachingAllocator::CollectGarbage(std::uint64_t target_bytes) {
  for (Block* block : heap_.GarbageVictims(target_bytes)) ReleaseSegment(block);
}

bool CachingAllocator::ReleaseOversize(const policy::Plan& plan) {
  const policy::Heap::OversizeVictims victims = heap_.FindOversizeVictims(plan);
  for (Block* block : victims.blocks) ReleaseSegment(block);
  return victims.enough;
}

void CachingAllocator::EmptyCache() { ReleaseCached(nullptr); }

void CachingAllocator::ReleaseCached(const policy::PoolPair* in_use) {
  SynchronizeEvents();
  ReleasePoolBlocks(heap_.default_pair().large);
  ReleasePoolBlocks(heap_.default_pair().small);
  for (auto it = heap_.private_pairs().begin(); it != heap_.private_pairs().end();) {
    policy::PoolPair& pair = *it->second;
    if (pair.use_count > 0) {
      ++it;
      continue;
    }
    ReleasePoolBlocks(pair.small);
    ReleasePoolBlocks(pair.large);
    const bool is_gone = &pair != in_use && pair.small.segment_count == 0 && pair.large.segment_count == 0;
    it = is_gone ? heap_.private_pairs().erase(it) : std::next(it);
  }
}

void CachingAllocator::ReleasePoolBlocks(policy::Pool& pool) {
  const std::vector<Block*> expandable = policy::Heap::FreeExpandable(pool);
  for (Block* block : policy::Heap::WholeFree(pool)) ReleaseSegment(block);
  for (Block* block : expandable) UnmapBlock(block);
}

void CachingAllocator::ReleaseSegment(Block* whole) {
  const policy::Segment& segment = *whole->segment;
  const policy::Lane& lane = *segment.lane;
  const std::uint64_t address = segment.address;
  const std::uint64_t size_bytes = segment.size_bytes;
  ASHLAR_CHECK(device_->FreeSegment(address).ok());
  stats_.segment.Subtract(lane.pool->is_small, 1);
  stats_.reserved_bytes.Subtract(lane.pool->is_small, static_cast<std::int64_t>(size_bytes));
  if (size_bytes >= options().max_split_size_bytes) stats_.oversize_segments.Subtract(1);
  ++stats_.num_device_free;
  heap_.RemoveSegment(whole);
  Emit(trace::Action::kSegmentFree, address, size_bytes, lane.stream, *lane.pool);
}

}  // namespace ashlar::core
