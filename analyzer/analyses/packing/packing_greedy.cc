#include "analyzer/analyses/packing/packing_greedy.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyzer/analyses/packing/placed_index.h"

namespace ashlar::analyses {
namespace {

using Index = PlacedIndex::Index;

constexpr std::size_t kMostRounds = 400;

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

GreedyPacking PackInTimeOrder(absl::Span<const Lifetime> buffers) {
  GreedyPacking out{std::vector<std::uint64_t>(buffers.size()), 0};
  const std::vector<Index> begins = SortedBy(buffers, [](const Lifetime& a, const Lifetime& b) {
    return a.lower != b.lower ? a.lower < b.lower : a.size > b.size;
  });
  const std::vector<Index> ends =
      SortedBy(buffers, [](const Lifetime& a, const Lifetime& b) { return a.upper < b.upper; });
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
      SortedBy(buffers, [&](const Lifetime& a, const Lifetime& b) { return area(a) > area(b); }),
      SortedBy(buffers, [](const Lifetime& a, const Lifetime& b) { return a.size > b.size; }),
      SortedBy(buffers, [&](const Lifetime& a, const Lifetime& b) { return length(a) > length(b); })};
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
