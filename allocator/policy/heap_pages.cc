// Expandable segments: one reservation of address space whose blocks are live, free (mapped) or unmapped.
//
//   | live | free ...... | unmapped ............................ |   growth maps whole pages behind the free block

#include <algorithm>
#include <iterator>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/strategy.h"

namespace ashlar::policy {
namespace {

// What the block could become: a free block that unmapped address space follows counts with it.
std::uint64_t Room(const Block& block) {
  const bool grows = block.next != nullptr && block.next->state == BlockUse::kUnmapped;
  return block.size_bytes + (grows ? block.next->size_bytes : 0);
}

}  // namespace

// Where new memory is of expandable segments, prefers among ever larger blocks the one with less room to grow; else
// passes over expandable blocks that an earlier setting left.
Block* Heap::SkipByExpandableRules(const Lane& lane, Block* candidate) const {
  if (!TakesPages(*lane.pool)) {
    while (candidate != nullptr && candidate->is_expandable) candidate = lane.free.Next(candidate);
    return candidate;
  }
  if (!strategy_.traits().prefers_little_room) return candidate;
  while (candidate->is_expandable) {
    Block* next = lane.free.Next(candidate);
    if (next == nullptr || Room(*next) >= Room(*candidate)) break;
    candidate = next;
  }
  return candidate;
}

Block* Heap::AddReservation(const Decision& decision, std::uint64_t address, std::uint64_t size_bytes,
                            std::uint64_t page_bytes) {
  Lane& lane = LaneOf(PoolOf(decision), decision.stream);
  Segment* segment = NewSegment(lane, address, size_bytes);
  segment->is_expandable = true;
  segment->page_bytes = page_bytes;
  segment->first->is_expandable = true;
  segment->first->state = BlockUse::kUnmapped;
  lane.unmapped.emplace(address, segment->first);
  return segment->first;
}

Block* Heap::MarkMapped(Block* unmapped, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  ASHLAR_CHECK(unmapped->state == BlockUse::kUnmapped);
  ASHLAR_CHECK_LE(size_bytes, unmapped->size_bytes);
  Segment& segment = *unmapped->segment;
  Lane& lane = *segment.lane;
  for (std::uint64_t at = 0; page_bytes != segment.page_bytes && at < size_bytes; at += page_bytes) {
    segment.large_pages.emplace(unmapped->address + at, page_bytes);
  }
  lane.unmapped.erase(unmapped->address);
  Block* mapped = unmapped;
  if (size_bytes < unmapped->size_bytes) {
    // The low part is the block that was there (it keeps its rank); the rest is new.
    mapped = Split(lane, unmapped, size_bytes);
    std::swap(mapped->rank, unmapped->rank);
    lane.unmapped.emplace(unmapped->address, unmapped);
  }
  mapped->state = BlockUse::kFree;
  reserved_bytes_ += size_bytes;
  MergeWith(mapped, mapped->prev);
  MergeWith(mapped, mapped->next);
  InsertFree(lane, mapped);
  return mapped;
}

namespace {

// The whole pages in the range, which lies in the segment and is mapped.
std::vector<PageRun> PagesWithin(const Segment& segment, const AddressRange& range) {
  std::vector<PageRun> out;
  const auto add = [&](std::uint64_t begin, std::uint64_t end, std::uint64_t page_bytes) {
    if (begin >= end) return;
    if (!out.empty() && out.back().page_bytes == page_bytes && out.back().range.End() == begin) {
      out.back().range.size_bytes += end - begin;
    } else {
      out.push_back({{begin, end - begin}, page_bytes});
    }
  };
  // Pages of the segment's own size lie at multiples of it, between the larger ones.
  const auto add_common = [&](std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t first = RoundUp(begin - segment.address, segment.page_bytes);
    const std::uint64_t last = RoundDown(end - segment.address, segment.page_bytes);
    add(segment.address + first, segment.address + std::max(first, last), segment.page_bytes);
  };
  std::uint64_t at = range.address;
  auto large = segment.large_pages.upper_bound(at);
  if (large != segment.large_pages.begin()) {
    const auto& [begin, size_bytes] = *std::prev(large);
    if (begin == at) {
      --large;
    } else {
      at = std::max(at, begin + size_bytes);  // the range begins inside it
    }
  }
  for (; large != segment.large_pages.end() && large->first < range.End(); ++large) {
    const auto& [begin, size_bytes] = *large;
    add_common(at, begin);
    if (begin + size_bytes > range.End()) return out;
    add(begin, begin + size_bytes, size_bytes);
    at = begin + size_bytes;
  }
  if (at < range.End()) add_common(at, range.End());
  return out;
}

// Ranges of addresses that lie between what is left out, in order.
class RangesBetween {
 public:
  // The range may follow the last one; then both are one.
  void Add(const AddressRange& range) {
    if (!ranges_.empty() && ranges_.back().End() == range.address) {
      ranges_.back().size_bytes += range.size_bytes;
    } else {
      ranges_.push_back(range);
    }
  }
  // What was added last ends where `range` begins; what follows begins at its end.
  void LeaveOut(const AddressRange& range) {
    AddressRange& last = ranges_.back();
    const std::uint64_t end = last.End();
    last.size_bytes = range.address - last.address;
    if (last.size_bytes == 0) ranges_.pop_back();
    if (end > range.End()) ranges_.push_back({range.End(), end - range.End()});
  }
  const std::vector<AddressRange>& ranges() const { return ranges_; }

 private:
  std::vector<AddressRange> ranges_;
};

}  // namespace

std::vector<PageRun> Heap::PagesToReturn(const Block* block) const {
  const std::vector<PageRun> whole = PagesWithin(*block->segment, {block->address, block->size_bytes});
  return registered_.empty() ? whole : registered_.PagesBeside(whole);
}

Heap::UsedElsewhere Heap::UseElsewhere(const PoolPair& pair) const {
  bool is_shared = false;
  for (const auto& [address, segment] : segments_) {
    if (segment->lane->pool->pair != &pair) continue;
    if (registered_.Touches({address, segment->size_bytes})) return UsedElsewhere::kRegistered;
    for (const Block* block = segment->first; block != nullptr; block = block->next) is_shared |= block->is_shared;
  }
  return is_shared ? UsedElsewhere::kShared : UsedElsewhere::kNothing;
}

std::vector<PageRun> Heap::PagesOf(const Segment& segment, bool with_free) {
  RangesBetween mapped;
  for (const Block* block = segment.first; block != nullptr; block = block->next) {
    if (block->state == BlockUse::kUnmapped) continue;
    mapped.Add({block->address, block->size_bytes});
    if (with_free || block->state != BlockUse::kFree) continue;
    for (const PageRun& run : PagesWithin(segment, {block->address, block->size_bytes})) mapped.LeaveOut(run.range);
  }
  std::vector<PageRun> out;
  for (const AddressRange& range : mapped.ranges()) {
    const std::vector<PageRun> runs = PagesWithin(segment, range);
    out.insert(out.end(), runs.begin(), runs.end());
  }
  return out;
}

std::uint64_t Heap::MappedBytes(const Pool& pool) const {
  std::uint64_t bytes = 0;
  for (const auto& [address, segment] : segments_) {
    if (segment->lane->pool != &pool) continue;
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      if (block->state != BlockUse::kUnmapped) bytes += block->size_bytes;
    }
  }
  return bytes;
}

void Heap::SetAsleep(PoolPair& pair, bool is_asleep) {
  ASHLAR_CHECK(pair.is_asleep != is_asleep);
  pair.is_asleep = is_asleep;
  const std::uint64_t bytes = MappedBytes(pair.small) + MappedBytes(pair.large);
  reserved_bytes_ = is_asleep ? reserved_bytes_ - bytes : reserved_bytes_ + bytes;
}

Block* Heap::MarkUnmapped(Block* block, const AddressRange& range) {
  Segment& segment = *block->segment;
  Lane& lane = *segment.lane;
  const auto gone = segment.large_pages.lower_bound(range.address);
  segment.large_pages.erase(gone, segment.large_pages.lower_bound(range.End()));
  TakeFree(block);
  const std::uint64_t head_bytes = range.address - block->address;
  const std::uint64_t tail_bytes = block->End() - (range.address + range.size_bytes);
  if (head_bytes > 0) InsertFree(lane, Split(lane, block, head_bytes));
  Block* middle = block;
  if (tail_bytes > 0) {
    // The middle is the block that was there (it keeps its rank); the tail is new.
    middle = Split(lane, block, range.size_bytes);
    std::swap(middle->rank, block->rank);
    InsertFree(lane, block);
  }
  middle->state = BlockUse::kUnmapped;
  if (!lane.pool->pair->is_asleep) reserved_bytes_ -= range.size_bytes;
  MergeWith(middle, middle->prev);
  MergeWith(middle, middle->next);
  lane.unmapped.emplace(middle->address, middle);
  return middle;
}

void Heap::RemoveReservation(Block* unmapped) {
  ASHLAR_CHECK(!unmapped->IsSplit() && unmapped->state == BlockUse::kUnmapped);
  unmapped->segment->lane->unmapped.erase(unmapped->address);
  ForgetSegment(unmapped);
}

}  // namespace ashlar::policy
