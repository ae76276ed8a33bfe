// Expandable segments: one reservation of address space whose blocks are live, free (mapped) or unmapped.
//
//   | live | free ...... | unmapped ............................ |   growth maps whole pages behind the free block
#include <utility>

#include "allocator/base/check.h"
#include "allocator/policy/heap_steps.h"

namespace ashlar::policy {
namespace {

// What the block could become: a free block that unmapped address space follows counts with it.
std::uint64_t Room(const Block& block) {
  const bool grows = block.next != nullptr && block.next->state == BlockState::kUnmapped;
  return block.size_bytes + (grows ? block.next->size_bytes : 0);
}

bool IsUsable(const Block* block) {
  return block != nullptr && (block->state == BlockState::kFree || block->state == BlockState::kUnmapped);
}

bool HasRoom(const Block* block, std::uint64_t wanted_bytes) {
  std::uint64_t bytes = 0;
  for (; bytes < wanted_bytes && IsUsable(block); block = block->next) bytes += block->size_bytes;
  return bytes >= wanted_bytes;
}

}  // namespace

// With the option on, prefers among ever larger blocks the one with less room to grow; with it off, passes over
// expandable blocks that an earlier setting left.
Block* Heap::SkipByExpandableRules(const Lane& lane, Block* candidate) const {
  if (!options_.expandable_segments) {
    while (candidate != nullptr && candidate->is_expandable) candidate = lane.free.Next(candidate);
    return candidate;
  }
  while (candidate->is_expandable) {
    Block* next = lane.free.Next(candidate);
    if (next == nullptr || Room(*next) >= Room(*candidate)) break;
    candidate = next;
  }
  return candidate;
}

Block* Heap::FindGrowth(const Plan& plan) const {
  const Lane* lane = FindLane(*plan.pool, plan.stream);
  if (lane == nullptr) return nullptr;
  for (const auto& [address, unmapped] : lane->unmapped) {
    Block* start = IsUsable(unmapped->prev) ? unmapped->prev : unmapped;
    if (HasRoom(start, plan.rounded_bytes)) return start;
  }
  return nullptr;
}

Block* Heap::AddReservation(const Plan& plan, std::uint64_t address, std::uint64_t size_bytes,
                            std::uint64_t page_bytes) {
  Lane& lane = LaneOf(PoolOf(plan), plan.stream);
  Segment* segment = NewSegment(lane, address, size_bytes);
  segment->is_expandable = true;
  segment->page_bytes = page_bytes;
  segment->first->is_expandable = true;
  segment->first->state = BlockState::kUnmapped;
  lane.unmapped.emplace(address, segment->first);
  return segment->first;
}

Block* Heap::MarkMapped(Block* unmapped, std::uint64_t size_bytes) {
  ASHLAR_CHECK(unmapped->state == BlockState::kUnmapped);
  ASHLAR_CHECK_LE(size_bytes, unmapped->size_bytes);
  Lane& lane = *unmapped->segment->lane;
  lane.unmapped.erase(unmapped->address);
  Block* mapped = unmapped;
  if (size_bytes < unmapped->size_bytes) {
    // The low part is the block that was there (it keeps its rank); the rest is new.
    mapped = Split(lane, unmapped, size_bytes);
    std::swap(mapped->rank, unmapped->rank);
    lane.unmapped.emplace(unmapped->address, unmapped);
  }
  mapped->state = BlockState::kFree;
  reserved_bytes_ += size_bytes;
  MergeWith(mapped, mapped->prev);
  MergeWith(mapped, mapped->next);
  InsertFree(lane, mapped);
  return mapped;
}

AddressRange Heap::WholePages(const Block* block) {
  const Segment& segment = *block->segment;
  const std::uint64_t begin = RoundUp(block->address - segment.address, segment.page_bytes);
  const std::uint64_t end = RoundDown(block->End() - segment.address, segment.page_bytes);
  return {segment.address + begin, end > begin ? end - begin : 0};
}

Block* Heap::MarkUnmapped(Block* block, const AddressRange& range) {
  Lane& lane = *block->segment->lane;
  TakeFree(block);
  const std::uint64_t head_bytes = range.address - block->address;
  const std::uint64_t tail_bytes = block->End() - (range.address + range.size_bytes);
  if (head_bytes > 0) InsertFree(lane, Split(lane, block, head_bytes));
  Block* middle = block;
  if (tail_bytes > 0) {
    // The middle is the block that was there (it keeps its rank); the tail is new.
    middle = Split(lane, block, range.size_bytes);
    std::swap(middle->rank, block->rank);
    InsertFree(lane, block);
  }
  middle->state = BlockState::kUnmapped;
  reserved_bytes_ -= range.size_bytes;
  MergeWith(middle, middle->prev);
  MergeWith(middle, middle->next);
  lane.unmapped.emplace(middle->address, middle);
  return middle;
}

void Heap::RemoveReservation(Block* unmapped) {
  ASHLAR_CHECK(!unmapped->IsSplit() && unmapped->state == BlockState::kUnmapped);
  unmapped->segment->lane->unmapped.erase(unmapped->address);
  ForgetSegment(unmapped);
}

}  // namespace ashlar::policy
