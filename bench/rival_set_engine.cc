#include "bench/rival_set_engine.h"

#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/base/units.h"

namespace ashlar::bench {
namespace {

constexpr std::uint64_t kSetEngineGranule = 512;
constexpr std::uint64_t kSmallMax = kMiB;

std::uint64_t SegmentBytes(std::uint64_t size_bytes) {
  if (size_bytes <= kSmallMax) return 2 * kMiB;
  if (size_bytes < 10 * kMiB) return 20 * kMiB;
  return RoundUp(size_bytes, 2 * kMiB);
}

}  // namespace

bool RivalSetEngine::BySize::operator()(const Block* a, const Block* b) const {
  if (a->stream != b->stream) return a->stream < b->stream;
  if (a->size_bytes != b->size_bytes) return a->size_bytes < b->size_bytes;
  return a->address < b->address;
}

RivalSetEngine::~RivalSetEngine() {
  for (const Pool* pool : {&small_, &large_}) {
    for (Block* block : pool->free) delete block;
  }
  for (Block* block : active_) delete block;
}

void RivalSetEngine::Update(Stats& stats, const Pool& pool, std::int64_t amount) {
  for (const std::size_t i : {std::size_t{0}, std::size_t{pool.is_small ? 1u : 2u}}) {
    Stat& stat = stats[i];
    stat.current += amount;
    stat.peak = std::max(stat.current, stat.peak);
    if (amount > 0) stat.allocated += amount;
    if (amount < 0) stat.freed -= amount;
  }
}

RivalSetEngine::Block* RivalSetEngine::TakeBestFit(Pool& pool, std::uint64_t size_bytes, Stream stream) {
  Block key;
  key.stream = Handle(stream);
  key.size_bytes = size_bytes;
  const auto it = pool.free.lower_bound(&key);
  if (it == pool.free.end() || (*it)->stream != key.stream) return nullptr;
  Block* block = *it;
  pool.free.erase(it);
  return block;
}

RivalSetEngine::Block* RivalSetEngine::NewSegment(Pool& pool, std::uint64_t size_bytes, Stream stream) {
  auto* block = new Block;
  block->stream = Handle(stream);
  block->size_bytes = SegmentBytes(size_bytes);
  block->address = next_segment_;
  block->pool = &pool;
  next_segment_ += block->size_bytes;
  Update(segment_, pool, 1);
  Update(reserved_bytes_, pool, Signed(block->size_bytes));
  return block;
}

bool RivalSetEngine::ShouldSplit(const Block& block, std::uint64_t size_bytes) {
  const std::uint64_t rest_bytes = block.size_bytes - size_bytes;
  return block.pool->is_small ? rest_bytes >= kSetEngineGranule : rest_bytes > kSmallMax;
}

// The low part as a new block; the rest goes back to the free set.
RivalSetEngine::Block* RivalSetEngine::Split(Block* rest, std::uint64_t size_bytes) {
  const bool was_split = rest->IsSplit();
  auto* block = new Block(*rest);
  block->size_bytes = size_bytes;
  block->next = rest;
  if (block->prev != nullptr) block->prev->next = block;
  rest->prev = block;
  rest->address += size_bytes;
  rest->size_bytes -= size_bytes;
  ASHLAR_CHECK(rest->pool->free.insert(rest).second);
  if (was_split) {
    Update(inactive_split_bytes_, *rest->pool, -Signed(size_bytes));
  } else {
    Update(inactive_split_bytes_, *rest->pool, Signed(rest->size_bytes));
    Update(inactive_split_, *rest->pool, 1);
  }
  return block;
}

std::uint64_t RivalSetEngine::Allocate(std::uint64_t bytes, Stream stream) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  const std::uint64_t size_bytes = std::max(RoundUp(bytes, kSetEngineGranule), kSetEngineGranule);
  Pool& pool = size_bytes <= kSmallMax ? small_ : large_;
  Block* block = TakeBestFit(pool, size_bytes, stream);
  if (block == nullptr) block = NewSegment(pool, size_bytes, stream);
  if (ShouldSplit(*block, size_bytes)) {
    block = Split(block, size_bytes);
  } else if (block->IsSplit()) {
    Update(inactive_split_bytes_, pool, -Signed(block->size_bytes));
    Update(inactive_split_, pool, -1);
  }
  block->is_allocated = true;
  block->requested_bytes = bytes;
  active_.insert(block);
  Update(allocation_, pool, 1);
  Update(allocated_bytes_, pool, Signed(block->size_bytes));
  Update(active_count_, pool, 1);
  Update(active_bytes_, pool, Signed(block->size_bytes));
  Update(requested_bytes_, pool, Signed(bytes));
  Shard& shard = ShardOf(block->address);
  const std::lock_guard<std::mutex> shard_lock(shard.mutex);
  shard.blocks[block->address] = block;
  return block->address;
}

// Takes a free neighbour into `block`; its size, or 0 when there was none to take.
std::uint64_t RivalSetEngine::TryMerge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || neighbour->is_allocated) return 0;
  const std::uint64_t taken_bytes = neighbour->size_bytes;
  ASHLAR_CHECK_EQ(block->pool->free.erase(neighbour), std::size_t{1});
  if (block->prev == neighbour) {
    block->address = neighbour->address;
    block->prev = neighbour->prev;
    if (block->prev != nullptr) block->prev->next = block;
  } else {
    block->next = neighbour->next;
    if (block->next != nullptr) block->next->prev = block;
  }
  block->size_bytes += taken_bytes;
  delete neighbour;
  return taken_bytes;
}

void RivalSetEngine::Free(std::uint64_t address) {
  Block* block = nullptr;
  {
    Shard& shard = ShardOf(address);
    const std::lock_guard<std::mutex> shard_lock(shard.mutex);
    const auto it = shard.blocks.find(address);
    ASHLAR_CHECK(it != shard.blocks.end());
    block = it->second;
    shard.blocks.erase(it);
  }
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  Pool& pool = *block->pool;
  const std::uint64_t size_bytes = block->size_bytes;
  block->is_allocated = false;
  Update(allocation_, pool, -1);
  Update(allocated_bytes_, pool, -Signed(size_bytes));
  std::int64_t split_count = 0;
  std::int64_t split_bytes = 0;
  for (Block* neighbour : {block->prev, block->next}) {
    const std::uint64_t taken_bytes = TryMerge(block, neighbour);
    split_count -= taken_bytes > 0;
    split_bytes -= Signed(taken_bytes);
  }
  active_.erase(block);
  ASHLAR_CHECK(pool.free.insert(block).second);
  if (block->IsSplit()) {
    ++split_count;
    split_bytes += Signed(block->size_bytes);
  }
  Update(inactive_split_, pool, split_count);
  Update(inactive_split_bytes_, pool, split_bytes);
  Update(active_count_, pool, -1);
  Update(active_bytes_, pool, -Signed(size_bytes));
  Update(requested_bytes_, pool, -Signed(block->requested_bytes));
}

}  // namespace ashlar::bench
