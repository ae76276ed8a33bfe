// What the heap gives back: garbage collection, oversize release, whole-free segments.
#include <vector>

#include "allocator/policy/heap.h"

namespace ashlar::policy {
namespace {

template <typename Visit>
void ForEachFree(const Pool& pool, Visit visit) {
  for (const auto& [stream, lane] : pool.lanes) {
    for (Block* block = lane.free.First(); block != nullptr; block = lane.free.Next(block)) visit(block);
  }
}

struct Aged {
  Block* block;
  std::uint64_t age;
  bool taken = false;
};

}  // namespace

std::vector<Block*> Heap::WholeFree(const Pool& pool) {
  std::vector<Block*> out;
  ForEachFree(pool, [&out](Block* block) {
    if (!block->segment->is_expandable && !block->IsSplit()) out.push_back(block);
  });
  return out;
}

std::vector<Block*> Heap::FreeExpandable(const Pool& pool) {
  std::vector<Block*> out;
  ForEachFree(pool, [&out](Block* block) {
    if (block->segment->is_expandable) out.push_back(block);
  });
  return out;
}

std::vector<Block*> Heap::GarbageVictims(std::uint64_t target_bytes) const {
  const Pool& pool = default_pair_->large;
  std::vector<Aged> unsplit;
  std::uint64_t total_age = 0;
  ForEachFree(pool, [&](Block* block) {
    if (block->IsSplit()) return;
    unsplit.push_back({block, pool.clock - block->freed_at});
    total_age += unsplit.back().age;
  });
  std::vector<Block*> victims;
  std::size_t count = unsplit.size();
  std::uint64_t reclaimed = 0;
  bool took_any = true;
  while (reclaimed < target_bytes && took_any && count > 0) {
    const double threshold = static_cast<double>(total_age) / static_cast<double>(count);
    took_any = false;
    for (Aged& aged : unsplit) {
      // Expandable blocks count in the average but are never taken (as upstream).
      if (aged.taken || aged.block->segment->is_expandable || static_cast<double>(aged.age) < threshold) continue;
      aged.taken = took_any = true;
      reclaimed += aged.block->size_bytes;
      total_age -= aged.age;
      --count;
      victims.push_back(aged.block);
    }
  }
  return victims;
}

Heap::OversizeVictims Heap::FindOversizeVictims(const Plan& plan) const {
  OversizeVictims out;
  const std::uint64_t max_split = options_.max_split_size_bytes;
  const Lane* lane = FindLane(*plan.pool, plan.stream);
  if (max_split == kUnlimited || lane == nullptr) return out;
  const std::uint64_t wanted = std::max(plan.rounded_bytes, max_split);
  Block* hit = lane->free.FirstAtLeast(wanted);
  // A block of that size is part of a larger segment where it was split before the limit was set.
  const auto is_whole = [](const Block& block) { return !block.segment->is_expandable && !block.IsSplit(); };
  if (hit != nullptr && is_whole(*hit)) {
    out.blocks.push_back(hit);
    out.enough = true;
    return out;
  }
  // Downwards from the largest block below the hit. What a failing walk releases stays released.
  std::uint64_t released = 0;
  Block* block = hit == nullptr ? lane->free.Last() : lane->free.Previous(hit);
  while (block != nullptr && released < wanted && block->size_bytes >= max_split) {
    if (is_whole(*block)) {
      out.blocks.push_back(block);
      released += block->size_bytes;
    }
    block = lane->free.Previous(block);
  }
  out.enough = released >= wanted;
  return out;
}

}  // namespace ashlar::policy
