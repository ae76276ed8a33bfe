#include "analyzer/analyses/packing/packing_greedy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "allocator/base/check.h"

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

namespace {

using Index = PlacedIndex::Index;

constexpr std::size_t kMostSlotRounds = 200;
constexpr std::uint64_t kMostSlotPairs = 100'000'000;  // looked at: some seconds
constexpr double kGoodEnough = 1.001;                  // of the lower bound: no other way is tried

// Every life of every slot as a buffer.
struct Lives {
  explicit Lives(absl::Span<const Slot> slots) {
    for (const Slot& slot : slots) {
      first.push_back(static_cast<Index>(buffers.size()));
      for (const auto& [lower, upper] : slot.lives) buffers.push_back({lower, upper, slot.size});
      owner.resize(buffers.size(), static_cast<Index>(first.size() - 1));
    }
    first.push_back(static_cast<Index>(buffers.size()));
  }

  std::vector<std::uint64_t> Offsets(const std::vector<std::uint64_t>& of_slots) const {
    std::vector<std::uint64_t> out;
    for (const Index slot : owner) out.push_back(of_slots[slot]);
    return out;
  }

  std::vector<Lifetime> buffers;
  std::vector<Index> owner;  // of a buffer: its slot
  std::vector<Index> first;  // of a slot: its first buffer; one more at the end
};

class SlotPacker {
 public:
  SlotPacker(absl::Span<const Slot> slots, const Lives& lives) : slots_(slots), lives_(lives), placed_(lives.buffers) {}

  // One slot after another at the lowest offset that those before it leave free in all its lives.
  void PlaceInOrder(const std::vector<Index>& order) {
    now_.offsets.assign(slots_.size(), 0);
    now_.height = 0;
    placed_.Clear();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (const Index slot : order) {
      taken.clear();
      for (Index life = lives_.first[slot]; life < lives_.first[slot + 1]; ++life) {
        placed_.VisitMeeting(lives_.buffers[life], [&](Index other) {
          const std::uint64_t offset = now_.offsets[lives_.owner[other]];
          taken.emplace_back(offset, offset + lives_.buffers[other].size);
        });
      }
      std::sort(taken.begin(), taken.end());
      std::uint64_t offset = 0;
      for (const auto& [begin, end] : taken) {
        if (begin >= offset + slots_[slot].size) break;
        offset = std::max(offset, end);
      }
      now_.offsets[slot] = offset;
      now_.height = std::max(now_.height, offset + slots_[slot].size);
      for (Index life = lives_.first[slot]; life < lives_.first[slot + 1]; ++life) placed_.Place(life);
    }
  }

  // By area, size and length; then what lies above the target comes first, and again.
  void Improve(std::uint64_t target, Packing& best) {
    const std::uint64_t pass = CountPairs(lives_.buffers) + lives_.buffers.size();
    std::array<std::vector<Index>, 4> orders = {
        OrderBy([&](Index slot) { return Length(slot) * static_cast<double>(slots_[slot].size); }),
        OrderBy([&](Index slot) { return static_cast<double>(slots_[slot].size); }),
        OrderBy([&](Index slot) { return Length(slot); }),
        OrderBy([&](Index slot) { return -static_cast<double>(slots_[slot].lives.front().first); })};
    std::uint64_t spent = 0;
    for (std::size_t round = 0; round < kMostSlotRounds && best.height > target; ++round) {
      if (round > 0 && (spent += pass) > kMostSlotPairs) return;
      std::vector<Index>& order = orders[round % orders.size()];
      PlaceInOrder(order);
      std::stable_partition(order.begin(), order.end(),
                            [&](Index slot) { return now_.offsets[slot] + slots_[slot].size > target; });
      if (now_.height >= best.height) continue;
      best.offsets = now_.offsets;
      best.height = now_.height;
    }
  }

 private:
  double Length(Index slot) const {
    std::int64_t sum = 0;
    for (const auto& [lower, upper] : slots_[slot].lives) sum += upper - lower;
    return static_cast<double>(sum);
  }
  template <typename Weight>
  std::vector<Index> OrderBy(Weight weight) const {
    std::vector<Index> order(slots_.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return weight(a) > weight(b); });
    return order;
  }

  absl::Span<const Slot> slots_;
  const Lives& lives_;
  PlacedIndex placed_;
  Packing now_;
};

// Packs one life of each slot as if it had no other, which is often a packing of all: steps are alike.
void TryOneLife(absl::Span<const Slot> slots, const Lives& lives, std::size_t which, const PackOptions& options,
                Packing& best) {
  std::vector<Lifetime> one;
  for (const Slot& slot : slots) {
    const auto& [lower, upper] = slot.lives[std::min(which, slot.lives.size() - 1)];
    one.push_back({lower, upper, slot.size});
  }
  const Packing packing = Pack(one, options);
  best.steps += packing.steps;
  if (packing.height >= best.height) return;
  if (!CheckPacking(lives.buffers, lives.Offsets(packing.offsets), packing.height).ok()) return;
  best.offsets = packing.offsets;
  best.height = packing.height;
}

}  // namespace

Packing PackSlots(absl::Span<const Slot> slots, const PackOptions& options) {
  const Lives lives(slots);
  Packing best;
  best.offsets.resize(slots.size());
  best.lower_bound = LiveLowerBound(lives.buffers);
  if (slots.empty()) return best;
  best.height = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t target = std::max(best.lower_bound, options.target_height.value_or(0));
  if (lives.buffers.size() == slots.size()) {
    TryOneLife(slots, lives, 0, options, best);
  } else {
    const auto good = static_cast<std::uint64_t>(static_cast<double>(target) * kGoodEnough);
    SlotPacker(slots, lives).Improve(good, best);
    for (const std::size_t which : {std::size_t{1}, std::size_t{0}}) {
      if (best.height > good) TryOneLife(slots, lives, which, options, best);
    }
  }
  const absl::Status check = CheckPacking(lives.buffers, lives.Offsets(best.offsets), best.height);
  ASHLAR_CHECK(check.ok());
  return best;
}

}  // namespace ashlar::analyses
