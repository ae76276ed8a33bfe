#include "allocator/policy/heap.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"

namespace ashlar::policy {

namespace {

std::unique_ptr<PoolPair> NewPair(PoolId id) {
  auto pair = std::make_unique<PoolPair>();
  pair->small.is_small = true;
  for (Pool* pool : {&pair->small, &pair->large}) {
    pool->id = id;
    pool->pair = pair.get();
  }
  return pair;
}

}  // namespace

Heap::Heap(Options options) : options_(std::move(options)), default_pair_(NewPair({})) {}

Heap::~Heap() = default;

PoolPair* Heap::FindPair(PoolId id) const {
  if (id.IsDefault()) return default_pair_.get();
  const auto it = private_pairs_.find(id);
  return it == private_pairs_.end() ? nullptr : it->second.get();
}

PoolPair& Heap::Pair(PoolId id) {
  if (PoolPair* pair = FindPair(id); pair != nullptr) return *pair;
  return *private_pairs_.emplace(id, NewPair(id)).first->second;
}

Lane* Heap::FindLane(const Pool& pool, Stream stream) const {
  for (const std::unique_ptr<Lane>& lane : pool.lanes) {
    if (lane->stream == stream) return lane.get();
  }
  return nullptr;
}

Lane& Heap::LaneOf(Pool& pool, Stream stream) {
  if (Lane* lane = FindLane(pool, stream); lane != nullptr) return *lane;
  const auto at = std::partition_point(pool.lanes.begin(), pool.lanes.end(),
                                       [stream](const auto& lane) { return Handle(lane->stream) < Handle(stream); });
  const auto lane = pool.lanes.insert(at, std::make_unique<Lane>());
  (*lane)->stream = stream;
  (*lane)->pool = &pool;
  return **lane;
}

Plan Heap::SizesOf(const Request& request) const {
  Plan plan;
  plan.request_bytes = request.bytes;
  plan.rounded_bytes = RoundedBytes(request.bytes, options_);
  plan.segment_bytes = SegmentBytes(plan.rounded_bytes, options_);
  plan.stream = request.stream;
  return plan;
}

Plan Heap::MakePlan(const Request& request) const {
  Plan plan = SizesOf(request);
  plan.pair = FindPair(request.pool);
  if (plan.pair == nullptr) return plan;
  plan.pool = IsSmall(plan.rounded_bytes) ? &plan.pair->small : &plan.pair->large;
  const Lane* lane = FindLane(*plan.pool, request.stream);
  if (lane != nullptr) plan.block = FindFree(*lane, plan.rounded_bytes);
  return plan;
}

void Heap::PlanIn(Lane& lane, Plan& plan) const {
  plan.pool = lane.pool;
  plan.pair = lane.pool->pair;
  plan.block = FindFree(lane, plan.rounded_bytes);
}

// Best fit looks at one candidate only: the first in order that is large enough.
Block* Heap::FindFree(const Lane& lane, std::uint64_t rounded_bytes) const {
  Block* candidate = lane.free.FirstAtLeast(rounded_bytes);
  if (candidate != nullptr && candidate->segment->is_expandable) candidate = SkipByExpandableRules(lane, candidate);
  if (candidate == nullptr || !MayServe(rounded_bytes, candidate->size_bytes)) return nullptr;
  return candidate;
}

bool Heap::MayServe(std::uint64_t rounded_bytes, std::uint64_t block_bytes) const {
  if (block_bytes < rounded_bytes) return false;
  const std::uint64_t max_split = options_.max_split_size_bytes;
  if (rounded_bytes < max_split) return block_bytes < max_split || max_split == kUnlimited;
  return block_bytes - rounded_bytes < options_.max_non_split_rounding_bytes;
}

Block* Heap::FindInOverflow(const Plan& plan, PoolPair& pair) const {
  const Pool& pool = plan.pool->is_small ? pair.small : pair.large;
  const Lane* lane = FindLane(pool, plan.stream);
  if (lane == nullptr) return nullptr;
  Block* candidate = lane->free.FirstAtLeast(plan.rounded_bytes);
  while (candidate != nullptr && candidate->segment->is_expandable) candidate = lane->free.Next(candidate);
  if (candidate == nullptr || !MayServe(plan.rounded_bytes, candidate->size_bytes)) return nullptr;
  return candidate;
}

Block* Heap::Commit(const Plan& plan) {
  TakeFree(plan.block);
  return Place(plan, plan.block);
}

void Heap::TakeFree(Block* block) { block->segment->lane->free.Erase(block); }

bool Heap::ShouldSplit(const Plan& plan, const Block& block) const {
  const std::uint64_t remaining = block.size_bytes - plan.rounded_bytes;
  const Pool& pool = *block.segment->lane->pool;  // of the block: an overflow pool serves requests of other pools
  if (pool.pair->no_split) return false;
  if (pool.is_small || options_.expandable_segments) return remaining >= kMinBlockBytes;
  return plan.rounded_bytes < options_.max_split_size_bytes && remaining > kSmallMaxBytes;
}

Heap::CommitEffect Heap::EffectOfCommit(const Plan& plan) const {
  const Block& block = *plan.block;
  const bool splits = ShouldSplit(plan, block);
  CommitEffect out{splits ? plan.rounded_bytes : block.size_bytes, {}};
  if (block.segment->is_expandable) return out;
  const auto taken_bytes = static_cast<std::int64_t>(out.block_bytes);
  const auto rest_bytes = static_cast<std::int64_t>(block.size_bytes - out.block_bytes);
  if (block.IsSplit()) {
    out.splits = {splits ? 0 : -1, -taken_bytes};
  } else if (splits) {
    out.splits = {1, rest_bytes};
  }
  return out;
}

Block* Heap::Place(const Plan& plan, Block* block) {
  SplitCounts& counts = block->segment->lane->inactive_split;
  const bool was_split = block->IsSplit();
  const bool counted = !block->segment->is_expandable;
  if (ShouldSplit(plan, *block)) {
    Block* rest = block;
    block = Split(rest, plan.rounded_bytes);
    InsertFree(rest);
    if (counted && was_split) counts.bytes -= static_cast<std::int64_t>(block->size_bytes);
    if (counted && !was_split) {
      counts.bytes += static_cast<std::int64_t>(rest->size_bytes);
      ++counts.blocks;
    }
  } else if (counted && was_split) {
    counts.bytes -= static_cast<std::int64_t>(block->size_bytes);
    --counts.blocks;
  }
  block->state = BlockState::kLive;
  block->requested_bytes = plan.request_bytes;
  return block;
}

// Cuts the low `low_bytes` off as a block of its own, which is returned; `block` keeps the rest and its rank.
Block* Heap::Split(Block* block, std::uint64_t low_bytes) {
  Block* low = block->segment->lane->slabs.New();
  low->address = block->address;
  low->size_bytes = low_bytes;
  low->segment = block->segment;
  low->state = block->state;
  low->rank = RankForNewBlock(*block->segment);
  low->prev = block->prev;
  low->next = block;
  if (low->prev != nullptr) {
    low->prev->next = low;
  } else {
    block->segment->first = low;
  }
  block->prev = low;
  block->address += low_bytes;
  block->size_bytes -= low_bytes;
  return low;
}

SplitCounts Heap::EffectOfRelease(const Block& block) {
  SplitCounts out;
  if (block.segment->is_expandable) return out;
  const bool joins_prev = block.prev != nullptr && block.prev->state == BlockState::kFree;
  const bool joins_next = block.next != nullptr && block.next->state == BlockState::kFree;
  const Block* low = joins_prev ? block.prev : &block;
  const Block* high = joins_next ? block.next : &block;
  const bool is_split = low->prev != nullptr || high->next != nullptr;
  // The neighbours' bytes leave the count and come back as part of the merged block, if that still shares a segment.
  out.blocks = (is_split ? 1 : 0) - (joins_prev ? 1 : 0) - (joins_next ? 1 : 0);
  const std::uint64_t neighbours = (joins_prev ? low->size_bytes : 0) + (joins_next ? high->size_bytes : 0);
  out.bytes = is_split ? static_cast<std::int64_t>(block.size_bytes) : -static_cast<std::int64_t>(neighbours);
  return out;
}

Block* Heap::Release(Block* block) {
  SplitCounts& counts = block->segment->lane->inactive_split;
  const bool counted = !block->segment->is_expandable;
  block->state = BlockState::kFree;
  for (Block* neighbour : {block->prev, block->next}) {
    const std::uint64_t neighbour_bytes = neighbour == nullptr ? 0 : neighbour->size_bytes;
    if (MergeWith(block, neighbour) && counted) {
      --counts.blocks;
      counts.bytes -= static_cast<std::int64_t>(neighbour_bytes);
    }
  }
  InsertFree(block);
  if (counted && block->IsSplit()) {
    ++counts.blocks;
    counts.bytes += static_cast<std::int64_t>(block->size_bytes);
  }
  return block;
}

bool Heap::MergeWith(Block* block, Block* other) {
  if (other == nullptr || other->state != block->state) return false;
  if (other->state == BlockState::kFree) {
    TakeFree(other);
  } else {
    block->segment->lane->unmapped.erase(other->address);
  }
  if (block->prev == other) {
    block->address = other->address;
    block->prev = other->prev;
    if (block->prev != nullptr) {
      block->prev->next = block;
    } else {
      block->segment->first = block;
    }
  } else {
    block->next = other->next;
    if (block->next != nullptr) block->next->prev = block;
  }
  block->size_bytes += other->size_bytes;
  block->segment->lane->slabs.Delete(other);
  return true;
}

void Heap::InsertFree(Block* block) {
  block->state = BlockState::kFree;
  block->freed_at = block->segment->lane->pool->clock;
  block->segment->lane->free.Insert(block);
}

std::uint64_t Heap::RankForNewBlock(const Segment& segment) const {
  switch (options_.free_order) {
    case FreeOrder::kAddress:
      return 0;
    case FreeOrder::kPerBlockCounter:
      return segment.lane->next_block_rank++;
    case FreeOrder::kPerSegmentCounter:
      return segment.rank;
  }
  return 0;
}

Segment* Heap::NewSegment(Lane& lane, std::uint64_t address, std::uint64_t size_bytes) {
  auto owned = std::make_unique<Segment>();
  Segment* segment = owned.get();
  segment->address = address;
  segment->size_bytes = size_bytes;
  segment->rank = next_segment_rank_++;
  segment->lane = &lane;
  ASHLAR_CHECK(segments_.emplace(address, std::move(owned)).second);
  ++lane.pool->segment_count;
  Block* block = lane.slabs.New();
  block->address = address;
  block->size_bytes = size_bytes;
  block->segment = segment;
  block->rank = RankForNewBlock(*segment);
  segment->first = block;
  return segment;
}

Block* Heap::AddSegment(const Plan& plan, std::uint64_t address, std::uint64_t size_bytes) {
  reserved_bytes_ += size_bytes;
  return NewSegment(LaneOf(*plan.pool, plan.stream), address, size_bytes)->first;
}

void Heap::RemoveSegment(Block* whole) {
  Segment* segment = whole->segment;
  ASHLAR_CHECK(!whole->IsSplit() && whole->state == BlockState::kFree && !segment->is_expandable);
  TakeFree(whole);
  reserved_bytes_ -= segment->size_bytes;
  --segment->lane->pool->segment_count;
  segment->lane->slabs.Delete(whole);
  segments_.erase(segment->address);
}

std::vector<Block*> Heap::Restore(const Request& lane_of, bool is_small, bool is_expandable, std::uint64_t address,
                                  const std::vector<KnownBlock>& blocks) {
  PoolPair& pair = Pair(lane_of.pool);
  std::uint64_t total_bytes = 0;
  for (const KnownBlock& known : blocks) total_bytes += known.size_bytes;
  Segment* segment = NewSegment(LaneOf(is_small ? pair.small : pair.large, lane_of.stream), address, total_bytes);
  segment->is_expandable = is_expandable;
  segment->page_bytes = PageBytes(is_small, options_);
  std::vector<Block*> out;
  Block* rest = segment->first;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block* block = i + 1 == blocks.size() ? rest : Split(rest, blocks[i].size_bytes);
    block->state = blocks[i].state;
    block->requested_bytes = blocks[i].requested_bytes;
    out.push_back(block);
  }
  SplitCounts& counts = segment->lane->inactive_split;
  for (Block* block : out) {
    if (block->state == BlockState::kUnmapped) {
      segment->lane->unmapped.emplace(block->address, block);
      continue;
    }
    reserved_bytes_ += block->size_bytes;
    if (block->state != BlockState::kFree) continue;
    InsertFree(block);
    if (is_expandable || !block->IsSplit()) continue;
    ++counts.blocks;
    counts.bytes += static_cast<std::int64_t>(block->size_bytes);
  }
  return out;
}

}  // namespace ashlar::policy
