// Requests that one engine can serve by itself, and the doors through which all others reach the World.
#include <algorithm>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/world.h"

namespace ashlar::core {
namespace {

std::int64_t Signed(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

absl::Status TooLarge(std::uint64_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("out of memory: ", bytes, " bytes are more than any device has"));
}

}  // namespace

Block* CachingAllocator::TryAllocate(const policy::Request& request, NamedBy name) {
  if (is_serial_.load(std::memory_order_acquire) || pending_count_.load(std::memory_order_acquire) != 0) return nullptr;
  policy::Plan plan = heap_.SizesOf(request);
  Engine* engine = engines_.Find({request.pool, request.stream, policy::IsSmall(plan.rounded_bytes)});
  if (engine == nullptr) return nullptr;
  const std::lock_guard<SpinLock> lock(engine->lock);
  if (is_serial_.load(std::memory_order_relaxed) || engine->lane == nullptr) return nullptr;
  heap_.PlanIn(*engine->lane, plan);
  // The sizes that max_split_size singles out have statistics of their own.
  if (plan.block == nullptr || plan.block->size_bytes >= options().max_split_size_bytes) return nullptr;
  const policy::Heap::CommitEffect effect = heap_.EffectOfCommit(plan);
  EngineStats& stats = engine->stats;
  if (!stats.blocks.HasRoom(1) || !stats.block_bytes.HasRoom(Signed(effect.block_bytes)) ||
      !stats.requested_bytes.HasRoom(Signed(plan.request_bytes)) || !stats.split_blocks.HasRoom(effect.splits.blocks) ||
      !stats.split_bytes.HasRoom(effect.splits.bytes)) {
    return nullptr;
  }
  Block* block = heap_.Commit(plan);
  stats.blocks.Add(1);
  stats.block_bytes.Add(Signed(effect.block_bytes));
  stats.requested_bytes.Add(Signed(plan.request_bytes));
  stats.split_blocks.Add(effect.splits.blocks);
  stats.split_bytes.Add(effect.splits.bytes);
  if (name == NamedBy::kAddress) {
    engine->pointers.Insert(block);
    pages_.Enter(block->address, engine);
  }
  return block;
}

// Under the engine's lock. A free raises nothing but the counts of inactive split blocks.
bool CachingAllocator::TryFreeLocked(Engine& engine, Block* block) {
  ASHLAR_CHECK(block->state == policy::BlockState::kLive);
  if (block->has_recorded_streams || block->size_bytes >= options().max_split_size_bytes) return false;
  EngineStats& stats = engine.stats;
  const policy::SplitCounts splits = policy::Heap::EffectOfRelease(*block);
  if (!stats.split_blocks.HasRoom(splits.blocks) || !stats.split_bytes.HasRoom(splits.bytes)) return false;
  stats.blocks.Add(-1);
  stats.block_bytes.Add(-Signed(block->size_bytes));
  stats.requested_bytes.Add(-Signed(block->requested_bytes));
  stats.split_blocks.Add(splits.blocks);
  stats.split_bytes.Add(splits.bytes);
  heap_.Release(block);
  return true;
}

bool CachingAllocator::TryFree(Block* block) {
  if (is_serial_.load(std::memory_order_acquire)) return false;
  Engine& engine = EngineOf(*block);
  const std::lock_guard<SpinLock> lock(engine.lock);
  return !is_serial_.load(std::memory_order_relaxed) && TryFreeLocked(engine, block);
}

absl::StatusOr<Block*> CachingAllocator::Allocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0) return nullptr;
  if (bytes > policy::kMaxRequestBytes) return TooLarge(bytes);
  const policy::Request request{bytes, stream, pool};
  if (Block* block = TryAllocate(request, NamedBy::kPointer); block != nullptr) [[likely]]
    return block;
  return AllocateInWorld(request, NamedBy::kPointer);
}

void CachingAllocator::Free(Block* block) noexcept {
  if (block == nullptr) return;
  if (TryFree(block)) [[likely]]
    return;
  const World world(*this);
  FreeInWorld(block);
}

absl::StatusOr<std::uint64_t> CachingAllocator::AllocateAddress(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (bytes == 0) return std::uint64_t{0};
  if (bytes > policy::kMaxRequestBytes) return TooLarge(bytes);
  const policy::Request request{bytes, stream, pool};
  if (Block* block = TryAllocate(request, NamedBy::kAddress); block != nullptr) [[likely]]
    return block->address;
  const absl::StatusOr<Block*> block = AllocateInWorld(request, NamedBy::kAddress);
  if (!block.ok()) return block.status();
  return (*block)->address;
}

bool CachingAllocator::FreeAddress(std::uint64_t address) noexcept {
  Engine* engine = is_serial_.load(std::memory_order_acquire) ? nullptr : pages_.Find(address);
  if (engine != nullptr) {
    const std::lock_guard<SpinLock> lock(engine->lock);
    if (!is_serial_.load(std::memory_order_relaxed)) {
      Block* block = engine->pointers.Find(address);
      if (block != nullptr && TryFreeLocked(*engine, block)) {
        engine->pointers.Take(address);
        return true;
      }
    }
  }
  const World world(*this);
  Block* block = TakeByAddress(address);
  if (block == nullptr) return false;
  FreeInWorld(block);
  return true;
}

// The segments know what the directory only remembers.
Block* CachingAllocator::TakeByAddress(std::uint64_t address) {
  auto segment = heap_.segments().upper_bound(address);
  if (segment == heap_.segments().begin()) return nullptr;
  const policy::Lane& lane = *std::prev(segment)->second->lane;
  return lane.owner == nullptr ? nullptr : static_cast<Engine*>(lane.owner)->pointers.Take(address);
}

// Under the engine's lock, or in the World.
void CachingAllocator::AddRecordedStream(Block* block, Stream stream) {
  absl::InlinedVector<Stream, 2>& streams = EngineOf(*block).recorded_streams[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  block->has_recorded_streams = true;
}

void CachingAllocator::RecordStream(Block* block, Stream stream) noexcept {
  if (stream == block->segment->lane->stream) return;
  {
    const std::lock_guard<SpinLock> lock(EngineOf(*block).lock);
    if (!is_serial_.load(std::memory_order_relaxed)) return AddRecordedStream(block, stream);
  }
  const World world(*this);
  AddRecordedStream(block, stream);
}

}  // namespace ashlar::core
