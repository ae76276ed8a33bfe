// Requests that one engine can serve by itself, and the doors through which all others reach the World.
#include <algorithm>
#include <mutex>

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

// Nothing about the log's blocks has changed since they were allocated, so each free leads back one state. The callers'
// requests are counted already.
void Engine::ReleaseUndone() {
  // Each is freed next to blocks that are freed after it: those are live until then.
  log.ForEachUndone([](LifoLog::Entry& entry) { entry.block->state = policy::BlockState::kLive; });
  while (log.has_undone()) {
    LifoLog::Entry& entry = log.Top();
    Side& side = SideOf(entry.block->is_small);
    Count(entry);
    if (entry.is_named) pointers.Take(entry.address);
    const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*entry.block);
    CountFreeUnchecked(side, entry.block_bytes, 0, effect.splits);
    policy::Heap::ReleaseAs(*side.lane, entry.block, effect);
    log.DropTop();
  }
}

// The request that the log's last free undid, once more: the sums were there before, but for what was asked.
policy::Block* CachingAllocator::Repeat(Engine& engine, std::uint64_t bytes, bool is_named) {
  LifoLog::Entry& entry = *engine.log.Undone();
  Side& side = engine.SideOf(entry.block->is_small);
  if (Signed(bytes) > side.left[kRequestedBytes] || Signed(bytes) > engine.left[kRequestedBytes]) return nullptr;
  side.left[kRequestedBytes] -= Signed(bytes);
  engine.left[kRequestedBytes] -= Signed(bytes);
  side.increases[kRequestedBytes] += Signed(bytes);
  if (entry.is_named != is_named) [[unlikely]] {
    if (is_named) {
      engine.pointers.Insert(entry.block);
      pages_.Enter(entry.address, &engine);
    } else {
      engine.pointers.Take(entry.address);
    }
    entry.is_named = is_named;
  }
  engine.log.CountRepeat(entry);
  entry.block->requested_bytes = bytes;
  entry.block->state = policy::BlockState::kLive;
  engine.log.StepForward();
  return entry.block;
}

policy::Block* CachingAllocator::TryAllocate(const policy::Request& request, NamedBy name) {
  if (is_serial_.load(std::memory_order_acquire) || pending_count_.load(std::memory_order_acquire) != 0) return nullptr;
  Engine* engine = engines_.Find({request.pool, request.stream});
  if (engine == nullptr) return nullptr;
  const std::uint64_t rounded_bytes = heap_.Rounded(request.bytes);
  const bool is_named = name == NamedBy::kAddress;
  const BiasedLock::Guard guard(engine->lock);
  if (is_serial_.load(std::memory_order_relaxed)) return nullptr;
  if (const LifoLog::Entry* undone = engine->log.Undone(); undone != nullptr) {
    // The entry has its lane.
    if (undone->rounded_bytes == rounded_bytes) return Repeat(*engine, request.bytes, is_named);
    engine->ReleaseUndone();
  }
  return TryAllocateIn(*engine, request, rounded_bytes, is_named);
}

// Under the engine's lock. Not a part of its caller, nor TryFreeFound of its own: the log's steps stay short.
[[gnu::noinline]] policy::Block* CachingAllocator::TryAllocateIn(Engine& engine, const policy::Request& request,
                                                                 std::uint64_t rounded_bytes, bool is_named) {
  Side& side = engine.SideOf(policy::IsSmall(rounded_bytes));
  if (side.lane == nullptr) return nullptr;
  policy::Lane& lane = *side.lane;
  policy::Block* block = heap_.FindIn(lane, rounded_bytes);
  // The sizes that max_split_size singles out have statistics of their own.
  if (block == nullptr || block->size_bytes >= options().max_split_size_bytes) return nullptr;
  if (is_named) engine.pointers.Prefetch(block->address);
  const policy::Heap::PlaceEffect effect = heap_.EffectOf(*block, rounded_bytes, *lane.pool);
  const std::int64_t block_bytes = Signed(effect.block_bytes);
  if (!engine.CountAllocation(side, block_bytes, Signed(request.bytes), effect.splits)) return nullptr;
  block = heap_.CommitAs(lane, block, effect, request.bytes);
  if (is_named) {
    engine.pointers.Insert(block);
    pages_.Enter(block->address, &engine);
  }
  if (logs_) {
    LifoLog::Entry& entry = engine.log.Append([&engine](LifoLog::Entry& oldest) { engine.Count(oldest); });
    entry = {block, block->address, rounded_bytes, block_bytes, effect.splits.blocks, effect.splits.bytes, 0, is_named};
  }
  return block;
}

// Under the engine's lock: a free of the newest allocation, which only steps back.
bool CachingAllocator::TryUndo(Engine& engine, const LifoLog::Entry& newest) {
  if (newest.block->has_recorded_streams) return false;
  Side& side = engine.SideOf(newest.block->is_small);
  side.left[kRequestedBytes] += Signed(newest.block->requested_bytes);
  engine.left[kRequestedBytes] += Signed(newest.block->requested_bytes);
  newest.block->state = policy::BlockState::kFree;
  engine.log.StepBack();
  return true;
}

// Under the engine's lock.
bool CachingAllocator::TryFreeLocked(Engine& engine, policy::Block* block) {
  CheckLive(block, "Free");
  if (block->has_recorded_streams || block->size_bytes >= options().max_split_size_bytes) return false;
  Side& side = engine.SideOf(block->is_small);
  engine.EmptyLog();
  const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*block);
  if (!engine.CountFree(side, Signed(block->size_bytes), Signed(block->requested_bytes), effect.splits)) return false;
  policy::Heap::ReleaseAs(*side.lane, block, effect);
  return true;
}

bool CachingAllocator::TryFree(policy::Block* block) {
  if (is_serial_.load(std::memory_order_acquire)) return false;
  CheckOurs(block, "Free");
  Engine& engine = EngineOf(*block);
  const BiasedLock::Guard guard(engine.lock);
  if (is_serial_.load(std::memory_order_relaxed)) return false;
  const LifoLog::Entry* newest = engine.log.Newest();
  if (newest != nullptr && newest->block == block) return TryUndo(engine, *newest);
  return TryFreeLocked(engine, block);
}

absl::StatusOr<Block*> CachingAllocator::Allocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0) return nullptr;
  if (bytes > policy::kMaxRequestBytes) return TooLarge(bytes);
  const policy::Request request{bytes, stream, pool};
  if (policy::Block* block = TryAllocate(request, NamedBy::kPointer); block != nullptr) [[likely]]
    return block;
  return AllocateInWorld(request, NamedBy::kPointer);
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
  if (is_serial_.load(std::memory_order_acquire)) return false;
  Engine* engine = pages_.Find(address);
  if (engine == nullptr) return false;
  engine->pointers.Prefetch(address);
  const BiasedLock::Guard guard(engine->lock);
  if (is_serial_.load(std::memory_order_relaxed)) return false;
  const LifoLog::Entry* newest = engine->log.Newest();
  if (newest != nullptr && newest->address == address && newest->is_named) return TryUndo(*engine, *newest);
  return TryFreeFound(*engine, address);
}

[[gnu::noinline]] bool CachingAllocator::TryFreeFound(Engine& engine, std::uint64_t address) {
  PointerMap::Found found = engine.pointers.Find(address);
  // A block that the log holds back is in the map and not live.
  if (found.block == nullptr || found.block->state != policy::BlockState::kLive) return false;
  if (engine.log.has_undone()) {
    engine.ReleaseUndone();
    found = engine.pointers.Find(address);
  }
  if (!TryFreeLocked(engine, found.block)) return false;
  engine.pointers.Erase(found);
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
  const policy::Lane& lane = *std::prev(segment)->second->lane;
  return lane.owner == nullptr ? nullptr : static_cast<Engine*>(lane.owner)->pointers.Take(address);
}

// Under the engine's lock, or in the World.
void CachingAllocator::AddRecordedStream(policy::Block* block, Stream stream) {
  absl::InlinedVector<Stream, 2>& streams = EngineOf(*block).recorded_streams[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  block->has_recorded_streams = true;
}

void CachingAllocator::RecordStream(Block* named, Stream stream) noexcept {
  if (named == nullptr) return;
  auto* block = const_cast<policy::Block*>(named);
  if (is_gone_.load(std::memory_order_relaxed)) [[unlikely]]
    StopAtGoneAllocator();
  CheckOurs(block, "RecordStream");
  if (stream == block->segment->lane->stream) return;
  {
    const BiasedLock::Guard guard(EngineOf(*block).lock);
    if (!is_serial_.load(std::memory_order_relaxed)) return AddRecordedStream(block, stream);
  }
  const World world(*this);
  AddRecordedStream(block, stream);
}

}  // namespace ashlar::core
