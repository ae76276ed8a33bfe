// Expandable segments: one reservation of address space whose blocks are live, free (mapped) or unmapped.
//
//   | live | free ...... | unmapped ............................ |   growth maps whole pages behind the free block

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/policy/heap.h"

namespace ashlar::policy {
namespace {

// What the block could become: a free block that unmapped address space follows counts with it.
std::uint64_t Room(const Block& block) {
  const bool grows = block.next != nullptr && block.next->state == BlockState::kUnmapped;
  return block.size_bytes + (grows ? block.next->size_bytes : 0);
}

bool HasRoom(const Block* block, std::uint64_t wanted_bytes) {
  std::uint64_t bytes = 0;
  for (; bytes < wanted_bytes && IsUsable(block); block = block->next) bytes += block->size_bytes;
  return bytes >= wanted_bytes;
}

}  // namespace

// With the option on, prefers among ever larger blocks the one with less room to grow; with it off, passes over
// expandable blocks that an earlier setting left.
Block* Heap::SkipByExpandableRules(const Lane& lane, Block* candidate) const {
  if (!options_.expandable_segments) {
    while (candidate != nullptr && candidate->is_expandable) candidate = lane.free.Next(candidate);
    return candidate;
  }
  if (options_.policy == Policy::kAshlar) return candidate;
  while (candidate->is_expandable) {
    Block* next = lane.free.Next(candidate);
    if (next == nullptr || Room(*next) >= Room(*candidate)) break;
    candidate = next;
  }
  return candidate;
}

Block* Heap::FindGrowth(const Decision& decision) const {
  if (options_.policy == Policy::kAshlar) return FindLeastGrowth(decision).start;
  const Lane* lane = FindLane(*decision.pool, decision.stream);
  if (lane == nullptr) return nullptr;
  for (const auto& [address, unmapped] : lane->unmapped) {
    Block* start = IsUsable(unmapped->prev) ? unmapped->prev : unmapped;
    if (HasRoom(start, decision.rounded_bytes)) return start;
  }
  return nullptr;
}

Block* Heap::AddReservation(const Decision& decision, std::uint64_t address, std::uint64_t size_bytes,
                            std::uint64_t page_bytes) {
  Lane& lane = LaneOf(PoolOf(decision), decision.stream);
  Segment* segment = NewSegment(lane, address, size_bytes);
  segment->is_expandable = true;
  segment->page_bytes = page_bytes;
  segment->first->is_expandable = true;
  segment->first->state = BlockState::kUnmapped;
  lane.unmapped.emplace(address, segment->first);
  return segment->first;
}

Block* Heap::MarkMapped(Block* unmapped, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  ASHLAR_CHECK(unmapped->state == BlockState::kUnmapped);
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
  mapped->state = BlockState::kFree;
  reserved_bytes_ += size_bytes;
  MergeWith(mapped, mapped->prev);
  MergeWith(mapped, mapped->next);
  InsertFree(lane, mapped);
  return mapped;
}

std::vector<PageRun> Heap::WholePages(const Block* block) {
  const Segment& segment = *block->segment;
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
  std::uint64_t at = block->address;
  auto large = segment.large_pages.upper_bound(at);
  if (large != segment.large_pages.begin()) {
    const auto& [begin, size_bytes] = *std::prev(large);
    if (begin == at) {
      --large;
    } else {
      at = std::max(at, begin + size_bytes);  // the block begins inside it
    }
  }
  for (; large != segment.large_pages.end() && large->first < block->End(); ++large) {
    const auto& [begin, size_bytes] = *large;
    add_common(at, begin);
    if (begin + size_bytes > block->End()) return out;
    add(begin, begin + size_bytes, size_bytes);
    at = begin + size_bytes;
  }
  if (at < block->End()) add_common(at, block->End());
  return out;
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
  middle->state = BlockState::kUnmapped;
  reserved_bytes_ -= range.size_bytes;
  MergeWith(middle, middle->prev);
  MergeWith(middle, middle->next);
  lane.unmapped.emplace(middle->address, middle);
  return middle;
}

void Heap::RemoveReservation(Block* unmapped) {
  ASHLAR_CHECK(!unmapped->IsSplit() && unmapped->state == BlockState::kUnmapped);
  unmapped->segment->lane->unmapped.erase(unmapped->address);
  ForgetSegment(unmapped);
}

// Policy::kAshlar: where growth maps the fewest pages, and which free pages may move there.

namespace {

std::uint64_t UnmappedBytes(const Block& block) { return block.state == BlockState::kUnmapped ? block.size_bytes : 0; }

// A window over blocks that are free or unmapped and follow each other.
//
//   | live | free | unmapped | free | unmapped ............. | live |
//           ^begin                   ^last: the first with which the window holds what is wanted
class Window {
 public:
  Window(Block* begin, std::uint64_t wanted_bytes) : begin_(begin), last_(begin), wanted_bytes_(wanted_bytes) {
    bytes_ = begin->size_bytes;
    unmapped_bytes_ = UnmappedBytes(*begin);
  }

  Block* begin() const { return begin_; }
  // False: what follows does not suffice, nor will it for a later begin.
  bool Widen() {
    while (bytes_ < wanted_bytes_) {
      if (!IsUsable(last_->next)) return false;
      last_ = last_->next;
      bytes_ += last_->size_bytes;
      unmapped_bytes_ += UnmappedBytes(*last_);
    }
    return true;
  }
  // Of whole pages, since unmapped blocks begin and end at pages.
  std::uint64_t MapBytes() const {
    const std::uint64_t spare = bytes_ - wanted_bytes_;
    const std::uint64_t unused = last_->state == BlockState::kUnmapped ? spare : 0;
    return unmapped_bytes_ - RoundDown(unused, last_->segment->page_bytes);
  }
  // False: there is no later begin.
  bool Advance() {
    if (!IsUsable(begin_->next)) return false;
    if (begin_ == last_) {
      *this = Window(begin_->next, wanted_bytes_);
      return true;
    }
    bytes_ -= begin_->size_bytes;
    unmapped_bytes_ -= UnmappedBytes(*begin_);
    begin_ = begin_->next;
    return true;
  }

 private:
  Block* begin_;
  Block* last_;
  std::uint64_t wanted_bytes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t unmapped_bytes_ = 0;
};

// The blocks that growth from `start` will use.
std::set<const Block*> BlocksOf(const Block* start, std::uint64_t wanted_bytes) {
  std::set<const Block*> out;
  std::uint64_t bytes = 0;
  for (; start != nullptr && bytes < wanted_bytes; start = start->next) {
    bytes += start->size_bytes;
    out.insert(start);
  }
  return out;
}

std::uint64_t BytesOf(const std::vector<PageRun>& runs) {
  std::uint64_t bytes = 0;
  for (const PageRun& run : runs) bytes += run.range.size_bytes;
  return bytes;
}

// Of the runs the highest pages, `bytes` or a little more: what is left of the block is in one piece with what lies
// below.
std::vector<PageRun> Highest(std::vector<PageRun> runs, std::uint64_t bytes) {
  std::uint64_t spare = BytesOf(runs);
  spare -= std::min(spare, bytes);
  std::size_t first = 0;
  for (; first < runs.size() && runs[first].range.size_bytes <= spare; ++first) spare -= runs[first].range.size_bytes;
  runs.erase(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(first));
  if (!runs.empty()) {
    const std::uint64_t left = RoundDown(spare, runs.front().page_bytes);
    runs.front().range.address += left;
    runs.front().range.size_bytes -= left;
  }
  return runs;
}

}  // namespace

Heap::GrowthPlace Heap::FindLeastGrowth(const Decision& decision) const {
  GrowthPlace least{.map_bytes = RoundUp(decision.rounded_bytes, PageBytes(decision.pool->is_small, options_))};
  const Lane* lane = FindLane(*decision.pool, decision.stream);
  if (lane == nullptr) return least;
  const Block* seen_to = nullptr;
  for (const auto& [address, unmapped] : lane->unmapped) {
    if (seen_to != nullptr && unmapped->segment == seen_to->segment && unmapped->address <= seen_to->address) continue;
    Window window(IsUsable(unmapped->prev) ? unmapped->prev : unmapped, decision.rounded_bytes);
    while (window.Widen()) {
      if (least.start == nullptr || window.MapBytes() < least.map_bytes) {
        least = {window.begin(), window.MapBytes()};
      }
      if (!window.Advance()) break;
    }
    seen_to = window.begin();
    while (IsUsable(seen_to->next)) seen_to = seen_to->next;
  }
  return least;
}

std::vector<Heap::FreePages> Heap::PagesToMove(const Decision& decision, const GrowthPlace& place,
                                               std::uint64_t bytes) const {
  const std::set<const Block*> used = BlocksOf(place.start, decision.rounded_bytes);
  std::vector<FreePages> out;
  std::uint64_t found = 0;
  const auto take = [&](const Lane& lane) {
    for (Block* block = lane.free.Last(); block != nullptr && found < bytes; block = lane.free.Previous(block)) {
      if (!block->is_expandable || used.contains(block)) continue;
      std::vector<PageRun> runs = Highest(WholePages(block), bytes - found);
      if (runs.empty()) continue;
      found += BytesOf(runs);
      out.push_back({block, std::move(runs)});
    }
  };
  // A graph may still use what is free in a private pool.
  const auto is_open = [](const Pool& pool) { return pool.id.IsDefault() || pool.pair->use_count == 0; };
  const Lane* own = FindLane(*decision.pool, decision.stream);
  if (own != nullptr && is_open(*decision.pool)) take(*own);
  for (const bool is_same_stream : {true, false}) {
    ForEachPool([&](const Pool& pool) {
      if (!is_open(pool)) return;
      for (const auto& [stream, lane] : pool.lanes) {
        if (&lane != own && (stream == Handle(decision.stream)) == is_same_stream) take(lane);
      }
    });
  }
  return out;
}

}  // namespace ashlar::policy
