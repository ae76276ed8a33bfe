#include "allocator/core/fast_path.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "allocator/policy/heap.h"

namespace ashlar::core {

// Runs `(this->*act)(thread cache, arena, arguments...)` under the lock of the thread cache where the thread looks
// first, its own or the common one; no arena comes or goes meanwhile. It names the arena that it found; where that lies
// in another thread cache it has done nothing, and runs again under that one's lock.
template <auto act, typename... Arguments>
[[gnu::always_inline]] inline auto FastPath::ServeFromCache(Arguments... arguments) {
  using Served = decltype((this->*act)(std::declval<ThreadCache&>(), std::declval<Arena*&>(), arguments...));
  if (thread_caches_.IsSerial()) return Served{};
  ThreadCacheOfAllocator& place = thread_caches_.OfThread();
  ThreadCache& mine = *place.cache;
  ThreadCache* cache = place.first;
  if (cache == &mine) [[likely]] {
    const HeldLock held(mine.lock, true);
    if (thread_caches_.IsSerialNow()) return Served{};
    Arena* arena = nullptr;
    const Served served = (this->*act)(mine, arena, arguments...);
    if (arena == nullptr) return served;
    if (arena->cache == &mine) [[likely]] {
      arena->visits.Interrupt();
      return served;
    }
    cache = arena->cache;
  }
  return ServeElsewhere<act, Served>(*cache, place, arguments...);
}

// In the common cache, or another thread's. Where the arena has moved twice meanwhile, the exclusive section serves.
template <auto act, typename Served, typename... Arguments>
[[gnu::noinline]] Served FastPath::ServeElsewhere(ThreadCache& first, ThreadCacheOfAllocator& place,
                                                  Arguments... arguments) {
  ThreadCache* cache = &first;
  for (int tries = 0; tries < 2; ++tries) {
    Served served{};
    ArenaKey key;
    Visits::Verdict verdict{};
    {
      const HeldLock held(cache->lock, cache == place.cache);
      if (thread_caches_.IsSerialNow()) return {};
      Arena* arena = nullptr;
      served = (this->*act)(*cache, arena, arguments...);
      ThreadCache* const next = arena != nullptr ? arena->cache : served ? cache : place.cache;
      if (next != cache) {  // it lies there; or an address that nothing but its own thread cache's map may know
        cache = next;
        continue;
      }
      if (arena == nullptr) return served;
      if (cache == place.cache) {
        arena->visits.Interrupt();
      } else {
        key = arena->key;
        verdict = arena->visits.Count(*place.cache, *cache);
      }
    }
    place.first = cache->slot == nullptr ? cache : place.cache;
    if (verdict == Visits::Verdict::kBelongsToVisitor) MoveArena(key, *place.cache);
    if (verdict == Visits::Verdict::kBelongsToAll) MoveArena(key, thread_caches_.Common());
    return served;
  }
  return {};
}

// Under the lock of the arena's thread cache.
template <bool is_named>
[[gnu::always_inline]] inline policy::Block* FastPath::TryAllocateIn(Arena& arena, std::uint64_t bytes,
                                                                     std::uint64_t rounded_bytes) {
  const bool is_small = policy::IsSmall(rounded_bytes);
  if (arena.LaneOf(is_small) == nullptr) return nullptr;
  ThreadCache& cache = *arena.cache;
  cache.Settle();
  policy::Lane& lane = *arena.LaneOf(is_small);
  policy::Block* block = heap_.FindIn(lane, rounded_bytes);
  // The sizes that max_split_size singles out have statistics of their own.
  if (block == nullptr || block->size_bytes >= heap_.options().max_split_size_bytes) return nullptr;
  if (cache.journal != nullptr && !cache.journal->CanTake()) [[unlikely]]
    return nullptr;
  if (is_named) cache.pointers.Prefetch(block->address);
  const policy::Heap::PlaceEffect effect = heap_.EffectOf(*block, rounded_bytes, *lane.pool);
  const std::int64_t block_bytes = Signed(effect.block_bytes);
  if (!cache.CountAllocation(is_small, block_bytes, Signed(bytes), effect.splits)) return nullptr;
  block = heap_.CommitAs(lane, block, effect, bytes);
  if (cache.journal != nullptr) [[unlikely]]
    cache.journal->AddAllocation(*block, lane, thread_caches_.turn());
  if (is_named) cache.pointers.Insert(block);
  if (can_put_off_) cache.newest.Set(block, &arena, rounded_bytes, is_named);
  return block;
}

// The newest block again; nullptr where it must be settled.
[[gnu::always_inline]] inline policy::Block* FastPath::TakeBack(ThreadCache& cache, std::uint64_t bytes) {
  policy::Block* block = cache.newest.block();
  if (cache.journal != nullptr && !cache.journal->CanTake()) [[unlikely]]
    return nullptr;
  if (!cache.CountRepeat(block->is_small, Signed(block->requested_bytes), Signed(bytes))) return nullptr;
  cache.newest.TakeBack(bytes);
  if (cache.journal != nullptr) [[unlikely]]
    cache.journal->AddAllocation(*block, *block->segment->lane, thread_caches_.turn());
  return block;
}

template <bool is_named>
[[gnu::always_inline]] inline policy::Block* FastPath::AllocateAt(ThreadCache& cache, Arena*& arena,
                                                                  std::uint64_t bytes, const ArenaKey& key) {
  const std::uint64_t rounded_bytes = heap_.Rounded(bytes);  // by the settings in force, which change under all locks
  if (cache.newest.IsFor(rounded_bytes, is_named) && cache.newest.arena()->key == key) {
    arena = cache.newest.arena();
    if (policy::Block* block = TakeBack(cache, bytes); block != nullptr) return block;
  }
  arena = arenas_.Find(key);
  if (arena == nullptr || arena->cache != &cache) return nullptr;
  return TryAllocateIn<is_named>(*arena, bytes, rounded_bytes);
}

template <HandOutAs as>
policy::Block* FastPath::TryAllocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  return ServeFromCache<&FastPath::AllocateAt<as == HandOutAs::kAddress>>(bytes, ArenaKey{pool, stream});
}

template policy::Block* FastPath::TryAllocate<HandOutAs::kPointer>(std::uint64_t bytes, Stream stream, PoolId pool);
template policy::Block* FastPath::TryAllocate<HandOutAs::kAddress>(std::uint64_t bytes, Stream stream, PoolId pool);

// The newest block is freed by what it was handed out as. `slot`: of its address in the map.
inline bool FastPath::TryPutOff(ThreadCache& cache, policy::Block* block, bool is_named, std::size_t slot) {
  if (!cache.newest.MayPutOff(block, is_named)) return false;
  if (cache.journal != nullptr) [[unlikely]] {
    if (!cache.journal->CanTake()) return false;
    cache.journal->AddFree(*block, *block->segment->lane, thread_caches_.turn());
  }
  cache.newest.PutOff(slot);
  return true;
}

// Under the lock of the thread cache where the block's arena lies; the thread cache is settled.
[[gnu::always_inline]] inline bool FastPath::TryFreeLocked(ThreadCache& cache, policy::Block* block) {
  CheckLive(block, "Free");
  if (!block->IsPlain() || block->size_bytes >= heap_.options().max_split_size_bytes) return false;
  if (cache.journal != nullptr && !cache.journal->CanTake()) [[unlikely]]
    return false;
  const bool is_small = block->is_small;
  const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*block);
  if (!cache.CountFree(is_small, Signed(block->size_bytes), Signed(block->requested_bytes), effect.splits))
    return false;
  policy::Lane& lane = *block->segment->lane;
  if (cache.journal != nullptr) [[unlikely]]
    cache.journal->AddFree(*block, lane, thread_caches_.turn());
  policy::Heap::ReleaseAs(lane, block, effect);
  return true;
}

[[gnu::always_inline]] inline bool FastPath::FreeAt(ThreadCache& cache, Arena*& arena, policy::Block* block) {
  if (TryPutOff(cache, block, false, 0)) {
    arena = cache.newest.arena();
    return true;
  }
  cache.Settle();
  Check(block, "Free");
  arena = ArenaOf(*block);
  return arena->cache == &cache && TryFreeLocked(cache, block);
}

bool FastPath::TryFree(policy::Block* block) { return ServeFromCache<&FastPath::FreeAt>(block); }

[[gnu::always_inline]] inline bool FastPath::FreeAddressAt(ThreadCache& cache, Arena*& arena, std::uint64_t address) {
  PointerMap::Found found = cache.pointers.Find(address);
  if (found.block != nullptr && TryPutOff(cache, found.block, true, found.index)) {
    arena = cache.newest.arena();
    return true;
  }
  if (!cache.newest.IsSettled()) [[unlikely]] {
    cache.Settle();
    found = cache.pointers.Find(address);  // an address has left the map, where others move
  }
  if (found.block == nullptr) {
    arena = pages_.Find(address);
    return false;
  }
  arena = ArenaOf(*found.block);
  if (!TryFreeLocked(cache, found.block)) return false;
  cache.newest.Forget();
  cache.pointers.Erase(found);
  return true;
}

bool FastPath::TryFreeAddress(std::uint64_t address) { return ServeFromCache<&FastPath::FreeAddressAt>(address); }

// Under the lock of the arena's thread cache, or in the exclusive section.
bool FastPath::AddRecordedStream(Arena& arena, policy::Block* block, Stream stream) {
  if (arena.recorded_streams == nullptr) arena.recorded_streams = std::make_unique<Arena::RecordedStreams>();
  StreamList& streams = (*arena.recorded_streams)[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  block->has_recorded_streams = true;
  return true;
}

[[gnu::always_inline]] inline bool FastPath::RecordStreamAt(ThreadCache& cache, Arena*& arena, policy::Block* block,
                                                            Stream stream) {
  arena = ArenaOf(*block);
  return arena->cache == &cache && AddRecordedStream(*arena, block, stream);
}

bool FastPath::TryRecordStream(policy::Block* block, Stream stream) {
  return ServeFromCache<&FastPath::RecordStreamAt>(block, stream);
}

[[gnu::always_inline]] inline bool FastPath::RecordStreamOfAddressAt(ThreadCache& cache, Arena*& arena,
                                                                     std::uint64_t address, Stream stream) {
  cache.Settle();
  policy::Block* block = cache.pointers.Find(address).block;
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
