#include "analyzer/analyses/packing/packing_slots.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <numeric>

#include "allocator/base/check.h"
#include "analyzer/analyses/packing/placed_index.h"

namespace ashlar::analyses {
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
