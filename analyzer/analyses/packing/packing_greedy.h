// Quick packings: one buffer after another, each at the lowest offset that those placed before leave free.
#ifndef ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_GREEDY_H_
#define ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_GREEDY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/packing/packing.h"

namespace ashlar::analyses {

// Which of the buffers placed so far are alive together with another: what the greedy packers ask for each that they
// place.
//
//   PlacedIndex placed(buffers);
//   placed.VisitMeeting(buffers[i], [](PlacedIndex::Index other) { ... });
//   placed.Place(i);

using trace::Lifetime;

// The numbers of the buffers in the order that `before` says; of equals the lower number first.
template <typename Before>
std::vector<std::uint32_t> SortedBy(absl::Span<const Lifetime> buffers, Before before) {
  std::vector<std::uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return before(buffers[a], buffers[b]); });
  return order;
}

// Pairs of buffers that are alive together.
std::uint64_t CountPairs(absl::Span<const Lifetime> buffers);

// The placed buffers by lifetime: an interval tree over the array of all of them, by lower end; a node knows the latest
// upper end among the placed ones of its range.
class PlacedIndex {
 public:
  using Index = std::uint32_t;

  explicit PlacedIndex(absl::Span<const Lifetime> buffers)
      : buffers_(buffers),
        order_(SortedBy(buffers, [](const Lifetime& a, const Lifetime& b) { return a.lower < b.lower; })),
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

struct GreedyPacking {
  std::vector<std::uint64_t> offsets = {};
  std::uint64_t height = 0;
};

// In order of time, each into the smallest hole that serves it: what a perfect best fit without segments would do.
// O(n log n).
GreedyPacking PackInTimeOrder(absl::Span<const trace::Lifetime> buffers);

// Tries the largest area, size and length first, then moves what lies above `target` to the front and tries again,
// until the target is reached or about `max_pairs` pairs of buffers alive together were looked at; not at all where
// one pass would cost more.
GreedyPacking PackByPriority(absl::Span<const trace::Lifetime> buffers, std::uint64_t target, std::uint64_t max_pairs);

// Packing of slots: buffers that come back. A slot is alive several times, always at the same offset, as the same
// request of every step of a run is.
//
//   memory
//     ^   +---+       +---+         slot 1: alive twice
//     |   | 1 +---+   | 1 +---+     slot 2: alive twice, between the two of slot 1 and after
//     |   +---+ 2 |   +---+ 2 |
//     +-------+---+-------+---+--> time
//
// Units as in packing.h. The lives of one slot must not meet.
struct Slot {
  std::uint64_t size = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> lives = {};  // lower, upper; half-open
};

// One offset a slot. Checked: no two lives overlap.
Packing PackSlots(absl::Span<const Slot> slots, const PackOptions& options);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_GREEDY_H_
