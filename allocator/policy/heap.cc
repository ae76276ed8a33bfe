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

Heap::Heap(Options options) : options_(std::move(options)), default_pair_(NewPair({})) {
  const auto& divisions = options_.roundup_power2_divisions;
  rounds_to_granules_ = std::all_of(divisions.begin(), divisions.end(), [](std::uint64_t d) { return d == 0; });
}

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
  plan.rounded_bytes = Rounded(request.bytes);
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
  if (lane != nullptr) plan.block = FindIn(*lane, plan.rounded_bytes);
  return plan;
}

// Best fit looks at one candidate only: the first in order that is large enough.
Block* Heap::FindIn(const Lane& lane, std::uint64_t rounded_bytes) const {
  Block* candidate = lane.free.FirstAtLeast(rounded_bytes);
  if (candidate != nullptr && candidate->is_expandable) candidate = SkipByExpandableRules(lane, candidate);
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

bool Heap::ShouldSplit(std::uint64_t rounded_bytes, std::uint64_t block_bytes, const Pool& pool) const {
  const std::uint64_t remaining = block_bytes - rounded_bytes;
  if (pool.pair->no_split) return false;
  if (pool.is_small || options_.expandable_segments) return remaining >= kMinBlockBytes;
  return rounded_bytes < options_.max_split_size_bytes && remaining > kSmallMaxBytes;
}

Heap::PlaceEffect Heap::EffectOf(const Block& block, std::uint64_t rounded_bytes, const Pool& pool) const {
  PlaceEffect out;
  out.cuts = ShouldSplit(rounded_bytes, block.size_bytes, pool);
  out.block_bytes = out.cuts ? rounded_bytes : block.size_bytes;
  if (block.is_expandable) return out;
  const auto taken_bytes = static_cast<std::int64_t>(out.block_bytes);
  const auto rest_bytes = static_cast<std::int64_t>(block.size_bytes - out.block_bytes);
  if (block.IsSplit()) {
    out.splits = {out.cuts ? 0 : -1, -taken_bytes};
  } else if (out.cuts) {
    out.splits = {1, rest_bytes};
  }
  return out;
}

Block* Heap::CommitAs(Lane& lane, Block* block, const PlaceEffect& effect, std::uint64_t request_bytes) {
  lane.free.Erase(block);
  return PlaceAs(lane, block, effect, request_bytes);
}

// A block's own pool decides: an overflow pool serves requests of other pools.
Block* Heap::Place(const Plan& plan, Block* block) {
  Lane& lane = *block->segment->lane;
  return PlaceAs(lane, block, EffectOf(*block, plan.rounded_bytes, *lane.pool), plan.request_bytes);
}

Block* Heap::PlaceAs(Lane& lane, Block* block, const PlaceEffect& effect, std::uint64_t request_bytes) const {
  if (effect.cuts) {
    Block* rest = block;
    block = Split(lane, rest, effect.block_bytes);
    InsertFree(lane, rest);
  }
  lane.inactive_split.Add(effect.splits);
  block->state = BlockState::kLive;
  block->requested_bytes = request_bytes;
  return block;
}

// Cuts the low `low_bytes` off as a block of its own, which is returned; `block` keeps the rest and its rank.
Block* Heap::Split(Lane& lane, Block* block, std::uint64_t low_bytes) const {
  ++lane.cuts;
  Block* low = lane.slabs.New();
  low->address = block->address;
  low->size_bytes = low_bytes;
  low->segment = block->segment;
  low->state = block->state;
  low->is_expandable = block->is_expandable;
  low->is_small = block->is_small;
  // But for the counter of blocks, all blocks of a segment have its rank.
  low->rank = options_.free_order == FreeOrder::kPerBlockCounter ? lane.next_block_rank++ : block->rank;
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

Heap::ReleaseEffect Heap::EffectOfRelease(const Block& block) {
  __builtin_prefetch(block.prev);
  __builtin_prefetch(block.next);
  ReleaseEffect out;
  out.joins_prev = block.prev != nullptr && block.prev->state == BlockState::kFree;
  out.joins_next = block.next != nullptr && block.next->state == BlockState::kFree;
  if (block.is_expandable) return out;
  const Block* low = out.joins_prev ? block.prev : &block;
  const Block* high = out.joins_next ? block.next : &block;
  const bool is_split = low->prev != nullptr || high->next != nullptr;
  // The neighbours' bytes leave the count and come back as part of the merged block, if that still shares a segment.
  out.splits.blocks = (is_split ? 1 : 0) - (out.joins_prev ? 1 : 0) - (out.joins_next ? 1 : 0);
  const std::uint64_t neighbours = (out.joins_prev ? low->size_bytes : 0) + (out.joins_next ? high->size_bytes : 0);
  out.splits.bytes = is_split ? static_cast<std::int64_t>(block.size_bytes) : -static_cast<std::int64_t>(neighbours);
  return out;
}

// The block becomes part of the one before it rather than the other way round: that touches one record less. The
// rank is the freed block's, as if it had stayed.
Block* Heap::ReleaseAs(Lane& lane, Block* block, const ReleaseEffect& effect) {
  lane.joins += static_cast<std::uint64_t>(effect.joins_next) + static_cast<std::uint64_t>(effect.joins_prev);
  if (effect.joins_next) {
    Block* next = block->next;
    lane.free.Erase(next);
    block->size_bytes += next->size_bytes;
    block->next = next->next;
    if (block->next != nullptr) block->next->prev = block;
    lane.slabs.Delete(next);
  }
  if (effect.joins_prev) {
    Block* prev = block->prev;
    lane.free.Erase(prev);
    prev->size_bytes += block->size_bytes;
    prev->rank = block->rank;
    prev->next = block->next;
    if (prev->next != nullptr) prev->next->prev = prev;
    lane.slabs.Delete(block);
    block = prev;
  }
  InsertFree(lane, block);
  lane.inactive_split.Add(effect.splits);
  return block;
}

void Heap::MergeWith(Block* block, Block* other) {
  if (other == nullptr || other->state != block->state) return;
  Lane& lane = *block->segment->lane;
  ++lane.joins;
  if (other->state == BlockState::kFree) {
    lane.free.Erase(other);
  } else {
    lane.unmapped.erase(other->address);
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
  lane.slabs.Delete(other);
}

void Heap::InsertFree(Lane& lane, Block* block) {
  block->state = BlockState::kFree;
  block->freed_at = lane.pool->clock;
  lane.free.Insert(block);
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
  block->is_small = lane.pool->is_small;
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
  segment->first->is_expandable = is_expandable;
  segment->page_bytes = PageBytes(is_small, options_);
  std::vector<Block*> out;
  Block* rest = segment->first;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block* block = i + 1 == blocks.size() ? rest : Split(*segment->lane, rest, blocks[i].size_bytes);
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
    InsertFree(*segment->lane, block);
    if (is_expandable || !block->IsSplit()) continue;
    counts.Add({1, static_cast<std::int64_t>(block->size_bytes)});
  }
  return out;
}

}  // namespace ashlar::policy
