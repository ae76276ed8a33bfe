#include "allocator/plugins/torch_native/checkpoints.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "allocator/plugins/torch/failure.h"
#include "allocator/plugins/torch_native/segments.h"

namespace ashlar::torch {
namespace {

using Blocks = std::vector<ashlar_segment_block>;

using Segments = std::vector<Blocks>;

struct PoolCheckpoint final : AllocatorState {
  PoolCheckpoint(const c10::MempoolId_t& its_pool, Segments all) : pool(its_pool), segments(std::move(all)) {}

  const c10::MempoolId_t pool;
  const Segments segments;
};

bool IsLive(const ashlar_segment_block& block) { return block.state == ASHLAR_BLOCK_LIVE; }

// By address.
Segments SegmentsIn(const ashlar_allocator* allocator, const c10::MempoolId_t& pool) {
  Segments out;
  ForEachSegment(allocator, [&](const ashlar_segment& segment) {
    if (IsOf(segment, pool)) out.emplace_back(segment.blocks, segment.blocks + segment.block_count);
  });
  return out;
}

std::vector<void*> LiveIn(const ashlar_allocator* allocator, const c10::MempoolId_t& pool) {
  std::vector<void*> out;
  for (const Blocks& blocks : SegmentsIn(allocator, pool)) {
    for (const ashlar_segment_block& block : blocks) {
      if (IsLive(block)) out.push_back(block.address);
    }
  }
  return out;
}

void Expect(ashlar_status status, const ashlar_allocator* allocator) {
  if (status != ASHLAR_OK) ThrowFailure(status, ashlar_device(allocator));
}

// Of memory that is free: first all blocks of the segment, then those that are free in it go.
void Restore(ashlar_allocator* allocator, const Blocks& segment) {
  for (const ashlar_segment_block& block : segment)
    Expect(ashlar_allocate_at(allocator, block.address, block.size_bytes, block.size_bytes), allocator);
  for (const ashlar_segment_block& block : segment) {
    if (!IsLive(block)) Expect(ashlar_free(allocator, block.address), allocator);
  }
}

}  // namespace

std::shared_ptr<AllocatorState> CheckpointOf(ashlar_allocator* allocator, const c10::MempoolId_t& pool) {
  TORCH_CHECK(ashlar_pool_users(allocator, {pool.first, pool.second}) > 0, "ashlar: getCheckpointState: no pool (",
              pool.first, ", ", pool.second, ") is in use");
  return std::make_shared<PoolCheckpoint>(pool, SegmentsIn(allocator, pool));
}

CheckpointDelta GoBack(ashlar_allocator* allocator, c10::DeviceIndex device, const AllocatorState& state,
                       c10::DeleterFnPtr deleter) {
  const auto* checkpoint = dynamic_cast<const PoolCheckpoint*>(&state);
  TORCH_CHECK(checkpoint != nullptr, "ashlar: setCheckpointPoolState: the checkpoint is another allocator's");
  CheckpointDelta delta;
  for (void* live : LiveIn(allocator, checkpoint->pool)) {
    Expect(ashlar_free(allocator, live), allocator);
    delta.ptrs_freed.push_back(live);
  }
  const c10::Device place(c10::DeviceType::CUDA, device);
  for (const Blocks& segment : checkpoint->segments) {
    Restore(allocator, segment);
    for (const ashlar_segment_block& block : segment) {
      if (IsLive(block)) delta.dataptrs_allocd.emplace_back(block.address, block.address, deleter, place);
    }
  }
  return delta;
}

bool HasExactly(const ashlar_allocator* allocator, const c10::MempoolId_t& pool,
                const std::unordered_set<void*>& expected) {
  const std::vector<void*> live = LiveIn(allocator, pool);
  for (void* block : live) {
    if (expected.count(block) == 0) return false;
  }
  return live.size() == expected.size();
}

}  // namespace ashlar::torch
