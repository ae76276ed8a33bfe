// Blocks placed at addresses of the caller's choice: random ones, against a plain list of what is taken.
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "allocator/base/rng.h"
#include "allocator/policy/heap.h"
#include "gtest/gtest.h"

namespace ashlar::policy {
namespace {

constexpr std::uint64_t kSegmentAddress = std::uint64_t{1} << 40;
constexpr std::uint64_t kSegmentBytes = 64 * kMiB;

class PlannedSegment {
 public:
  explicit PlannedSegment(Options options) : heap_(std::move(options)) {
    const Decision decision = DecisionOf(kSegmentBytes);
    Heap::OfferFree(heap_.AddSegment(decision, kSegmentAddress, kSegmentBytes));
  }

  // By the list: whether nothing is taken there.
  bool IsFree(std::uint64_t address, std::uint64_t bytes) const {
    if (address + bytes > kSegmentAddress + kSegmentBytes) return false;
    for (const auto& [at, block] : live_) {
      if (at < address + bytes && address < block->End()) return false;
    }
    return true;
  }

  void Place(std::uint64_t address, std::uint64_t bytes, Block* below) {
    Block* block = Heap::FindFreeAt(*heap_.segments().at(kSegmentAddress), below, {address, bytes});
    ASSERT_EQ(block != nullptr, IsFree(address, bytes)) << address - kSegmentAddress << " " << bytes;
    if (block == nullptr) return;
    Decision decision = DecisionOf(bytes);
    decision.place_at = address;
    Heap::TakeFree(block);
    Block* placed = heap_.PlaceAt(decision, block);
    EXPECT_EQ(placed->address, address);
    EXPECT_EQ(placed->size_bytes, bytes);
    live_[address] = placed;
  }
  void Release(std::uint64_t address) {
    Heap::Release(live_.at(address));
    live_.erase(address);
  }
  // What lives at or below the address, if anything does.
  Block* Below(std::uint64_t address) const {
    const auto above = live_.upper_bound(address);
    return above == live_.begin() ? nullptr : std::prev(above)->second;
  }

  Decision DecisionOf(std::uint64_t bytes) { return heap_.Decide({.bytes = bytes, .stream = Stream{1}, .pool = {}}); }
  Heap& heap() { return heap_; }
  std::map<std::uint64_t, Block*>& live() { return live_; }

 private:
  Heap heap_;
  std::map<std::uint64_t, Block*> live_;
};

TEST(HeapPlannedTest, BlocksLieWhereTheyAreWanted) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    Options options;
    if (seed % 3 == 1) options.free_order = FreeOrder::kPerBlockCounter;
    if (seed % 3 == 2) options.free_order = FreeOrder::kPerSegmentCounter;
    if (seed % 2 == 1) options.max_split_size_bytes = 21 * kMiB;
    PlannedSegment segment(options);
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t bytes = 512 * rng.Between(2049, 16'384);
      const std::uint64_t address = kSegmentAddress + 512 * rng.Below(kSegmentBytes / 512);
      if (rng.Below(3) == 0 && !segment.live().empty()) {
        auto at = segment.live().lower_bound(address);
        if (at == segment.live().end()) --at;
        segment.Release(at->first);
      } else {
        ASSERT_NO_FATAL_FAILURE(segment.Place(address, bytes, rng.Below(2) == 0 ? nullptr : segment.Below(address)));
      }
      ASSERT_EQ(segment.heap().Validate(), absl::OkStatus()) << "seed " << seed << " step " << step;
    }
    while (!segment.live().empty()) segment.Release(segment.live().begin()->first);
    ASSERT_EQ(segment.DecisionOf(2 * kMiB).block == nullptr, options.max_split_size_bytes != kUnlimited);
    EXPECT_EQ(segment.heap().segments().at(kSegmentAddress)->first->size_bytes, kSegmentBytes)
        << "one free block again";
  }
}

}  // namespace
}  // namespace ashlar::policy
