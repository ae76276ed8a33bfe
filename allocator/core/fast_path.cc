#include "allocator/core/fast_path.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "allocator/policy/heap.h"

namespace ashlar::core {

// Runs `(this->*act)(desk, arena, arguments...)` under the lock of the desk where the thread looks first, its own or
// the common one; no arena comes or goes meanwhile. It names the arena that it found; where that lies on another desk
// it has done nothing, and runs again under that one's lock.
template <auto act, typename... Arguments>
[[gnu::always_inline]] inline auto FastPath::ServeFromCache(Arguments... arguments) {
  using Served = decltype((this->*act)(std::declval<Desk&>(), std::declval<Arena*&>(), arguments...));
  if (desks_.IsSerial()) return Served{};
  DeskOfAllocator& place = desks_.OfThread();
  Desk& mine = *place.desk;
  Desk* desk = place.first;
  if (desk == &mine) [[likely]] {
    const HeldLock held(mine.lock, true);
    if (desks_.IsSerialNow()) return Served{};
    Arena* arena = nullptr;
    const Served served = (this->*act)(mine, arena, arguments...);
    if (arena == nullptr) return served;
    if (arena->desk == &mine) [[likely]] {
      arena->visits.Interrupt();
      return served;
    }
    desk = arena->desk;
  }
  return ServeElsewhere<act, Served>(*desk, place, arguments...);
}

// On the common desk, or another thread's. Where the arena has moved twice meanwhile, the exclusive section serves.
template <auto act, typename Served, typename... Arguments>
[[gnu::noinline]] Served FastPath::ServeElsewhere(Desk& first, DeskOfAllocator& place, Arguments... arguments) {
  Desk* desk = &first;
  for (int tries = 0; tries < 2; ++tries) {
    Served served{};
    ArenaKey key;
    Visits::Verdict verdict{};
    {
      const HeldLock held(desk->lock, desk == place.desk);
      if (desks_.IsSerialNow()) return {};
      Arena* arena = nullptr;
      served = (this->*act)(*desk, arena, arguments...);
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
template <bool is_named>
[[gnu::always_inline]] inline policy::Block* FastPath::TryAllocateIn(Arena& arena, std::uint64_t bytes,
                                                                     std::uint64_t rounded_bytes) {
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
[[gnu::always_inline]] inline policy::Block* FastPath::TakeBack(Desk& desk, std::uint64_t bytes) {
  policy::Block* block = desk.newest.block();
  if (desk.journal != nullptr && !desk.journal->CanTake()) [[unlikely]]
    return nullptr;
  if (!desk.CountRepeat(block->is_small, Signed(block->requested_bytes), Signed(bytes))) return nullptr;
  desk.newest.TakeBack(bytes);
  if (desk.journal != nullptr) [[unlikely]]
    desk.journal->AddAllocation(*block, *block->segment->lane, desks_.turn());
  return block;
}

template <bool is_named>
[[gnu::always_inline]] inline policy::Block* FastPath::AllocateAt(Desk& desk, Arena*& arena, std::uint64_t bytes,
                                                                  const ArenaKey& key) {
  const std::uint64_t rounded_bytes = heap_.Rounded(bytes);  // by the settings in force, which change under all locks
  if (desk.newest.IsFor(rounded_bytes, is_named) && desk.newest.arena()->key == key) {
    arena = desk.newest.arena();
    if (policy::Block* block = TakeBack(desk, bytes); block != nullptr) return block;
  }
  arena = arenas_.Find(key);
  if (arena == nullptr || arena->desk != &desk) return nullptr;
  return TryAllocateIn<is_named>(*arena, bytes, rounded_bytes);
}

template <HandOutAs as>
policy::Block* FastPath::TryAllocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  return ServeFromCache<&FastPath::AllocateAt<as == HandOutAs::kAddress>>(bytes, ArenaKey{pool, stream});
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
[[gnu::always_inline]] inline bool FastPath::TryFreeLocked(Desk& desk, policy::Block* block) {
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

[[gnu::always_inline]] inline bool FastPath::FreeAt(Desk& desk, Arena*& arena, policy::Block* block) {
  if (TryPutOff(desk, block, false, 0)) {
    arena = desk.newest.arena();
    return true;
  }
  desk.Settle();
  Check(block, "Free");
  arena = ArenaOf(*block);
  return arena->desk == &desk && TryFreeLocked(desk, block);
}

bool FastPath::TryFree(policy::Block* block) { return ServeFromCache<&FastPath::FreeAt>(block); }

[[gnu::always_inline]] inline bool FastPath::FreeAddressAt(Desk& desk, Arena*& arena, std::uint64_t address) {
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
}

bool FastPath::TryFreeAddress(std::uint64_t address) { return ServeFromCache<&FastPath::FreeAddressAt>(address); }

// Under the lock of the arena's desk, or in the exclusive section.
bool FastPath::AddRecordedStream(Arena& arena, policy::Block* block, Stream stream) {
  if (arena.recorded_streams == nullptr) arena.recorded_streams = std::make_unique<Arena::RecordedStreams>();
  StreamList& streams = (*arena.recorded_streams)[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  block->has_recorded_streams = true;
  return true;
}

[[gnu::always_inline]] inline bool FastPath::RecordStreamAt(Desk& desk, Arena*& arena, policy::Block* block,
                                                            Stream stream) {
  arena = ArenaOf(*block);
  return arena->desk == &desk && AddRecordedStream(*arena, block, stream);
}

bool FastPath::TryRecordStream(policy::Block* block, Stream stream) {
  return ServeFromCache<&FastPath::RecordStreamAt>(block, stream);
}

[[gnu::always_inline]] inline bool FastPath::RecordStreamOfAddressAt(Desk& desk, Arena*& arena, std::uint64_t address,
                                                                     Stream stream) {
  desk.Settle();
  policy::Block* block = desk.pointers.Find(address).block;
  if (block == nullptr) {
    arena = pages_.Find(address);
    return false;
  }
  arena = ArenaOf(*block);
  return block->segment->lane->stream == stream || AddRecordedStream(*arena, block, stream);
}

bool FastPath::TryRecordStreamOfAddress(std::uint64_t address, Stream stream) {
  return ServeFromCache<&FastPath::RecordStreamOfAddressAt>(address, stream);
}

}  // namespace ashlar::core
