#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/core/fast_path.h"
#include "allocator/core/thread_caches.h"

namespace ashlar::core {
namespace {

std::string BlockName(const policy::Block* block) {
  return absl::StrCat("block 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(block)));
}

}  // namespace

void StopAtDeadBlock(const policy::Block* block, const char* call) {
  const std::string name = absl::StrCat(call, ": ", BlockName(block));
  if (reinterpret_cast<std::uintptr_t>(block) % alignof(policy::Block) != 0) {
    StopAtMisuse(absl::StrCat(name, " is no block: no allocator gave this pointer"));
  }
  StopAtMisuse(absl::StrCat(name, " (", block->size_bytes, " bytes at 0x", absl::Hex(block->address),
                            ") is not live: it was freed before, or no allocator gave this pointer"));
}

void StopAtForeignBlock(const policy::Block* block, const char* call) {
  StopAtMisuse(absl::StrCat(call, ": ", BlockName(block), " (", block->size_bytes, " bytes at 0x",
                            absl::Hex(block->address), ") is another allocator's: give it to the one it came from"));
}

void StopAtGoneAllocator() {
  StopAtMisuse("Allocator: called after its destructor: free every block before the allocator ends");
}

// The fast path's part of what happens within an exclusive section: which blocks, lanes and arenas come and go.

FastPath::FastPath(Ledger& ledger)
    : heap_(ledger.heap()),
      can_put_off_(ledger.options().free_order != policy::FreeOrder::kPerBlockCounter),
      thread_caches_(ledger) {}

void FastPath::Enter(policy::Block* block, Stream requester, HandOutAs as) {
  policy::Lane& lane = *block->segment->lane;
  Bind(lane);
  Arena& arena = *ArenaOf(*block);
  arena.cache->recent_uses = kRecentSections;
  if (lane.stream != requester) AddRecordedStream(arena, block, requester);  // borrowed
  if (as != HandOutAs::kAddress) return;
  arena.cache->pointers.Insert(block);
  // The cache will serve what came with the block and is left.
  const bool has_rest = block->next != nullptr && block->next->state == policy::BlockUse::kFree;
  const std::uint64_t end = has_rest ? block->next->End() : block->End();
  if (pages_.Find(block->address) != &arena || pages_.Find(end - 1) != &arena)
    pages_.Enter(block->address, end, &arena);
}

StreamList FastPath::Leave(policy::Block* block) {
  Arena& arena = *ArenaOf(*block);
  arena.cache->recent_uses = kRecentSections;
  block->is_shared = false;
  if (!block->has_recorded_streams) return {};
  const auto recorded = arena.recorded_streams->find(block);
  StreamList streams = std::move(recorded->second);
  arena.recorded_streams->erase(recorded);
  block->has_recorded_streams = false;
  return streams;
}

// The segments know what the directory only remembers.
ThreadCache* FastPath::ThreadCacheOfAddress(std::uint64_t address) const {
  const auto segment = heap_.segments().upper_bound(address);
  if (segment == heap_.segments().begin()) return nullptr;
  const auto* arena = static_cast<const Arena*>(std::prev(segment)->second->lane->owner);
  return arena == nullptr ? nullptr : arena->cache;
}

policy::Block* FastPath::TakeByAddress(std::uint64_t address) {
  ThreadCache* const cache = ThreadCacheOfAddress(address);
  return cache == nullptr ? nullptr : cache->pointers.Take(address);
}

policy::Block* FastPath::FindByAddress(std::uint64_t address) const {
  const ThreadCache* const cache = ThreadCacheOfAddress(address);
  return cache == nullptr ? nullptr : cache->pointers.Find(address).block;
}

void FastPath::Bind(policy::Lane& lane) {
  if (lane.owner != nullptr) return;
  Arena& arena = arenas_.FindOrAdd({lane.pool->id, lane.stream}, thread_caches_.OfSection(), this);
  (lane.is_planned ? arena.PlannedOf(lane.pool->is_small) : arena.LaneOf(lane.pool->is_small)) = &lane;
  lane.owner = &arena;
}

void FastPath::LeaveToPlan(policy::Lane& lane) {
  lane.is_planned = true;
  auto* arena = static_cast<Arena*>(lane.owner);
  if (arena == nullptr) return;
  arena->LaneOf(lane.pool->is_small) = nullptr;
  arena->PlannedOf(lane.pool->is_small) = &lane;
}

void FastPath::SetAsleep(policy::Lane& lane, bool is_asleep) {
  auto* arena = static_cast<Arena*>(lane.owner);
  if (arena == nullptr || lane.is_planned) return;
  arena->LaneOf(lane.pool->is_small) = is_asleep ? nullptr : &lane;
  arena->PlannedOf(lane.pool->is_small) = is_asleep ? &lane : nullptr;
}

StreamList FastPath::RecordedStreams(const policy::Block& block) {
  return block.has_recorded_streams ? ArenaOf(block)->recorded_streams->at(&block) : StreamList{};
}

void FastPath::Forget(policy::Lane& lane, const policy::AddressRange& range) {
  auto* arena = static_cast<Arena*>(lane.owner);
  if (arena == nullptr) return;
  pages_.Leave(range.address, range.address + range.size_bytes, arena);
  if (lane.segment_count > 0) return;
  if (policy::Lane*& planned = arena->PlannedOf(lane.pool->is_small); planned == &lane) planned = nullptr;
  if (policy::Lane*& bound = arena->LaneOf(lane.pool->is_small); bound == &lane) bound = nullptr;
  if (arena->IsEmpty()) arenas_.Erase(*arena);
}

void FastPath::MoveArena(const ArenaKey& key, ThreadCache& to) {
  const ExclusiveSection section(thread_caches_);
  Arena* arena = arenas_.Find(key);
  if (arena == nullptr || arena->cache == &to) return;
  MovePointers(*arena, to);
  arena->visits.Moved();
  arena->cache = &to;
  to.recent_uses = kRecentSections;  // so that it gets room
}

void FastPath::MovePointers(const Arena& arena, ThreadCache& to) {
  PointerMap& from = arena.cache->pointers;
  std::vector<policy::Block*> named;
  from.ForEach([&](policy::Block* block) {
    if (ArenaOf(*block) == &arena) named.push_back(block);
  });
  for (policy::Block* block : named) {
    from.Take(block->address);
    to.pointers.Insert(block);
  }
}

}  // namespace ashlar::core
