// Requests that one desk can serve by itself, and the doors through which all others reach the World.
#include <algorithm>
#include <cstdlib>
#include <iterator>
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

void Desk::Count(LifoLog::Entry& entry) {
  if (entry.repeats == 0) return;
  Changes& increases = SideOf(entry.block->is_small).increases;
  increases[kBlocks] += entry.repeats;
  increases[kBlockBytes] += entry.repeats * entry.block_bytes;
  increases[kSplitBlocks] += entry.repeats * std::abs(entry.split_blocks);
  increases[kSplitBytes] += entry.repeats * std::abs(entry.split_bytes);
  entry.repeats = 0;
}

// Nothing about the log's blocks has changed since they were allocated, so each free leads back one state. The callers'
// requests are counted already.
void Desk::ReleaseUndone() {
  // Each is freed next to blocks that are freed after it: those are live until then.
  log.ForEachUndone([](LifoLog::Entry& entry) { entry.block->state = policy::BlockState::kLive; });
  while (log.has_undone()) {
    LifoLog::Entry& entry = log.Top();
    Count(entry);
    if (entry.is_named) pointers.Take(entry.address);
    const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*entry.block);
    CountFreeUnchecked(entry.block->is_small, entry.block_bytes, 0, effect.splits);
    policy::Heap::ReleaseAs(*entry.block->segment->lane, entry.block, effect);
    log.DropTop();
  }
}

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
    const BiasedLock::Guard guard(mine.lock);
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
      const BiasedLock::Guard guard(desk->lock);
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

// The request that the log's last free undid, once more.
policy::Block* CachingAllocator::Repeat(Desk& desk, Engine& engine, std::uint64_t bytes, bool is_named) {
  LifoLog::Entry& entry = *desk.log.Undone();
  if (!desk.CountRequested(entry.block->is_small, Signed(bytes))) return nullptr;
  if (entry.is_named != is_named) [[unlikely]] {
    if (is_named) {
      desk.pointers.Insert(entry.block);
      pages_.Enter(entry.address, &engine);
    } else {
      desk.pointers.Take(entry.address);
    }
    entry.is_named = is_named;
  }
  desk.log.CountRepeat(entry);
  entry.block->requested_bytes = bytes;
  entry.block->state = policy::BlockState::kLive;
  desk.log.StepForward();
  return entry.block;
}

policy::Block* CachingAllocator::TryAllocate(const policy::Request& request, NamedBy name) {
  if (pending_count_.load(std::memory_order_acquire) != 0) return nullptr;
  const std::uint64_t rounded_bytes = heap_.Rounded(request.bytes);
  const bool is_named = name == NamedBy::kAddress;
  return ServeFromCache<policy::Block*>([&](Desk& desk, Engine*& engine) -> policy::Block* {
    engine = engines_.Find({request.pool, request.stream});
    if (engine == nullptr || engine->desk != &desk) return nullptr;
    if (const LifoLog::Entry* undone = desk.log.Undone(); undone != nullptr) {
      // The entry has its lane.
      const bool is_same = undone->rounded_bytes == rounded_bytes && undone->engine == engine;
      if (is_same) return Repeat(desk, *engine, request.bytes, is_named);
      desk.ReleaseUndone();
    }
    return TryAllocateIn(*engine, request, rounded_bytes, is_named);
  });
}

// Under the lock of the engine's desk. Not a part of its caller, nor is TryFreeFound: the log's steps stay short.
[[gnu::noinline]] policy::Block* CachingAllocator::TryAllocateIn(Engine& engine, const policy::Request& request,
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
  if (logs_) {
    LifoLog::Entry& entry = desk.log.Append([&desk](LifoLog::Entry& oldest) { desk.Count(oldest); });
    const auto split_blocks = static_cast<std::int32_t>(effect.splits.blocks);
    entry = {block, &engine, block->address, rounded_bytes, block_bytes, effect.splits.bytes, split_blocks, is_named};
  }
  return block;
}

// Under the desk's lock: a free of the newest allocation, which only steps back.
bool CachingAllocator::TryUndo(Desk& desk, const LifoLog::Entry& newest) {
  if (newest.block->has_recorded_streams) return false;
  desk.GiveBackRequested(newest.block->is_small, Signed(newest.block->requested_bytes));
  newest.block->state = policy::BlockState::kFree;
  desk.log.StepBack();
  return true;
}

// Under the lock of the desk where the block's engine lies.
bool CachingAllocator::TryFreeLocked(Desk& desk, policy::Block* block) {
  CheckLive(block, "Free");
  if (block->has_recorded_streams || block->size_bytes >= options().max_split_size_bytes) return false;
  const bool is_small = block->is_small;
  desk.EmptyLog();
  const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*block);
  if (!desk.CountFree(is_small, Signed(block->size_bytes), Signed(block->requested_bytes), effect.splits)) return false;
  policy::Heap::ReleaseAs(*block->segment->lane, block, effect);
  return true;
}

bool CachingAllocator::TryFree(policy::Block* block) {
  return ServeFromCache<bool>([&](Desk& desk, Engine*& engine) {
    const LifoLog::Entry* newest = desk.log.Newest();
    if (newest != nullptr && newest->block == block) return TryUndo(desk, *newest);
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
    const LifoLog::Entry* newest = desk.log.Newest();
    const bool is_newest = newest != nullptr && newest->address == address && newest->is_named;
    return is_newest ? TryUndo(desk, *newest) : TryFreeFound(desk, address, engine);
  });
}

[[gnu::noinline]] bool CachingAllocator::TryFreeFound(Desk& desk, std::uint64_t address, Engine*& engine) {
  PointerMap::Found found = desk.pointers.Find(address);
  if (found.block == nullptr) {
    engine = pages_.Find(address);
    return false;
  }
  // A block that the log holds back is in the map and not live.
  if (found.block->state != policy::BlockState::kLive) return false;
  engine = EngineOf(*found.block);
  if (desk.log.has_undone()) {
    desk.ReleaseUndone();
    found = desk.pointers.Find(address);
  }
  if (!TryFreeLocked(desk, found.block)) return false;
  desk.pointers.Erase(found);
  return true;
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
