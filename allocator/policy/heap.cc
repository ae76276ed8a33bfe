#include "allocator/policy/heap.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/policy/strategy.h"

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

LaneCosts CostsOf(const Lane& lane) { return {lane.free.probes(), lane.cuts, lane.joins}; }

}  // namespace

Heap::Heap(Options options) : strategy_(StrategyOf(options.policy)), default_pair_(NewPair({})) {
  SetOptions(std::move(options));
}

void Heap::SetOptions(Options options) {
  options_ = std::move(options);
  const auto& divisions = options_.roundup_power2_divisions;
  rounds_to_granules_ = std::all_of(divisions.begin(), divisions.end(), [](std::uint64_t d) { return d == 0; });
}

Heap::~Heap() = default;

PoolPair* Heap::FindPair(PoolId id) {
  if (id.IsDefault()) return default_pair_.get();
  const auto it = private_pairs_.find(id);
  return it == private_pairs_.end() ? nullptr : it->second.get();
}

const PoolPair* Heap::FindPair(PoolId id) const {
  if (id.IsDefault()) return default_pair_.get();
  const auto it = private_pairs_.find(id);
  return it == private_pairs_.end() ? nullptr : it->second.get();
}

PoolPair& Heap::Pair(PoolId id) {
  if (PoolPair* pair = FindPair(id); pair != nullptr) return *pair;
  return *private_pairs_.emplace(id, NewPair(id)).first->second;
}

// The plan names a pool that it may only read.
Pool& Heap::PoolOf(const Decision& decision) {
  PoolPair& pair = Pair(decision.pool->id);
  return decision.pool->is_small ? pair.small : pair.large;
}

const Lane* Heap::FindLane(const Pool& pool, Stream stream) {
  const auto it = pool.lanes.find(Handle(stream));
  return it == pool.lanes.end() ? nullptr : &it->second;
}

Lane& Heap::LaneOf(Pool& pool, Stream stream) {
  constexpr auto kRanks = [](FreeOrder order) {
    if (order == FreeOrder::kAddress) return FreeIndex::Ranks::kZero;
    return order == FreeOrder::kPerSegmentCounter ? FreeIndex::Ranks::kOfSegments : FreeIndex::Ranks::kAny;
  };
  const auto ranks = kRanks(options_.free_order);
  const auto [at, is_new] = pool.lanes.try_emplace(Handle(stream), stream, &pool, ranks);
  if (is_new && !spare_slabs_.empty()) {
    at->second.slabs = std::move(spare_slabs_.back());
    spare_slabs_.pop_back();
  }
  return at->second;
}

void Heap::RemoveLane(Lane& lane) {
  ASHLAR_CHECK_EQ(lane.segment_count, std::uint64_t{0});
  removed_costs_.Add(CostsOf(lane));
  spare_slabs_.push_back(std::move(lane.slabs));
  lane.pool->lanes.erase(Handle(lane.stream));
}

LaneCosts Heap::Costs() const {
  LaneCosts out = removed_costs_;
  ForEachPool([&out](const Pool& pool) {
    for (const auto& [stream, lane] : pool.lanes) out.Add(CostsOf(lane));
  });
  return out;
}

Decision Heap::SizesOf(const Request& request) const {
  Decision decision;
  decision.request_bytes = request.bytes;
  decision.rounded_bytes = Rounded(request.bytes);
  decision.segment_bytes = SegmentBytes(decision.rounded_bytes, options_);
  decision.stream = request.stream;
  return decision;
}

Decision Heap::Decide(const Request& request) const {
  Decision decision = SizesOf(request);
  decision.pair = FindPair(request.pool);
  if (decision.pair == nullptr) return decision;
  decision.pool = IsSmall(decision.rounded_bytes) ? &decision.pair->small : &decision.pair->large;
  const Lane* lane = FindLane(*decision.pool, request.stream);
  if (lane != nullptr) decision.block = FindIn(*lane, decision.rounded_bytes);
  return decision;
}

bool Heap::MayServe(std::uint64_t rounded_bytes, std::uint64_t block_bytes) const {
  return MayServeBy(options_, rounded_bytes, block_bytes);
}

Block* Heap::FindInOverflow(const Decision& decision, const PoolPair& pair) const {
  const Pool& pool = decision.pool->is_small ? pair.small : pair.large;
  const Lane* lane = FindLane(pool, decision.stream);
  if (lane == nullptr) return nullptr;
  Block* candidate = lane->free.FirstAtLeast(decision.rounded_bytes);
  const bool takes_pages = strategy_.traits().shares_pages;
  while (!takes_pages && candidate != nullptr && candidate->is_expandable) candidate = lane->free.Next(candidate);
  if (candidate == nullptr || !MayServe(decision.rounded_bytes, candidate->size_bytes)) return nullptr;
  return candidate;
}

void Heap::TakeFree(Block* block) {
  block->segment->lane->free.Erase(block);
  TellNeighbours(*block, false);
}

Block* Heap::Commit(const Decision& decision) {
  TakeFree(decision.block);
  return Place(decision, decision.block);
}

// A block's own pool decides: an overflow pool serves requests of other pools.
Block* Heap::Place(const Decision& decision, Block* block) {
  Lane& lane = *block->segment->lane;
  Block* placed = PlaceAs(lane, block, EffectOf(*block, decision.rounded_bytes, *lane.pool), decision.request_bytes);
  // What was cut off is free again.
  if (placed != block && block->next != nullptr) block->next->prev_is_free = true;
  return placed;
}

Block* Heap::Release(Block* block) { return ReleaseAs(*block->segment->lane, block, EffectOfRelease(*block)); }

void Heap::MergeWith(Block* block, Block* other) {
  if (other == nullptr || other->state != block->state) return;
  Lane& lane = *block->segment->lane;
  ++lane.joins;
  if (other->state == BlockUse::kFree) {
    lane.free.Erase(other);
  } else {
    lane.unmapped.erase(other->address);
  }
  if (block->prev == other) {
    block->address = other->address;
    block->prev = other->prev;
    block->prev_is_free = other->prev_is_free;
    if (block->prev != nullptr) {
      block->prev->next = block;
    } else {
      block->segment->first = block;
    }
  } else {
    block->next = other->next;
    block->next_is_free = other->next_is_free;
    if (block->next != nullptr) block->next->prev = block;
  }
  TellNeighbours(*block, false);
  block->size_bytes += other->size_bytes;
  lane.slabs.Delete(other);
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
  ++lane.segment_count;
  Block* block = lane.slabs.New();
  block->address = address;
  block->size_bytes = size_bytes;
  block->segment = segment;
  block->is_small = lane.pool->is_small;
  block->rank = RankForNewBlock(*segment);
  segment->first = block;
  return segment;
}

Block* Heap::AddSegment(const Decision& decision, std::uint64_t address, std::uint64_t size_bytes) {
  reserved_bytes_ += size_bytes;
  return NewSegment(LaneOf(PoolOf(decision), decision.stream), address, size_bytes)->first;
}

void Heap::RemoveSegment(Block* whole) {
  Segment* segment = whole->segment;
  ASHLAR_CHECK(!whole->IsSplit() && whole->state == BlockUse::kFree && !segment->is_expandable);
  TakeFree(whole);
  reserved_bytes_ -= segment->size_bytes;
  ForgetSegment(whole);
}

void Heap::ForgetSegment(Block* whole) {
  const Segment& segment = *whole->segment;
  --segment.lane->pool->segment_count;
  --segment.lane->segment_count;
  segment.lane->slabs.Delete(whole);
  segments_.erase(segment.address);
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
    if (block->state == BlockUse::kUnmapped) {
      segment->lane->unmapped.emplace(block->address, block);
      continue;
    }
    reserved_bytes_ += block->size_bytes;
    if (block->state != BlockUse::kFree) continue;
    InsertFree(*segment->lane, block);
    if (is_expandable || !block->IsSplit()) continue;
    counts.Add({1, static_cast<std::int64_t>(block->size_bytes)});
  }
  return out;
}

// Placement at an address that a plan gives, anywhere in a free block:
//
//   before   |           free            |
//   after    | free |  live   |   free   |       either part may be missing

namespace {

// What a free block of this kind adds to the counts of inactive split blocks.
SplitCounts CountsOf(const Block& block) {
  if (block.is_expandable || !block.IsSplit()) return {};
  return {1, static_cast<std::int64_t>(block.size_bytes)};
}

}  // namespace

Block* Heap::FindFreeAt(const Segment& segment, Block* below, const AddressRange& range) {
  for (Block* block = below != nullptr ? below : segment.first; block != nullptr; block = block->next) {
    if (block->End() <= range.address) continue;
    const bool holds = block->address <= range.address && block->End() >= range.End();
    return holds && block->state == BlockUse::kFree ? block : nullptr;
  }
  return nullptr;
}

void Heap::OfferFree(Block* block) { InsertFree(*block->segment->lane, block); }

Block* Heap::PlaceAt(const Decision& decision, Block* block) {
  Lane& lane = *block->segment->lane;
  ASHLAR_CHECK(block->address <= decision.place_at && decision.place_at + decision.rounded_bytes <= block->End());
  SplitCounts counts;
  counts = counts.Minus(CountsOf(*block));
  if (const std::uint64_t below = decision.place_at - block->address; below > 0) {
    Block* low = Split(lane, block, below);
    InsertFree(lane, low);
    counts.Add(CountsOf(*low));
  }
  if (block->size_bytes > decision.rounded_bytes) {
    Block* high = block;
    block = Split(lane, high, decision.rounded_bytes);
    InsertFree(lane, high);
    counts.Add(CountsOf(*high));
  }
  lane.inactive_split.Add(counts);
  block->state = BlockUse::kLive;
  block->requested_bytes = decision.request_bytes;
  return block;
}

// Where a request could be served that its lane's free blocks do not serve: other lanes, and blocks that still wait.

namespace {

bool IsFree(const Block* block) { return block != nullptr && block->state == BlockUse::kFree; }
bool IsIdle(const Block* block) { return IsFree(block) || (block != nullptr && block->state == BlockUse::kPending); }

// Neighbours that are free or wait, as few from `first` on as are large enough.
struct Run {
  Block* first = nullptr;
  Block* last = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t events = std::numeric_limits<std::uint64_t>::max();

  // Of the free block that they become.
  std::uint64_t MergedBytes() const {
    const std::uint64_t before = IsFree(first->prev) ? first->prev->size_bytes : 0;
    return bytes + before + (IsFree(last->next) ? last->next->size_bytes : 0);
  }
};

// Calls `visit(run)` for the run from each block of the segment that has one; linear in its blocks.
template <typename Visit>
void ForEachRun(const Segment& segment, std::uint64_t wanted_bytes, Visit visit) {
  Run run{nullptr, nullptr, 0, 0};
  Block* end = segment.first;
  for (run.first = segment.first; run.first != nullptr; run.first = run.first->next) {
    for (; run.bytes < wanted_bytes && IsIdle(end); end = end->next) {
      run.last = end;
      run.bytes += end->size_bytes;
      run.events += end->pending_events;
    }
    if (run.bytes >= wanted_bytes) visit(run);
    if (end == run.first) {  // in use
      end = end->next;
      continue;
    }
    run.bytes -= run.first->size_bytes;
    run.events -= run.first->pending_events;
  }
}

}  // namespace

Block* Heap::FindInOtherLane(const Decision& decision) const {
  Block* best = nullptr;
  for (const auto& [stream, lane] : decision.pool->lanes) {
    if (lane.stream == decision.stream) continue;
    Block* candidate = FindIn(lane, decision.rounded_bytes);
    if (candidate != nullptr && (best == nullptr || candidate->size_bytes < best->size_bytes)) best = candidate;
  }
  return best;
}

std::vector<Block*> Heap::FewestPending(const Decision& decision) const {
  Run best;
  for (const auto& [address, segment] : segments_) {
    if (segment->lane->pool != decision.pool || segment->lane->stream != decision.stream) continue;
    ForEachRun(*segment, decision.rounded_bytes, [&](const Run& run) {
      const bool is_room = run.events > 0 && MayServe(decision.rounded_bytes, run.MergedBytes());
      if (is_room && run.events < best.events) best = run;
    });
  }
  std::vector<Block*> out;
  if (best.first == nullptr) return out;
  for (Block* block = best.first; block != best.last->next; block = block->next) {
    if (block->state == BlockUse::kPending) out.push_back(block);
  }
  return out;
}

// What the heap gives back: garbage collection, oversize release, whole-free segments.

namespace {

template <typename Visit>
void ForEachFree(const Pool& pool, Visit visit) {
  for (const auto& [stream, lane] : pool.lanes) {
    for (Block* block = lane.free.First(); block != nullptr; block = lane.free.Next(block)) visit(block);
  }
}

struct Aged {
  Block* block;
  std::uint64_t age;
  bool taken = false;
};

}  // namespace

bool Heap::IsWholeFree(const Block& block) const {
  if (block.segment->is_expandable || block.IsSplit()) return false;
  return registered_.empty() || !registered_.Touches({block.address, block.size_bytes});
}

std::vector<Block*> Heap::WholeFree(const Pool& pool) const {
  std::vector<Block*> out;
  ForEachFree(pool, [&](Block* block) {
    if (IsWholeFree(*block)) out.push_back(block);
  });
  return out;
}

std::vector<Block*> Heap::FreeExpandable(const Pool& pool) {
  std::vector<Block*> out;
  ForEachFree(pool, [&out](Block* block) {
    if (block->segment->is_expandable) out.push_back(block);
  });
  return out;
}

std::vector<Block*> Heap::GarbageVictims(std::uint64_t target_bytes) const {
  const Pool& pool = default_pair_->large;
  std::vector<Aged> unsplit;
  std::uint64_t total_age = 0;
  ForEachFree(pool, [&](Block* block) {
    if (block->IsSplit()) return;
    unsplit.push_back({block, pool.clock - block->freed_at});
    total_age += unsplit.back().age;
  });
  std::vector<Block*> victims;
  std::size_t count = unsplit.size();
  std::uint64_t reclaimed = 0;
  bool took_any = true;
  while (reclaimed < target_bytes && took_any && count > 0) {
    const double threshold = static_cast<double>(total_age) / static_cast<double>(count);
    took_any = false;
    for (Aged& aged : unsplit) {
      // Expandable blocks count in the average but are never taken (as upstream).
      if (aged.taken || !IsWholeFree(*aged.block) || static_cast<double>(aged.age) < threshold) continue;
      aged.taken = took_any = true;
      reclaimed += aged.block->size_bytes;
      total_age -= aged.age;
      --count;
      victims.push_back(aged.block);
    }
  }
  return victims;
}

Heap::OversizeVictims Heap::FindOversizeVictims(const Decision& decision) const {
  OversizeVictims out;
  const std::uint64_t max_split = options_.max_split_size_bytes;
  const Lane* lane = FindLane(*decision.pool, decision.stream);
  if (max_split == kUnlimited || lane == nullptr) return out;
  const std::uint64_t wanted = std::max(decision.rounded_bytes, max_split);
  Block* hit = lane->free.FirstAtLeast(wanted);
  // A block of that size is part of a larger segment where it was split before the limit was set.
  if (hit != nullptr && IsWholeFree(*hit)) {
    out.blocks.push_back(hit);
    out.enough = true;
    return out;
  }
  // Downwards from the largest block below the hit. What a failing walk releases stays released.
  std::uint64_t released = 0;
  Block* block = hit == nullptr ? lane->free.Last() : lane->free.Previous(hit);
  while (block != nullptr && released < wanted && block->size_bytes >= max_split) {
    if (IsWholeFree(*block)) {
      out.blocks.push_back(block);
      released += block->size_bytes;
    }
    block = lane->free.Previous(block);
  }
  out.enough = released >= wanted;
  return out;
}

}  // namespace ashlar::policy
