#include "analyzer/analyses/failure/cheapest_cover.h"

#include <algorithm>
#include <limits>
#include <numeric>

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

}  // namespace ashlar::analyses
