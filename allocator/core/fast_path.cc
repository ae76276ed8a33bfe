#include "allocator/core/fast_path.h"

#include <algorithm>
#include <mutex>

#include "allocator/policy/heap_steps.h"

namespace ashlar::core {

// Runs `act(desk, arena)` under the lock of the desk where the thread looks first, its own or the common one; no
// arena comes or goes meanwhile. It names the arena that it found; where that lies on another desk it has done
// nothing, and runs again under that one's lock.
template <typename Served, typename Act>
[[gnu::always_inline]] inline Served FastPath::ServeFromCache(Act act) {
  if (desks_.IsSerial()) return {};
  DeskOfAllocator& place = desks_.OfThread();
  Desk& mine = *place.desk;
  Desk* desk = place.first;
  if (desk == &mine) [[likely]] {
    const std::lock_guard<CountedLock> guard(mine.lock);
    if (desks_.IsSerialNow()) return {};
    Arena* arena = nullptr;
    const Served served = act(mine, arena);
    if (arena == nullptr) return served;
    if (arena->desk == &mine) [[likely]] {
      arena->visits.Interrupt();
      return served;
    }
    desk = arena->desk;
  }
  return ServeElsewhere<Served>(*desk, place, act);
}

// On the common desk, or another thread's. Where the arena has moved twice meanwhile, the exclusive section serves.
template <typename Served, typename Act>
[[gnu::noinline]] Served FastPath::ServeElsewhere(Desk& first, DeskOfAllocator& place, Act& act) {
  Desk* desk = &first;
  for (int tries = 0; tries < 2; ++tries) {
    Served served{};
    ArenaKey key;
    Visits::Verdict verdict{};
    {
      const std::lock_guard<CountedLock> guard(desk->lock);
      if (desks_.IsSerialNow()) return {};
      Arena* arena = nullptr;
      served = act(*desk, arena);
      Desk* const next = arena != nullptr ? arena->desk : served ? desk : place.desk;
      if (next != desk) {  // it lies there; or an address that nothing but its own desk's map may know
        desk = next;
        continue;
      }
      if (arena == nullptr) return served;
      if (desk == place.desk) {
        arena->visits.Interrupt();
      } else {
        key = arena->key;
        verdict = arena->visits.Count(*place.desk, *desk);
      }
    }
    place.first = desk->seat == nullptr ? desk : place.desk;
    if (verdict == Visits::Verdict::kBelongsToVisitor) MoveArena(key, *place.desk);
    if (verdict == Visits::Verdict::kBelongsToAll) MoveArena(key, desks_.Common());
    return served;
  }
  return {};
}

// Under the lock of the arena's desk.
inline policy::Block* FastPath::TryAllocateIn(Arena& arena, std::uint64_t bytes, std::uint64_t rounded_bytes,
                                              bool is_named) {
  const bool is_small = policy::IsSmall(rounded_bytes);
  if (arena.LaneOf(is_small) == nullptr) return nullptr;
  Desk& desk = *arena.desk;
  desk.Settle();
  policy::Lane& lane = *arena.LaneOf(is_small);
  policy::Block* block = heap_.FindIn(lane, rounded_bytes);
  // The sizes that max_split_size singles out have statistics of their own.
  if (block == nullptr || block->size_bytes >= heap_.options().max_split_size_bytes) return nullptr;
  if (desk.journal != nullptr && !desk.journal->CanTake()) [[unlikely]]
    return nullptr;
  if (is_named) desk.pointers.Prefetch(block->address);
  const policy::Heap::PlaceEffect effect = heap_.EffectOf(*block, rounded_bytes, *lane.pool);
  const std::int64_t block_bytes = Signed(effect.block_bytes);
  if (!desk.CountAllocation(is_small, block_bytes, Signed(bytes), effect.splits)) return nullptr;
  block = heap_.CommitAs(lane, block, effect, bytes);
  if (desk.journal != nullptr) [[unlikely]]
    desk.journal->AddAllocation(*block, lane, desks_.turn());
  if (is_named) desk.pointers.Insert(block);
  if (can_put_off_) desk.newest.Set(block, &arena, rounded_bytes, is_named);
  return block;
}

// The newest block again; nullptr where it must be settled.
inline policy::Block* FastPath::TakeBack(Desk& desk, std::uint64_t bytes) {
  policy::Block* block = desk.newest.block();
  if (desk.journal != nullptr && !desk.journal->CanTake()) [[unlikely]]
    return nullptr;
  if (!desk.CountRepeat(block->is_small, Signed(block->requested_bytes), Signed(bytes))) return nullptr;
  desk.newest.TakeBack(bytes);
  if (desk.journal != nullptr) [[unlikely]]
    desk.journal->AddAllocation(*block, *block->segment->lane, desks_.turn());
  return block;
}

template <HandOutAs as>
policy::Block* FastPath::TryAllocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  constexpr bool is_named = as == HandOutAs::kAddress;
  return ServeFromCache<policy::Block*>([&](Desk& desk, Arena*& arena) -> policy::Block* {
    const std::uint64_t rounded_bytes = heap_.Rounded(bytes);  // by the settings in force, which change under all locks
    const ArenaKey key{pool, stream};
    if (desk.newest.IsFor(rounded_bytes, is_named) && desk.newest.arena()->key == key) {
      arena = desk.newest.arena();
      if (policy::Block* block = TakeBack(desk, bytes); block != nullptr) return block;
    }
    arena = arenas_.Find(key);
    if (arena == nullptr || arena->desk != &desk) return nullptr;
    return TryAllocateIn(*arena, bytes, rounded_bytes, is_named);
  });
}

template policy::Block* FastPath::TryAllocate<HandOutAs::kPointer>(std::uint64_t bytes, Stream stream, PoolId pool);
template policy::Block* FastPath::TryAllocate<HandOutAs::kAddress>(std::uint64_t bytes, Stream stream, PoolId pool);

// The newest block is freed by what it was handed out as. `slot`: of its address in the map.
inline bool FastPath::TryPutOff(Desk& desk, policy::Block* block, bool is_named, std::size_t slot) {
  if (!desk.newest.MayPutOff(block, is_named)) return false;
  if (desk.journal != nullptr) [[unlikely]] {
    if (!desk.journal->CanTake()) return false;
    desk.journal->AddFree(*block, *block->segment->lane, desks_.turn());
  }
  desk.newest.PutOff(slot);
  return true;
}

// Under the lock of the desk where the block's arena lies; the desk is settled.
inline bool FastPath::TryFreeLocked(Desk& desk, policy::Block* block) {
  CheckLive(block, "Free");
  if (block->has_recorded_streams || block->size_bytes >= heap_.options().max_split_size_bytes) return false;
  if (desk.journal != nullptr && !desk.journal->CanTake()) [[unlikely]]
    return false;
  const bool is_small = block->is_small;
  const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*block);
  if (!desk.CountFree(is_small, Signed(block->size_bytes), Signed(block->requested_bytes), effect.splits)) return false;
  policy::Lane& lane = *block->segment->lane;
  if (desk.journal != nullptr) [[unlikely]]
    desk.journal->AddFree(*block, lane, desks_.turn());
  policy::Heap::ReleaseAs(lane, block, effect);
  return true;
}

bool FastPath::TryFree(policy::Block* block) {
  return ServeFromCache<bool>([&](Desk& desk, Arena*& arena) {
    if (TryPutOff(desk, block, false, 0)) {
      arena = desk.newest.arena();
      return true;
    }
    desk.Settle();
    Check(block, "Free");
    arena = ArenaOf(*block);
    return arena->desk == &desk && TryFreeLocked(desk, block);
  });
}

bool FastPath::TryFreeAddress(std::uint64_t address) {
  return ServeFromCache<bool>([&](Desk& desk, Arena*& arena) {
    PointerMap::Found found = desk.pointers.Find(address);
    if (found.block != nullptr && TryPutOff(desk, found.block, true, found.index)) {
      arena = desk.newest.arena();
      return true;
    }
    if (!desk.newest.IsSettled()) [[unlikely]] {
      desk.Settle();
      found = desk.pointers.Find(address);  // an address has left the map, where others move
    }
    if (found.block == nullptr) {
      arena = pages_.Find(address);
      return false;
    }
    arena = ArenaOf(*found.block);
    if (!TryFreeLocked(desk, found.block)) return false;
    desk.newest.Forget();
    desk.pointers.Erase(found);
    return true;
  });
}

// Under the lock of the arena's desk, or in the exclusive section.
bool FastPath::AddRecordedStream(Arena& arena, policy::Block* block, Stream stream) {
  StreamList& streams = arena.recorded_streams[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  block->has_recorded_streams = true;
  return true;
}

bool FastPath::TryRecordStream(policy::Block* block, Stream stream) {
  return ServeFromCache<bool>([&](Desk& desk, Arena*& arena) {
    arena = ArenaOf(*block);
    return arena->desk == &desk && AddRecordedStream(*arena, block, stream);
  });
}

bool FastPath::TryRecordStreamOfAddress(std::uint64_t address, Stream stream) {
  return ServeFromCache<bool>([&](Desk& desk, Arena*& arena) {
    desk.Settle();
    policy::Block* block = desk.pointers.Find(address).block;
    if (block == nullptr) {
      arena = pages_.Find(address);
      return false;
    }
    arena = ArenaOf(*block);
    return block->segment->lane->stream == stream || AddRecordedStream(*arena, block, stream);
  });
}

}  // namespace ashlar::core
