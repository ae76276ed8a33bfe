// The allocation policy as a pure machine: which block serves a request, what is split, what merges, which segments
// to give back. It decides on numbers only: it makes no device call, takes no lock, reads no clock. The ladder in
// allocator/core asks it, calls the device, and tells it what came of that.
//
//   Heap heap(options);
//   Decision decision = heap.Decide({.bytes = 300, .stream = s});       // const: would it fit, and where
//   Block* block = decision.block ? heap.Commit(decision)                 // take (and split) the free block found
//                             : heap.Place(decision, heap.AddSegment(decision, address, decision.segment_bytes));
//   heap.Release(block);                                          // merge with free neighbours, back to the free set
//
// Policy: docs/internals/policy.md. Every state can be checked by Validate(). Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_POLICY_HEAP_H_
#define ASHLAR_ALLOCATOR_POLICY_HEAP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "allocator/base/units.h"
#include "allocator/policy/address_range.h"
#include "allocator/policy/block.h"
#include "allocator/policy/free_index.h"
#include "allocator/policy/options.h"
#include "allocator/policy/registered_ranges.h"
#include "allocator/policy/size_rule.h"
#include "ashlar/pool_routes.h"

namespace ashlar::policy {

class Strategy;
struct Pool;
struct PoolPair;

// Counts of free blocks that share a segment with others; expandable segments are not counted (as upstream).
struct SplitCounts {
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;

  void Add(const SplitCounts& change) {
    blocks += change.blocks;
    bytes += change.bytes;
  }
  SplitCounts Minus(const SplitCounts& before) const { return {blocks - before.blocks, bytes - before.bytes}; }
};

// What was done so far, as counts.
struct LaneCosts {
  std::uint64_t probes = 0;  // bins of free sets looked at, and lists behind them
  std::uint64_t cuts = 0;    // blocks cut in two
  std::uint64_t joins = 0;   // blocks that became part of a neighbour

  void Add(const LaneCosts& more) {
    probes += more.probes;
    cuts += more.cuts;
    joins += more.joins;
  }
};

// The part of a pool that one stream uses. No block ever changes lanes, and what a request changes on its way through
// CommitAs and ReleaseAs is its lane alone: that is what lets different lanes serve different threads.
// What a request reads comes first.
struct alignas(64) Lane {
  Lane(Stream its_stream, Pool* its_pool, FreeIndex::Ranks ranks) : stream(its_stream), pool(its_pool), free(ranks) {}

  const Stream stream;
  Pool* const pool;
  void* owner = nullptr;  // the caller's own
  SplitCounts inactive_split;
  std::uint64_t cuts = 0;  // as in LaneCosts
  std::uint64_t joins = 0;
  BlockSlabs slabs;
  FreeIndex free;
  std::map<std::uint64_t, Block*> unmapped;  // by address
  std::uint64_t next_block_rank = 1;
  std::uint64_t segment_count = 0;  // segments and reservations alive
  bool is_planned = false;          // its requests are placed by a plan: none takes the fast path
};

struct Pool {
  PoolId id;
  PoolPair* pair = nullptr;  // the two pools of this id
  bool is_small = false;
  std::uint64_t clock = 0;              // searches so far, counted by Tick
  std::map<std::uint64_t, Lane> lanes;  // by stream handle
  std::uint64_t segment_count = 0;      // segments and reservations alive
};

// The small and the large pool of one id.
struct PoolPair {
  Pool small;
  Pool large;
  std::uint64_t use_count = 1;  // private pools: at 0 the cache may return their segments
  bool use_on_oom = false;      // other requests may search here before anything is released
  bool no_split = false;        // hands out whole segments
  bool is_asleep = false;       // its blocks are there, its pages are not (core/sleeper.h): nothing is served from it
  bool takes_pages = false;     // its new memory is of expandable segments, whatever the settings
  std::shared_ptr<PoolMemory> memory;  // where its segments come from; nullptr: the device
  std::string tag;                     // its name, if it has one

  // Whether what is free in it may go back to the device. Else a graph may still use it.
  bool MayReturn() const { return small.id.IsDefault() || use_count == 0 || !tag.empty(); }
};

struct Request {
  std::uint64_t bytes = 0;  // 1 .. kMaxRequestBytes
  Stream stream{};
  PoolId pool;
};

// What a request needs, and the free block that serves it (nullptr: none does).
struct Decision {
  std::uint64_t request_bytes = 0;
  std::uint64_t rounded_bytes = 0;
  std::uint64_t segment_bytes = 0;  // of the new segment if one is needed
  Stream stream{};
  const PoolPair* pair = nullptr;
  const Pool* pool = nullptr;
  Block* block = nullptr;
  // By a placement plan (placement_plan.h):
  std::uint64_t place_at = 0;       // the address in `block`; 0: where the rules put it
  bool is_planned_segment = false;  // the new segment is the one that a plan asked for
};

class Heap {
 public:
  explicit Heap(Options options);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  const Options& options() const { return options_; }
  // That of the options' policy.
  const Strategy& strategy() const { return strategy_; }
  // Whether the pool's new memory is of expandable segments.
  bool TakesPages(const Pool& pool) const {
    return pool.pair->memory == nullptr && (options_.expandable_segments || pool.pair->takes_pages);
  }
  // From now on; only what ChangedSettings allows.
  void SetOptions(Options options);

  // --- requests ---
  // What a request takes: its size by the rounding rule.
  std::uint64_t Rounded(std::uint64_t request_bytes) const {
    if (!rounds_to_granules_) return RoundedBytes(request_bytes, options_);
    return request_bytes < kMinBlockBytes ? kMinBlockBytes : RoundUp(request_bytes, kMinBlockBytes);
  }
  // The sizes of a request, which depend on the options alone.
  Decision SizesOf(const Request& request) const;
  // The plan's pool is nullptr while nobody has made the request's private pool by Pair().
  Decision Decide(const Request& request) const;
  // The free block of the lane that serves a request of this rounded size, nullptr if none does. FindIn, EffectOf,
  // CommitAs and ReleaseAs are what a request needs that the cache serves: they touch the lane alone.
  Block* FindIn(const Lane& lane, std::uint64_t rounded_bytes) const;
  // What placing a request in a block of the pool will hand out, and add to the counts of inactive split blocks.
  struct PlaceEffect {
    std::uint64_t block_bytes = 0;
    bool cuts = false;
    SplitCounts splits;
  };
  PlaceEffect EffectOf(const Block& block, std::uint64_t rounded_bytes, const Pool& pool) const;
  // Takes the free block out of the lane's set and places a request in it, as EffectOf said.
  Block* CommitAs(Lane& lane, Block* block, const PlaceEffect& effect, std::uint64_t request_bytes);
  // Whether a free block of this size may serve the request at all.
  bool MayServe(std::uint64_t rounded_bytes, std::uint64_t block_bytes) const;
  // Counts one search in the pool's clock; call before Decide's result is used, only while garbage is collected.
  void Tick(const Decision& decision) { ++PoolOf(decision).clock; }
  // Takes plan.block out of the free set and places the request in it.
  Block* Commit(const Decision& decision);
  // Places the request in a block that is in no set (fresh from AddSegment or Grow), splitting by the rule.
  Block* Place(const Decision& decision, Block* block);
  // The same at plan.place_at: exactly there, whatever is left on both sides.
  Block* PlaceAt(const Decision& decision, Block* block);
  // The free block of the segment that holds the range, where one does. `below`: a block of the segment at or below the
  // range's address, nullptr: look from the first.
  static Block* FindFreeAt(const Segment& segment, Block* below, const AddressRange& range);
  // Looks for the plan's request in another pool pair (overflow); some policies pass over expandable blocks there.
  Block* FindInOverflow(const Decision& decision, const PoolPair& pair) const;
  // The smallest block of other streams in the plan's pool that may serve it; of equals the lower stream's.
  Block* FindInOtherLane(const Decision& decision) const;
  // Blocks waiting for events that, with what is free beside them, would serve the plan from its lane: those with the
  // fewest events, of equals the lowest. Empty when there are none.
  std::vector<Block*> FewestPending(const Decision& decision) const;

  // --- returns ---
  // The caller freed the block; it waits for events.
  static void MarkPending(Block* block) { block->state = BlockUse::kPending; }
  // What Release of this block will merge, and add to the lane's counts of inactive split blocks.
  struct ReleaseEffect {
    bool joins_prev = false;
    bool joins_next = false;
    SplitCounts splits;
  };
  static ReleaseEffect EffectOfRelease(const Block& block);
  // The block is free now: merges and joins the free set. Returns the merged block.
  static Block* Release(Block* block);
  static Block* ReleaseAs(Lane& lane, Block* block, const ReleaseEffect& effect);

  // --- segments ---
  // A new segment of the plan's lane as one block that is in no set yet.
  Block* AddSegment(const Decision& decision, std::uint64_t address, std::uint64_t size_bytes);
  // A block that is in no set, fresh from AddSegment, as free memory.
  static void OfferFree(Block* block);
  // Forgets a segment whose only block is free.
  void RemoveSegment(Block* whole);
  // Forgets a lane that has no segment left. New lanes get its slabs: a pointer to a block that a caller has kept
  // points to a record for good.
  void RemoveLane(Lane& lane);

  // --- what to give back, in order ---
  // Whole-free segments of the default large pool that are old enough, until `target_bytes` are reclaimed (a pass is
  // finished even so).
  std::vector<Block*> GarbageVictims(std::uint64_t target_bytes) const;
  struct OversizeVictims {
    std::vector<Block*> blocks;
    bool enough = false;
  };
  // What §6b releases to make room for an oversize request.
  OversizeVictims FindOversizeVictims(const Decision& decision) const;
  // Every free block of the pool that covers a segment without a registered range, in set order.
  std::vector<Block*> WholeFree(const Pool& pool) const;
  // Every free expandable block of the pool, in set order.
  static std::vector<Block*> FreeExpandable(const Pool& pool);

  // --- expandable segments ---
  // A new reservation as one unmapped block.
  Block* AddReservation(const Decision& decision, std::uint64_t address, std::uint64_t size_bytes,
                        std::uint64_t page_bytes);
  // The device mapped the first `size_bytes` of this unmapped block in pages of `page_bytes`: it becomes free memory
  // and merges.
  Block* MarkMapped(Block* unmapped, std::uint64_t size_bytes, std::uint64_t page_bytes);
  // The whole pages inside a free expandable block, by address, but for those with a registered byte.
  std::vector<PageRun> PagesToReturn(const Block* block) const;
  // The device unmapped `range` (whole pages) of this free block. Returns the (merged) unmapped block; where part of
  // the block lies above the range, `block` is that part.
  Block* MarkUnmapped(Block* block, const AddressRange& range);
  // Forgets a reservation that is wholly unmapped.
  void RemoveReservation(Block* unmapped);
  // The pages of the segment that a live or pending block lies in, by address; where `with_free`, every mapped one.
  static std::vector<PageRun> PagesOf(const Segment& segment, bool with_free);
  // The device has taken all pages of the pair's segments, which are expandable; or has given back those that
  // PagesOf said, after what else was free left the heap by MarkUnmapped. What is reserved changes by that.
  void SetAsleep(PoolPair& pair, bool is_asleep);
  std::uint64_t MappedBytes(const Pool& pool) const;
  // Takes a free block out of its set without placing anything (growth ends here).
  static void TakeFree(Block* block);

  // Ranges that are registered lie in a segment each; what is free in them stays.
  RegisteredRanges& registered() { return registered_; }
  const RegisteredRanges& registered() const { return registered_; }
  // What somebody else uses as it is in the segments of the pair: a registered range, or a live block that is shared.
  enum class UsedElsewhere : std::uint8_t { kNothing, kRegistered, kShared };
  UsedElsewhere UseElsewhere(const PoolPair& pair) const;

  // --- pools ---
  // Made on first use.
  PoolPair& Pair(PoolId id);
  // nullptr while there is none.
  PoolPair* FindPair(PoolId id);
  const PoolPair* FindPair(PoolId id) const;
  PoolPair& default_pair() { return *default_pair_; }
  const PoolPair& default_pair() const { return *default_pair_; }
  // Private pools by id; the default pair is not among them.
  using PrivatePairs = std::map<PoolId, std::unique_ptr<PoolPair>>;
  PrivatePairs& private_pairs() { return private_pairs_; }
  const PrivatePairs& private_pairs() const { return private_pairs_; }

  // --- state ---
  // nullptr while there is none.
  static const Lane* FindLane(const Pool& pool, Stream stream);
  // The default pools, then private ones by id.
  template <typename Visit>
  void ForEachPool(Visit visit) const {
    visit(default_pair_->small);
    visit(default_pair_->large);
    for (const auto& [id, pair] : private_pairs_) {
      visit(pair->small);
      visit(pair->large);
    }
  }
  // Of all lanes there are and were.
  LaneCosts Costs() const;
  std::uint64_t reserved_bytes() const { return reserved_bytes_; }
  // Segments and reservations by address.
  const std::map<std::uint64_t, std::unique_ptr<Segment>>& segments() const { return segments_; }
  // Recomputes everything from the segments and compares: the first difference as an Internal error.
  absl::Status Validate() const;

  // --- rebuilding a known state ---
  struct KnownBlock {
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;
    BlockUse state = BlockUse::kFree;
  };
  // A segment cut into blocks as given (sizes must sum to the segment). Adjacent free blocks must be merged already.
  // For expandable segments the blocks cover the reservation, unmapped ones included.
  std::vector<Block*> Restore(const Request& lane_of, bool is_small, bool is_expandable, std::uint64_t address,
                              const std::vector<KnownBlock>& blocks);

 private:
  Lane& LaneOf(Pool& pool, Stream stream);
  Pool& PoolOf(const Decision& decision);
  Block* SkipByExpandableRules(const Lane& lane, Block* candidate) const;
  Block* Split(Lane& lane, Block* block, std::uint64_t low_bytes) const;
  Block* PlaceAs(Lane& lane, Block* block, const PlaceEffect& effect, std::uint64_t request_bytes) const;
  static void InsertFree(Lane& lane, Block* block);
  static void InsertAlone(Lane& lane, Block* block);
  static void TellNeighbours(const Block& block, bool is_free);
  // Merges `other` into `block` when both may merge.
  static void MergeWith(Block* block, Block* other);
  // And without a registered range: it may go back as it is.
  bool IsWholeFree(const Block& block) const;
  bool ShouldSplit(std::uint64_t rounded_bytes, std::uint64_t block_bytes, const Pool& pool) const;
  std::uint64_t RankForNewBlock(const Segment& segment) const;
  void ForgetSegment(Block* whole);
  Segment* NewSegment(Lane& lane, std::uint64_t address, std::uint64_t size_bytes);

  const Strategy& strategy_;
  Options options_;
  bool rounds_to_granules_ = false;  // no request is rounded to anything but 512 bytes
  std::unique_ptr<PoolPair> default_pair_;
  PrivatePairs private_pairs_;
  std::vector<BlockSlabs> spare_slabs_;  // of lanes that are gone,
  LaneCosts removed_costs_;              // and what they cost
  std::map<std::uint64_t, std::unique_ptr<Segment>> segments_;
  RegisteredRanges registered_;
  std::uint64_t next_segment_rank_ = 1;
  std::uint64_t reserved_bytes_ = 0;
};

// The steps of a request that the cache serves: what heap.h declares and the hot path of allocator/core runs for every
// request, inline. Each touches one lane and nothing else.

// Heap::MayServe, inline.
inline bool MayServeBy(const Options& options, std::uint64_t rounded_bytes, std::uint64_t block_bytes) {
  if (block_bytes < rounded_bytes) return false;
  const std::uint64_t max_split = options.max_split_size_bytes;
  if (rounded_bytes < max_split) return block_bytes < max_split || max_split == kUnlimited;
  return block_bytes - rounded_bytes < options.max_non_split_rounding_bytes;
}

// Whether growth may use the block.
inline bool IsUsable(const Block* block) {
  return block != nullptr && (block->state == BlockUse::kFree || block->state == BlockUse::kUnmapped);
}

// Best fit looks at one candidate only: the first in order that is large enough.
inline Block* Heap::FindIn(const Lane& lane, std::uint64_t rounded_bytes) const {
  Block* candidate = lane.free.FirstAtLeast(rounded_bytes);
  if (candidate != nullptr && candidate->is_expandable) candidate = SkipByExpandableRules(lane, candidate);
  if (candidate == nullptr || !MayServeBy(options_, rounded_bytes, candidate->size_bytes)) return nullptr;
  return candidate;
}

inline bool Heap::ShouldSplit(std::uint64_t rounded_bytes, std::uint64_t block_bytes, const Pool& pool) const {
  const std::uint64_t remaining = block_bytes - rounded_bytes;
  if (pool.pair->no_split) return false;
  if (pool.is_small || TakesPages(pool)) return remaining >= kMinBlockBytes;
  return rounded_bytes < options_.max_split_size_bytes && remaining > kSmallMaxBytes;
}

inline Heap::PlaceEffect Heap::EffectOf(const Block& block, std::uint64_t rounded_bytes, const Pool& pool) const {
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

inline Block* Heap::CommitAs(Lane& lane, Block* block, const PlaceEffect& effect, std::uint64_t request_bytes) {
  lane.free.Erase(block);
  if (block->prev != nullptr) block->prev->next_is_free = false;
  if (!effect.cuts && block->next != nullptr) block->next->prev_is_free = false;
  return PlaceAs(lane, block, effect, request_bytes);
}

inline Block* Heap::PlaceAs(Lane& lane, Block* block, const PlaceEffect& effect, std::uint64_t request_bytes) const {
  if (effect.cuts) {
    Block* rest = block;
    block = Split(lane, rest, effect.block_bytes);
    block->next_is_free = true;
    InsertAlone(lane, rest);
  }
  lane.inactive_split.Add(effect.splits);
  block->state = BlockUse::kLive;
  block->requested_bytes = request_bytes;
  return block;
}

// Cuts the low `low_bytes` off as a block of its own, which is returned; `block` keeps the rest and its rank.
inline Block* Heap::Split(Lane& lane, Block* block, std::uint64_t low_bytes) const {
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
  low->prev_is_free = block->prev_is_free;
  block->prev = low;
  block->prev_is_free = false;  // neither part is in the set
  block->address += low_bytes;
  block->size_bytes -= low_bytes;
  return low;
}

inline Heap::ReleaseEffect Heap::EffectOfRelease(const Block& block) {
  __builtin_prefetch(block.prev, 1);
  __builtin_prefetch(block.next, 1);
  ReleaseEffect out;
  out.joins_prev = block.prev_is_free;
  out.joins_next = block.next_is_free;
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

// Whether the block is in the free set.
inline void Heap::TellNeighbours(const Block& block, bool is_free) {
  if (block.prev != nullptr) block.prev->next_is_free = is_free;
  if (block.next != nullptr) block.next->prev_is_free = is_free;
}

// The block becomes part of the one before it rather than the other way round: that touches one record less. The
// rank is the freed block's, as if it had stayed. A record that is no block any more is not live: a pointer to it that
// a caller has kept is told by that.
inline Block* Heap::ReleaseAs(Lane& lane, Block* block, const ReleaseEffect& effect) {
  lane.joins += static_cast<std::uint64_t>(effect.joins_next) + static_cast<std::uint64_t>(effect.joins_prev);
  block->state = BlockUse::kFree;
  if (effect.joins_next) {
    Block* next = block->next;
    lane.free.Erase(next);
    block->size_bytes += next->size_bytes;
    block->next = next->next;
    block->next_is_free = next->next_is_free;
    if (block->next != nullptr) block->next->prev = block;
    lane.slabs.Delete(next);
  } else if (block->next != nullptr) {
    block->next->prev_is_free = true;
  }
  if (effect.joins_prev) {
    Block* prev = block->prev;
    lane.free.Erase(prev);
    prev->size_bytes += block->size_bytes;
    prev->rank = block->rank;
    prev->next = block->next;
    prev->next_is_free = block->next_is_free;
    if (prev->next != nullptr) prev->next->prev = prev;
    lane.slabs.Delete(block);
    block = prev;
  } else if (block->prev != nullptr) {
    block->prev->next_is_free = true;
  }
  InsertAlone(lane, block);
  lane.inactive_split.Add(effect.splits);
  return block;
}

// The neighbours know already.
inline void Heap::InsertAlone(Lane& lane, Block* block) {
  block->state = BlockUse::kFree;
  block->freed_at = lane.pool->clock;
  lane.free.Insert(block);
}

inline void Heap::InsertFree(Lane& lane, Block* block) {
  InsertAlone(lane, block);
  TellNeighbours(*block, true);
}

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_HEAP_H_
