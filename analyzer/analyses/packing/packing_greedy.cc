#include "analyzer/analyses/packing/packing_greedy.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace ashlar::analyses {
namespace {

using trace::Lifetime;
using Index = std::uint32_t;

constexpr std::size_t kMostRounds = 400;

std::vector<Index> Sorted(absl::Span<const Lifetime> buffers, auto before) {
  std::vector<Index> order(buffers.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return before(buffers[a], buffers[b]); });
  return order;
}

// The holes below the top of what is in use, by offset and by size.
class Holes {
 public:
  std::uint64_t Take(std::uint64_t size) {
    const auto it = by_size_.lower_bound({size, 0});
    if (it == by_size_.end()) return std::exchange(top_, top_ + size);
    const auto [hole_size, offset] = *it;
    Remove(offset, hole_size);
    if (hole_size > size) Insert(offset + size, hole_size - size);
    return offset;
  }

  void Return(std::uint64_t offset, std::uint64_t size) {
    auto above = by_offset_.lower_bound(offset);
    if (above != by_offset_.begin()) {
      const auto below = std::prev(above);
      if (below->first + below->second == offset) {
        offset = below->first;
        size += below->second;
        Remove(below->first, below->second);
        above = by_offset_.lower_bound(offset);
      }
    }
    if (above != by_offset_.end() && offset + size == above->first) {
      size += above->second;
      Remove(above->first, above->second);
    }
    if (offset + size == top_) {
      top_ = offset;
    } else {
      Insert(offset, size);
    }
  }

  std::uint64_t top() const { return top_; }

 private:
  void Insert(std::uint64_t offset, std::uint64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void Remove(std::uint64_t offset, std::uint64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<std::uint64_t, std::uint64_t> by_offset_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
  std::uint64_t top_ = 0;
};

// The placed buffers by lifetime: an interval tree over the array of all of them, by lower end; a node knows the latest
// upper end among the placed ones of its range.
class PlacedIndex {
 public:
  explicit PlacedIndex(absl::Span<const Lifetime> buffers)
      : buffers_(buffers),
        order_(Sorted(buffers, [](const Lifetime& a, const Lifetime& b) { return a.lower < b.lower; })),
        position_(buffers.size()),
        latest_(buffers.size()),
        is_placed_(buffers.size()) {
    for (Index i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  }

  void Clear() {
    std::fill(latest_.begin(), latest_.end(), INT64_MIN);
    std::fill(is_placed_.begin(), is_placed_.end(), char{0});
  }

  void Place(Index buffer) {
    const std::size_t at = position_[buffer];
    is_placed_[at] = 1;
    for (std::size_t low = 0, high = order_.size(); low < high;) {
      const std::size_t middle = low + (high - low) / 2;
      latest_[middle] = std::max(latest_[middle], buffers_[buffer].upper);
      if (middle == at) break;
      (at < middle ? high : low) = at < middle ? middle : middle + 1;
    }
  }

  template <typename Visit>
  void VisitMeeting(const Lifetime& lifetime, Visit visit) const {
    VisitRange(0, order_.size(), lifetime, visit);
  }

 private:
  template <typename Visit>
  void VisitRange(std::size_t low, std::size_t high, const Lifetime& lifetime, Visit& visit) const {
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (latest_[middle] <= lifetime.lower) return;
      VisitRange(low, middle, lifetime, visit);
      const Lifetime& other = buffers_[order_[middle]];
      if (other.lower >= lifetime.upper) return;
      if (is_placed_[middle] != 0 && other.upper > lifetime.lower) visit(order_[middle]);
      low = middle + 1;
    }
  }

  absl::Span<const Lifetime> buffers_;
  std::vector<Index> order_;
  std::vector<std::size_t> position_;
  std::vector<std::int64_t> latest_;
  std::vector<char> is_placed_;
};

// Pairs of buffers that are alive together.
std::uint64_t CountPairs(absl::Span<const Lifetime> buffers) {
  std::vector<std::int64_t> lowers, uppers;
  for (const Lifetime& buffer : buffers) {
    lowers.push_back(buffer.lower);
    uppers.push_back(buffer.upper);
  }
  std::sort(lowers.begin(), lowers.end());
  std::sort(uppers.begin(), uppers.end());
  std::uint64_t pairs = 0;
  std::size_t ended = 0;
  for (std::size_t begun = 0; begun < lowers.size(); ++begun) {
    while (uppers[ended] <= lowers[begun]) ++ended;
    pairs += begun - ended;
  }
  return pairs;
}

GreedyPacking PlaceInOrder(absl::Span<const Lifetime> buffers, const std::vector<Index>& order, PlacedIndex& placed) {
  GreedyPacking out{std::vector<std::uint64_t>(buffers.size()), 0};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
  placed.Clear();
  for (const Index index : order) {
    taken.clear();
    placed.VisitMeeting(buffers[index], [&](Index other) {
      taken.emplace_back(out.offsets[other], out.offsets[other] + buffers[other].size);
    });
    std::sort(taken.begin(), taken.end());
    std::uint64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin >= offset + buffers[index].size) break;
      offset = std::max(offset, end);
    }
    out.offsets[index] = offset;
    out.height = std::max(out.height, offset + buffers[index].size);
    placed.Place(index);
  }
  return out;
}

}  // namespace

GreedyPacking PackInTimeOrder(absl::Span<const Lifetime> buffers) {
  GreedyPacking out{std::vector<std::uint64_t>(buffers.size()), 0};
  const std::vector<Index> begins = Sorted(buffers, [](const Lifetime& a, const Lifetime& b) {
    return a.lower != b.lower ? a.lower < b.lower : a.size > b.size;
  });
  const std::vector<Index> ends =
      Sorted(buffers, [](const Lifetime& a, const Lifetime& b) { return a.upper < b.upper; });
  Holes holes;
  std::size_t ended = 0;
  for (const Index index : begins) {
    for (; buffers[ends[ended]].upper <= buffers[index].lower; ++ended) {
      holes.Return(out.offsets[ends[ended]], buffers[ends[ended]].size);
    }
    out.offsets[index] = holes.Take(buffers[index].size);
    out.height = std::max(out.height, holes.top());
  }
  return out;
}

GreedyPacking PackByPriority(absl::Span<const Lifetime> buffers, std::uint64_t target, std::uint64_t max_pairs) {
  GreedyPacking best;
  best.height = UINT64_MAX;
  const std::uint64_t pass = CountPairs(buffers) + buffers.size();
  const auto length = [](const Lifetime& b) { return static_cast<double>(b.upper - b.lower); };
  const auto area = [&](const Lifetime& b) { return length(b) * static_cast<double>(b.size); };
  std::vector<std::vector<Index>> orders = {
      Sorted(buffers, [&](const Lifetime& a, const Lifetime& b) { return area(a) > area(b); }),
      Sorted(buffers, [](const Lifetime& a, const Lifetime& b) { return a.size > b.size; }),
      Sorted(buffers, [&](const Lifetime& a, const Lifetime& b) { return length(a) > length(b); })};
  PlacedIndex placed(buffers);
  std::uint64_t spent = 0;
  for (std::size_t round = 0; round < kMostRounds && best.height > target; ++round) {
    spent += pass;
    if (spent > max_pairs) break;
    std::vector<Index>& order = orders[round % orders.size()];
    GreedyPacking now = PlaceInOrder(buffers, order, placed);
    std::stable_partition(order.begin(), order.end(),
                          [&](Index index) { return now.offsets[index] + buffers[index].size > target; });
    if (now.height < best.height) best = std::move(now);
  }
  return best;
}

}  // namespace ashlar::analyses
