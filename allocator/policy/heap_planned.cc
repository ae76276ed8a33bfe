// Placement at an address that a plan gives, anywhere in a free block:
//
//   before   |           free            |
//   after    | free |  live   |   free   |       either part may be missing
#include "allocator/base/check.h"
#include "allocator/policy/heap_steps.h"

namespace ashlar::policy {
namespace {

// What a free block of this kind adds to the counts of inactive split blocks.
SplitCounts CountsOf(const Block& block) {
  if (block.is_expandable || !block.IsSplit()) return {};
  return {1, static_cast<std::int64_t>(block.size_bytes)};
}

}  // namespace

Block* Heap::FindFreeAt(const Segment& segment, Block* below, const AddressRange& range) {
  for (Block* block = below != nullptr ? below : segment.first; block != nullptr; block = block->next) {
    if (block->End() <= range.address) continue;
    const bool holds = block->address <= range.address && block->End() >= range.End();
    return holds && block->state == BlockState::kFree ? block : nullptr;
  }
  return nullptr;
}

void Heap::OfferFree(Block* block) { InsertFree(*block->segment->lane, block); }

Block* Heap::PlaceAt(const Plan& plan, Block* block) {
  Lane& lane = *block->segment->lane;
  ASHLAR_CHECK(block->address <= plan.place_at && plan.place_at + plan.rounded_bytes <= block->End());
  SplitCounts counts;
  counts = counts.Minus(CountsOf(*block));
  if (const std::uint64_t below = plan.place_at - block->address; below > 0) {
    Block* low = Split(lane, block, below);
    InsertFree(lane, low);
    counts.Add(CountsOf(*low));
  }
  if (block->size_bytes > plan.rounded_bytes) {
    Block* high = block;
    block = Split(lane, high, plan.rounded_bytes);
    InsertFree(lane, high);
    counts.Add(CountsOf(*high));
  }
  lane.inactive_split.Add(counts);
  block->state = BlockState::kLive;
  block->requested_bytes = plan.request_bytes;
  return block;
}

}  // namespace ashlar::policy
