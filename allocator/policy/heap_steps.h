// The steps of a request that the cache serves: what heap.h declares and the hot path of allocator/core runs for every
// request, inline. Each touches one lane and nothing else.
#ifndef ASHLAR_ALLOCATOR_POLICY_HEAP_STEPS_H_
#define ASHLAR_ALLOCATOR_POLICY_HEAP_STEPS_H_

#include <cstdint>

#include "allocator/policy/heap.h"

namespace ashlar::policy {

// Heap::MayServe, inline.
inline bool MayServeBy(const Options& options, std::uint64_t rounded_bytes, std::uint64_t block_bytes) {
  if (block_bytes < rounded_bytes) return false;
  const std::uint64_t max_split = options.max_split_size_bytes;
  if (rounded_bytes < max_split) return block_bytes < max_split || max_split == kUnlimited;
  return block_bytes - rounded_bytes < options.max_non_split_rounding_bytes;
}

// Whether growth may use the block.
inline bool IsUsable(const Block* block) {
  return block != nullptr && (block->state == BlockState::kFree || block->state == BlockState::kUnmapped);
}

// Best fit looks at one candidate only: the first in order that is large enough.
inline Block* Heap::FindIn(const Lane& lane, std::uint64_t rounded_bytes) const {
  Block* candidate = lane.free.FirstAtLeast(rounded_bytes);
  if (candidate != nullptr && candidate->is_expandable) candidate = SkipByExpandableRules(lane, candidate);
  if (candidate == nullptr || !MayServeBy(options_, rounded_bytes, candidate->size_bytes)) return nullptr;
  return candidate;
}

inline bool Heap::ShouldSplit(std::uint64_t rounded_bytes, std::uint64_t block_bytes, const Pool& pool) const {
  const std::uint64_t remaining = block_bytes - rounded_bytes;
  if (pool.pair->no_split) return false;
  if (pool.is_small || options_.expandable_segments) return remaining >= kMinBlockBytes;
  return rounded_bytes < options_.max_split_size_bytes && remaining > kSmallMaxBytes;
}

inline Heap::PlaceEffect Heap::EffectOf(const Block& block, std::uint64_t rounded_bytes, const Pool& pool) const {
  PlaceEffect out;
  out.cuts = ShouldSplit(rounded_bytes, block.size_bytes, pool);
  out.block_bytes = out.cuts ? rounded_bytes : block.size_bytes;
  if (block.is_expandable) return out;
  const auto taken_bytes = static_cast<std::int64_t>(out.block_bytes);
  const auto rest_bytes = static_cast<std::int64_t>(block.size_bytes - out.block_bytes);
  if (block.IsSplit()) {
    out.splits = {out.cuts ? 0 : -1, -taken_bytes};
  } else if (out.cuts) {
    out.splits = {1, rest_bytes};
  }
  return out;
}

inline Block* Heap::CommitAs(Lane& lane, Block* block, const PlaceEffect& effect, std::uint64_t request_bytes) {
  lane.free.Erase(block);
  if (block->prev != nullptr) block->prev->next_is_free = false;
  if (!effect.cuts && block->next != nullptr) block->next->prev_is_free = false;
  return PlaceAs(lane, block, effect, request_bytes);
}

inline Block* Heap::PlaceAs(Lane& lane, Block* block, const PlaceEffect& effect, std::uint64_t request_bytes) const {
  if (effect.cuts) {
    Block* rest = block;
    block = Split(lane, rest, effect.block_bytes);
    block->next_is_free = true;
    InsertAlone(lane, rest);
  }
  lane.inactive_split.Add(effect.splits);
  block->state = BlockState::kLive;
  block->requested_bytes = request_bytes;
  return block;
}

// Cuts the low `low_bytes` off as a block of its own, which is returned; `block` keeps the rest and its rank.
inline Block* Heap::Split(Lane& lane, Block* block, std::uint64_t low_bytes) const {
  ++lane.cuts;
  Block* low = lane.slabs.New();
  low->address = block->address;
  low->size_bytes = low_bytes;
  low->segment = block->segment;
  low->state = block->state;
  low->is_expandable = block->is_expandable;
  low->is_small = block->is_small;
  // But for the counter of blocks, all blocks of a segment have its rank.
  low->rank = options_.free_order == FreeOrder::kPerBlockCounter ? lane.next_block_rank++ : block->rank;
  low->prev = block->prev;
  low->next = block;
  if (low->prev != nullptr) {
    low->prev->next = low;
  } else {
    block->segment->first = low;
  }
  low->prev_is_free = block->prev_is_free;
  block->prev = low;
  block->prev_is_free = false;  // neither part is in the set
  block->address += low_bytes;
  block->size_bytes -= low_bytes;
  return low;
}

inline Heap::ReleaseEffect Heap::EffectOfRelease(const Block& block) {
  __builtin_prefetch(block.prev, 1);
  __builtin_prefetch(block.next, 1);
  ReleaseEffect out;
  out.joins_prev = block.prev_is_free;
  out.joins_next = block.next_is_free;
  if (block.is_expandable) return out;
  const Block* low = out.joins_prev ? block.prev : &block;
  const Block* high = out.joins_next ? block.next : &block;
  const bool is_split = low->prev != nullptr || high->next != nullptr;
  // The neighbours' bytes leave the count and come back as part of the merged block, if that still shares a segment.
  out.splits.blocks = (is_split ? 1 : 0) - (out.joins_prev ? 1 : 0) - (out.joins_next ? 1 : 0);
  const std::uint64_t neighbours = (out.joins_prev ? low->size_bytes : 0) + (out.joins_next ? high->size_bytes : 0);
  out.splits.bytes = is_split ? static_cast<std::int64_t>(block.size_bytes) : -static_cast<std::int64_t>(neighbours);
  return out;
}

// Whether the block is in the free set.
inline void Heap::TellNeighbours(const Block& block, bool is_free) {
  if (block.prev != nullptr) block.prev->next_is_free = is_free;
  if (block.next != nullptr) block.next->prev_is_free = is_free;
}

// The block becomes part of the one before it rather than the other way round: that touches one record less. The
// rank is the freed block's, as if it had stayed. A record that is no block any more is not live: a pointer to it that
// a caller has kept is told by that.
inline Block* Heap::ReleaseAs(Lane& lane, Block* block, const ReleaseEffect& effect) {
  lane.joins += static_cast<std::uint64_t>(effect.joins_next) + static_cast<std::uint64_t>(effect.joins_prev);
  block->state = BlockState::kFree;
  if (effect.joins_next) {
    Block* next = block->next;
    lane.free.Erase(next);
    block->size_bytes += next->size_bytes;
    block->next = next->next;
    block->next_is_free = next->next_is_free;
    if (block->next != nullptr) block->next->prev = block;
    lane.slabs.Delete(next);
  } else if (block->next != nullptr) {
    block->next->prev_is_free = true;
  }
  if (effect.joins_prev) {
    Block* prev = block->prev;
    lane.free.Erase(prev);
    prev->size_bytes += block->size_bytes;
    prev->rank = block->rank;
    prev->next = block->next;
    prev->next_is_free = block->next_is_free;
    if (prev->next != nullptr) prev->next->prev = prev;
    lane.slabs.Delete(block);
    block = prev;
  } else if (block->prev != nullptr) {
    block->prev->next_is_free = true;
  }
  InsertAlone(lane, block);
  lane.inactive_split.Add(effect.splits);
  return block;
}

// The neighbours know already.
inline void Heap::InsertAlone(Lane& lane, Block* block) {
  block->state = BlockState::kFree;
  block->freed_at = lane.pool->clock;
  lane.free.Insert(block);
}

inline void Heap::InsertFree(Lane& lane, Block* block) {
  InsertAlone(lane, block);
  TellNeighbours(*block, true);
}

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_HEAP_STEPS_H_
