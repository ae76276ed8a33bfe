// Requests that one desk can serve by itself, and the doors through which all others reach the World.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/world.h"
#include "allocator/policy/heap_steps.h"

namespace ashlar::core {
namespace {

absl::Status TooLarge(std::uint64_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("out of memory: ", bytes, " bytes are more than any device has"));
}

}  // namespace

// Runs `act(desk, engine)` under the lock of the desk where the thread looks first, its own or the common one; no
// engine comes or goes meanwhile. It names the engine that it found; where that lies on another desk it has done
// nothing, and runs again under that one's lock.
template <typename Served, typename Act>
[[gnu::always_inline]] inline Served CachingAllocator::ServeFromCache(Act act) {
  if (is_serial_.load(std::memory_order_acquire)) return {};
  DeskOfAllocator& place = DeskOfThread();
  Desk& mine = *place.desk;
  Desk* desk = place.first;
  if (desk == &mine) [[likely]] {
    const std::lock_guard<CountedLock> guard(mine.lock);
    if (is_serial_.load(std::memory_order_relaxed)) return {};
    Engine* engine = nullptr;
    const Served served = act(mine, engine);
    if (engine == nullptr) return served;
    if (engine->desk == &mine) [[likely]] {
      engine->visits.Interrupt();
      return served;
    }
    desk = engine->desk;
  }
  return ServeElsewhere<Served>(*desk, place, act);
}

// On the common desk, or another thread's. Where the engine has moved twice meanwhile, the World serves.
template <typename Served, typename Act>
[[gnu::noinline]] Served CachingAllocator::ServeElsewhere(Desk& first, DeskOfAllocator& place, Act& act) {
  Desk* desk = &first;
  for (int tries = 0; tries < 2; ++tries) {
    Served served{};
    EngineKey key;
    Visits::Verdict verdict{};
    {
      const std::lock_guard<CountedLock> guard(desk->lock);
      if (is_serial_.load(std::memory_order_relaxed)) return {};
      Engine* engine = nullptr;
      served = act(*desk, engine);
      Desk* const next = engine != nullptr ? engine->desk : served ? desk : place.desk;
      if (next != desk) {  // it lies there; or an address that nothing but its own desk's map may know
        desk = next;
        continue;
      }
      if (engine == nullptr) return served;
      if (desk == place.desk) {
        engine->visits.Interrupt();
      } else {
        key = engine->key;
        verdict = engine->visits.Count(*place.desk, *desk);
      }
    }
    place.first = desk->seat == nullptr ? desk : place.desk;
    if (verdict == Visits::Verdict::kBelongsToVisitor) MoveEngine(key, *place.desk);
    if (verdict == Visits::Verdict::kBelongsToAll) MoveEngine(key, FindDesk(nullptr));
    return served;
  }
  return {};
}

policy::Block* CachingAllocator::TryAllocate(const policy::Request& request, NamedBy name) {
  if (pending_count_.load(std::memory_order_acquire) != 0) return nullptr;
  const std::uint64_t rounded_bytes = heap_.Rounded(request.bytes);
  const bool is_named = name == NamedBy::kAddress;
  return ServeFromCache<policy::Block*>([&](Desk& desk, Engine*& engine) -> policy::Block* {
    engine = engines_.Find({request.pool, request.stream});
    if (engine == nullptr || engine->desk != &desk) return nullptr;
    return TryAllocateIn(*engine, request, rounded_bytes, is_named);
  });
}

// Under the lock of the engine's desk.
inline policy::Block* CachingAllocator::TryAllocateIn(Engine& engine, const policy::Request& request,
                                                      std::uint64_t rounded_bytes, bool is_named) {
  const bool is_small = policy::IsSmall(rounded_bytes);
  if (engine.LaneOf(is_small) == nullptr) return nullptr;
  Desk& desk = *engine.desk;
  policy::Lane& lane = *engine.LaneOf(is_small);
  policy::Block* block = heap_.FindIn(lane, rounded_bytes);
  // The sizes that max_split_size singles out have statistics of their own.
  if (block == nullptr || block->size_bytes >= options().max_split_size_bytes) return nullptr;
  if (is_named) desk.pointers.Prefetch(block->address);
  const policy::Heap::PlaceEffect effect = heap_.EffectOf(*block, rounded_bytes, *lane.pool);
  const std::int64_t block_bytes = Signed(effect.block_bytes);
  if (!desk.CountAllocation(is_small, block_bytes, Signed(request.bytes), effect.splits)) return nullptr;
  block = heap_.CommitAs(lane, block, effect, request.bytes);
  if (is_named) {
    desk.pointers.Insert(block);
    pages_.Enter(block->address, &engine);
  }
  return block;
}

// Under the lock of the desk where the block's engine lies.
bool CachingAllocator::TryFreeLocked(Desk& desk, policy::Block* block) {
  CheckLive(block, "Free");
  if (block->has_recorded_streams || block->size_bytes >= options().max_split_size_bytes) return false;
  const bool is_small = block->is_small;
  const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*block);
  if (!desk.CountFree(is_small, Signed(block->size_bytes), Signed(block->requested_bytes), effect.splits)) return false;
  policy::Heap::ReleaseAs(*block->segment->lane, block, effect);
  return true;
}

bool CachingAllocator::TryFree(policy::Block* block) {
  return ServeFromCache<bool>([&](Desk& desk, Engine*& engine) {
    CheckOurs(block, "Free");
    engine = EngineOf(*block);
    return engine->desk == &desk && TryFreeLocked(desk, block);
  });
}

Block* CachingAllocator::AllocateCached(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0 || bytes > policy::kMaxRequestBytes) [[unlikely]]
    return nullptr;
  return TryAllocate({bytes, stream, pool}, NamedBy::kPointer);
}

absl::StatusOr<Block*> CachingAllocator::AllocateUncached(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0) return nullptr;
  if (bytes > policy::kMaxRequestBytes) return TooLarge(bytes);
  return AllocateInWorld({bytes, stream, pool}, NamedBy::kPointer);
}

absl::StatusOr<Block*> CachingAllocator::Allocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (Block* block = AllocateCached(bytes, stream, pool); block != nullptr) [[likely]]
    return block;
  return AllocateUncached(bytes, stream, pool);
}

void CachingAllocator::Free(Block* named) noexcept {
  if (named == nullptr) return;
  auto* block = const_cast<policy::Block*>(named);
  if (TryFree(block)) [[likely]]
    return;
  const World world(*this);
  FreeInWorld(block);
}

absl::StatusOr<std::uint64_t> CachingAllocator::AllocateAddress(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0) return std::uint64_t{0};
  if (bytes > policy::kMaxRequestBytes) return TooLarge(bytes);
  const policy::Request request{bytes, stream, pool};
  if (policy::Block* block = TryAllocate(request, NamedBy::kAddress); block != nullptr) [[likely]]
    return block->address;
  const absl::StatusOr<policy::Block*> block = AllocateInWorld(request, NamedBy::kAddress);
  if (!block.ok()) return block.status();
  return (*block)->address;
}

bool CachingAllocator::TryFreeAddress(std::uint64_t address) {
  return ServeFromCache<bool>([&](Desk& desk, Engine*& engine) {
    const PointerMap::Found found = desk.pointers.Find(address);
    if (found.block == nullptr) {
      engine = pages_.Find(address);
      return false;
    }
    engine = EngineOf(*found.block);
    if (!TryFreeLocked(desk, found.block)) return false;
    desk.pointers.Erase(found);
    return true;
  });
}

bool CachingAllocator::FreeAddress(std::uint64_t address) noexcept {
  if (TryFreeAddress(address)) [[likely]]
    return true;
  const World world(*this);
  policy::Block* block = TakeByAddress(address);
  if (block == nullptr) return false;
  FreeInWorld(block);
  return true;
}

// The segments know what the directory only remembers.
policy::Block* CachingAllocator::TakeByAddress(std::uint64_t address) {
  auto segment = heap_.segments().upper_bound(address);
  if (segment == heap_.segments().begin()) return nullptr;
  const auto* engine = static_cast<const Engine*>(std::prev(segment)->second->lane->owner);
  return engine == nullptr ? nullptr : engine->desk->pointers.Take(address);
}

// Under the lock of the engine's desk, or in the World.
bool CachingAllocator::AddRecordedStream(Engine& engine, policy::Block* block, Stream stream) {
  absl::InlinedVector<Stream, 2>& streams = engine.recorded_streams[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  block->has_recorded_streams = true;
  return true;
}

void CachingAllocator::RecordStream(Block* named, Stream stream) noexcept {
  if (named == nullptr) return;
  auto* block = const_cast<policy::Block*>(named);
  if (is_gone_.load(std::memory_order_relaxed)) [[unlikely]]
    StopAtGoneAllocator();
  CheckOurs(block, "RecordStream");
  if (stream == block->segment->lane->stream) return;
  const bool is_done = ServeFromCache<bool>([&](Desk& desk, Engine*& engine) {
    engine = EngineOf(*block);
    return engine->desk == &desk && AddRecordedStream(*engine, block, stream);
  });
  if (is_done) return;
  const World world(*this);
  AddRecordedStream(*EngineOf(*block), block, stream);
}

}  // namespace ashlar::core
