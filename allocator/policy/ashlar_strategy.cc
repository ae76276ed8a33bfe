// Policy::kAshlar: pages. Growth maps the fewest, in holes between free blocks too, in large pages while the device has
// room. Where it has none, whole free pages move to where the request needs them, before anything goes back.
#include "allocator/policy/ashlar_strategy.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <set>
#include <utility>

#include "allocator/policy/strategy.h"

namespace ashlar::policy {
namespace {

std::uint64_t UnmappedBytes(const Block& block) { return block.state == BlockUse::kUnmapped ? block.size_bytes : 0; }

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
    const std::uint64_t unused = last_->state == BlockUse::kUnmapped ? spare : 0;
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

GrowthPlace FindLeastGrowth(const Decision& decision) {
  GrowthPlace least{.map_bytes = RoundUp(decision.rounded_bytes, kAshlarPageBytes)};
  const Lane* lane = Heap::FindLane(*decision.pool, decision.stream);
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

std::vector<FreePages> PagesToMove(const Heap& heap, const Decision& decision, const GrowthPlace& place,
                                   std::uint64_t bytes) {
  const std::set<const Block*> used = BlocksOf(place.start, decision.rounded_bytes);
  std::vector<FreePages> out;
  std::uint64_t found = 0;
  const auto take = [&](const Lane& lane) {
    for (Block* block = lane.free.Last(); block != nullptr && found < bytes; block = lane.free.Previous(block)) {
      if (!block->is_expandable || used.contains(block)) continue;
      std::vector<PageRun> runs = Highest(heap.PagesToReturn(block), bytes - found);
      if (runs.empty()) continue;
      found += BytesOf(runs);
      out.push_back({block, std::move(runs)});
    }
  };
  // What is asleep has no pages.
  const auto is_open = [](const Pool& pool) { return pool.pair->MayReturn() && !pool.pair->is_asleep; };
  const Lane* own = Heap::FindLane(*decision.pool, decision.stream);
  if (own != nullptr && is_open(*decision.pool)) take(*own);
  for (const bool is_same_stream : {true, false}) {
    heap.ForEachPool([&](const Pool& pool) {
      if (!is_open(pool)) return;
      for (const auto& [stream, lane] : pool.lanes) {
        if (&lane != own && (stream == Handle(decision.stream)) == is_same_stream) take(lane);
      }
    });
  }
  return out;
}

namespace {

class AshlarPolicy final : public Strategy {
 public:
  constexpr AshlarPolicy()
      : Strategy({.name = "ashlar", .has_own_order = true, .shares_pages = true, .pages_follow_room = true}) {}

  // What keeps large blocks whole in PyTorch has no place here: free pages move to where a large request needs them.
  // Nor have the orders of PyTorch's versions, unless they are asked for: the lowest of equal blocks is taken.
  void Settle(bool has_order, Options& options) const override {
    options.expandable_segments = true;
    if (!has_order) options.free_order = FreeOrder::kAddress;
    if (options.max_split_size_bytes == kUnlimited) return;
    options.max_split_size_bytes = kUnlimited;
    options.notes.push_back(
        "max_split_size_mb: policy:ashlar splits blocks of any size and moves whole free pages instead");
  }

  std::uint64_t PageBytes(bool /*is_small*/, const Options& /*options*/) const override { return kAshlarPageBytes; }

  Block* FindGrowth(const Decision& decision) const override { return FindLeastGrowth(decision).start; }

  GrowthSize SizeOf(const GrowthNeed& need) const override {
    const std::uint64_t share = need.is_small ? kSmallPoolShare : 1;
    const std::uint64_t by_size = std::max(need.wanted_bytes, need.reserved_bytes / kReservedShare / share);
    const std::uint64_t most =
        std::min({need.spare_bytes / kSpareShare / share, by_size, kLargestPageBytes, need.room_bytes});
    if (most < 2 * need.page_bytes) return LeastGrowth(need);
    const std::uint64_t page_bytes = need.page_bytes * std::bit_floor(most / need.page_bytes);
    return {std::min(RoundUp(need.wanted_bytes, page_bytes), RoundDown(need.room_bytes, page_bytes)), page_bytes};
  }

  bool KeepsShortReservations(const Options& /*options*/) const override { return false; }

  std::uint64_t GrowthBytes(const Decision& decision) const override { return FindLeastGrowth(decision).map_bytes; }

  // Pages move, then also those of what waited for other streams; at last everything that the cache holds goes back.
  absl::Span<const Rung> RungsAfterRefusal(const Options& options) const override {
    static constexpr Rung kRungs[] = {Rung::kMovePages, Rung::kWaitForAll, Rung::kSearch, Rung::kMovePages,
                                      Rung::kReturnAll};
    static constexpr Rung kFewWaits[] = {Rung::kMovePages, Rung::kWaitForFew};
    return options.sync_just_enough ? absl::MakeConstSpan(kFewWaits) : absl::MakeConstSpan(kRungs);
  }
};

constexpr AshlarPolicy kAshlarPolicy;

}  // namespace

const Strategy& AshlarStrategy() { return kAshlarPolicy; }

}  // namespace ashlar::policy
