#include "analyzer/analyses/failure/release_set.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace ashlar::analyses {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

std::uint64_t CommonDivisor(absl::Span<const CoverItem> items) {
  std::uint64_t out = 0;
  for (const CoverItem& item : items) out = std::gcd(out, item.gain);
  return std::max<std::uint64_t>(out, 1);
}

// best[u] = fewest cost of a set whose gains reach u units, over the items seen so far; taken[i][u] says whether item i
// is in it. A need beyond an item's gain is met by the items before it.
class ExactCover {
 public:
  ExactCover(absl::Span<const CoverItem> items, std::uint64_t unit, std::uint64_t need_units)
      : items_(items), unit_(unit), need_units_(need_units), best_(need_units + 1, kNone) {
    best_[0] = 0;
    taken_.reserve(items.size());
    for (const CoverItem& item : items) Add(item);
  }

  Cover Result() const {
    Cover out;
    out.cost = out.lower_bound = best_[need_units_];
    std::uint64_t units = need_units_;
    for (std::size_t i = items_.size(); i-- > 0;) {
      if (!taken_[i][units]) continue;
      out.items.push_back(i);
      units -= std::min(units, items_[i].gain / unit_);
    }
    std::reverse(out.items.begin(), out.items.end());
    return out;
  }

 private:
  void Add(const CoverItem& item) {
    std::vector<bool>& row = taken_.emplace_back(need_units_ + 1, false);
    const std::uint64_t gain = item.gain / unit_;
    for (std::uint64_t units = need_units_; units > 0 && gain > 0; --units) {
      const std::uint64_t before = best_[units - std::min(units, gain)];
      if (before == kNone || before + item.cost >= best_[units]) continue;
      best_[units] = before + item.cost;
      row[units] = true;
    }
  }

  absl::Span<const CoverItem> items_;
  std::uint64_t unit_;
  std::uint64_t need_units_;
  std::vector<std::uint64_t> best_;
  std::vector<std::vector<bool>> taken_;
};

// Cheapest byte first; a gain beyond the need counts as the need.
std::vector<std::size_t> ByPrice(absl::Span<const CoverItem> items, std::uint64_t need) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].gain > 0) order.push_back(i);
  }
  const auto is_cheaper = [&items, need](std::size_t a, std::size_t b) {
    return Wide{items[a].cost} * std::min(items[b].gain, need) < Wide{items[b].cost} * std::min(items[a].gain, need);
  };
  std::stable_sort(order.begin(), order.end(), is_cheaper);
  return order;
}

// The cost of the relaxed problem, rounded up: a cover's cost is a whole number.
std::uint64_t RelaxedCost(absl::Span<const CoverItem> items, absl::Span<const std::size_t> order, std::uint64_t need) {
  std::uint64_t left = need;
  std::uint64_t cost = 0;
  for (const std::size_t i : order) {
    const std::uint64_t gain = std::min(items[i].gain, need);
    if (gain >= left) return cost + static_cast<std::uint64_t>((Wide{items[i].cost} * left + gain - 1) / gain);
    left -= gain;
    cost += items[i].cost;
  }
  return cost;
}

// The cheapest of: the first k items by price and the one item that then completes the need at the fewest cost.
Cover GreedyCover(absl::Span<const CoverItem> items, absl::Span<const std::size_t> order, std::uint64_t need) {
  std::uint64_t left = need;
  std::uint64_t cost = 0;
  std::uint64_t best = kNone;
  std::size_t best_prefix = 0;
  std::size_t best_last = 0;
  for (std::size_t k = 0; k < order.size() && left > 0; ++k) {
    for (std::size_t last = k; last < order.size(); ++last) {
      const CoverItem& item = items[order[last]];
      if (item.gain < left || cost + item.cost >= best) continue;
      best = cost + item.cost;
      best_prefix = k;
      best_last = order[last];
    }
    cost += items[order[k]].cost;
    left -= std::min(left, items[order[k]].gain);
  }
  Cover out;
  out.cost = best;
  out.items.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best_prefix));
  out.items.push_back(best_last);
  std::sort(out.items.begin(), out.items.end());
  return out;
}

bool CanReach(absl::Span<const CoverItem> items, std::uint64_t need) {
  Wide sum = 0;
  for (const CoverItem& item : items) sum += item.gain;
  return sum >= need;
}

}  // namespace

std::optional<Cover> CheapestCover(absl::Span<const CoverItem> items, std::uint64_t need, std::uint64_t most_cells) {
  if (need == 0) return Cover{};
  if (!CanReach(items, need)) return std::nullopt;
  const std::uint64_t unit = CommonDivisor(items);
  const std::uint64_t need_units = need / unit + (need % unit != 0 ? 1 : 0);
  if (Wide{need_units} * items.size() <= most_cells) return ExactCover(items, unit, need_units).Result();
  const std::vector<std::size_t> order = ByPrice(items, need);
  Cover out = GreedyCover(items, order, need);
  out.lower_bound = std::min(out.cost, RelaxedCost(items, order, need));
  return out;
}

namespace {

using timeline::StateBlock;
using timeline::StateSegment;

constexpr std::uint64_t kNoOrder = std::numeric_limits<std::uint64_t>::max();

// Blocks [begin, end) of one segment, counted through the whole state.
struct BlockRun {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint64_t bytes = kNoOrder;  // kNoOrder: there is none

  bool IsFound() const { return bytes != kNoOrder; }
};

// The cheapest run of blocks of one segment behind whose release a free run of the lane is large enough. A run begins
// right behind a block that stays (or at the segment) and ends right before one, so for each beginning the shortest
// sufficient end is the cheapest, and both ends only move forward.
class CheapestRun {
 public:
  CheapestRun(const RequestLane& lane, const DeviceRoom& room) : lane_(lane), room_(room) {}

  void Search(const StateSegment& segment, std::size_t first) {
    if (!lane_.Owns(segment)) return;
    const std::vector<StateBlock>& blocks = segment.blocks;
    std::size_t end = 0;      // blocks[begin, end) are released
    std::uint64_t bytes = 0;  // of those
    for (std::size_t begin = 0; begin <= blocks.size(); ++begin) {
      if (end < begin) end = begin;
      const std::uint64_t from = begin == 0 ? segment.address : blocks[begin - 1].End();
      while (Reach(segment, from, end) < lane_.rounded_bytes() && end < blocks.size() && IsLive(blocks[end])) {
        bytes += blocks[end++].size_bytes;
      }
      if (Serves(segment, from, end)) Offer({first + begin, first + end, bytes});
      if (end > begin) bytes -= blocks[begin].size_bytes;
    }
  }

  const BlockRun& best() const { return best_; }

 private:
  static bool IsLive(const StateBlock& block) { return block.state == trace::BlockState::kLive; }

  static std::uint64_t RunBytes(const StateSegment& segment, std::uint64_t from, std::size_t end) {
    return (end == segment.blocks.size() ? segment.End() : segment.blocks[end].address) - from;
  }

  // The run from `from` to the block `end`, and the new pages that an expandable segment's end can get behind it.
  std::uint64_t Reach(const StateSegment& segment, std::uint64_t from, std::size_t end) const {
    const bool can_grow = segment.is_expandable && end == segment.blocks.size();
    return RunBytes(segment, from, end) + (can_grow ? RoundDown(room_.least_bytes, lane_.page_bytes()) : 0);
  }

  bool Serves(const StateSegment& segment, std::uint64_t from, std::size_t end) const {
    const std::uint64_t run_bytes = RunBytes(segment, from, end);
    if (run_bytes >= lane_.rounded_bytes()) return lane_.FitsIn(run_bytes);
    return Reach(segment, from, end) >= lane_.rounded_bytes();
  }

  void Offer(const BlockRun& run) {
    if (run.bytes < best_.bytes) best_ = run;
  }

  const RequestLane& lane_;
  const DeviceRoom& room_;
  BlockRun best_;
};

// Emptying segment i gives its bytes back to the device at the price of its live blocks. What is pending is waited for
// by the ladder itself.
std::vector<CoverItem> EmptyingItems(const timeline::State& state, bool with_private_pools) {
  std::vector<CoverItem> items;
  for (const StateSegment& segment : state.segments) {
    CoverItem& item = items.emplace_back();
    if (!segment.pool.IsDefault() && !with_private_pools) continue;
    item.gain = segment.size_bytes;
    for (const StateBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive) item.cost += block.size_bytes;
    }
  }
  return items;
}

std::uint64_t NeedBeyond(std::uint64_t wanted, std::uint64_t room) { return wanted > room ? wanted - room : 0; }

bool HasExpandable(const timeline::State& state) {
  return std::any_of(state.segments.begin(), state.segments.end(),
                     [](const StateSegment& segment) { return segment.is_expandable; });
}

// Whatever is placed wherever: the request needs as many bytes as it has, and free ones there are only so many.
std::uint64_t BoundOfAnyPlacement(const RequestLane& lane, const timeline::State& state, const DeviceRoom& room) {
  std::uint64_t free_bytes = room.most_bytes;
  for (const StateSegment& segment : state.segments) {
    free_bytes += segment.size_bytes;
    for (const StateBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive) free_bytes -= block.size_bytes;
    }
  }
  return NeedBeyond(lane.rounded_bytes(), free_bytes);
}

std::uint64_t LowerBound(const RequestLane& lane, const timeline::State& state, const DeviceRoom& room,
                         const BlockRun& run) {
  if (HasExpandable(state)) return BoundOfAnyPlacement(lane, state, room);
  const std::optional<Cover> cover = CheapestCover(EmptyingItems(state, /*with_private_pools=*/true),
                                                   NeedBeyond(lane.segment_bytes(), room.most_bytes));
  return std::min(cover.has_value() ? cover->lower_bound : kNoOrder, run.bytes);
}

std::vector<std::size_t> BlocksOfRun(const BlockRun& run, absl::Span<const std::size_t> active) {
  return {active.begin() + static_cast<std::ptrdiff_t>(run.begin),
          active.begin() + static_cast<std::ptrdiff_t>(run.end)};
}

std::vector<std::size_t> BlocksOfSegments(const Cover& cover, const timeline::State& state,
                                          absl::Span<const std::size_t> active) {
  std::vector<std::size_t> out;
  std::size_t first = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < state.segments.size(); ++i) {
    const std::vector<StateBlock>& blocks = state.segments[i].blocks;
    if (next < cover.items.size() && cover.items[next] == i) {
      ++next;
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        if (blocks[k].state == trace::BlockState::kLive) out.push_back(active[first + k]);
      }
    }
    first += blocks.size();
  }
  return out;
}

}  // namespace

std::optional<ReleaseSet> FindReleaseSet(const RequestLane& lane, const timeline::State& state,
                                         absl::Span<const std::size_t> active, const DeviceRoom& room) {
  CheapestRun runs(lane, room);
  std::size_t first = 0;
  for (const StateSegment& segment : state.segments) {
    runs.Search(segment, first);
    first += segment.blocks.size();
  }
  const BlockRun& run = runs.best();
  const std::uint64_t wanted =
      lane.options().expandable_segments ? RoundUp(lane.rounded_bytes(), lane.page_bytes()) : lane.segment_bytes();
  const std::optional<Cover> cover =
      CheapestCover(EmptyingItems(state, /*with_private_pools=*/false), NeedBeyond(wanted, room.least_bytes));
  if (!run.IsFound() && !cover.has_value()) return std::nullopt;
  ReleaseSet out;
  out.is_one_run = run.IsFound() && (!cover.has_value() || run.bytes <= cover->cost);
  out.bytes = out.is_one_run ? run.bytes : cover->cost;
  out.blocks = out.is_one_run ? BlocksOfRun(run, active) : BlocksOfSegments(*cover, state, active);
  std::sort(out.blocks.begin(), out.blocks.end());
  out.lower_bound_bytes = std::min(out.bytes, LowerBound(lane, state, room, run));
  out.is_minimal = out.lower_bound_bytes == out.bytes;
  return out;
}

}  // namespace ashlar::analyses
