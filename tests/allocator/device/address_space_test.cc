// AddressSpace against a map with a flag for each byte.
#include "allocator/device/address_space.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "gtest/gtest.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kBegin = 1000;
constexpr std::uint64_t kEnd = 1200;

class ByteMap {
 public:
  bool IsFree(std::uint64_t address, std::uint64_t size_bytes) const {
    for (std::uint64_t at = address; at < address + size_bytes; ++at) {
      if (at < kBegin || at >= kEnd || taken_[at - kBegin]) return false;
    }
    return true;
  }
  void Set(std::uint64_t address, std::uint64_t size_bytes, bool is_taken) {
    for (std::uint64_t at = address; at < address + size_bytes; ++at) taken_[at - kBegin] = is_taken;
  }
  std::optional<std::uint64_t> Find(std::uint64_t size_bytes, std::uint64_t lowest, AddressOrder order) const {
    std::optional<std::uint64_t> found;
    for (std::uint64_t at = kBegin; at + size_bytes <= kEnd; ++at) {
      if (at < lowest || !IsFree(at, size_bytes)) continue;
      if (order == AddressOrder::kAscending) return at;
      found = at;
    }
    return found;
  }

 private:
  std::vector<bool> taken_ = std::vector<bool>(kEnd - kBegin);
};

void RandomRun(std::uint64_t seed, AddressOrder order) {
  Rng rng(seed);
  AddressSpace space(kBegin, kEnd, order);
  ByteMap bytes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> live;
  for (int step = 0; step < 400; ++step) {
    const std::uint64_t size_bytes = rng.Between(1, rng.Below(4) == 0 ? 80 : 20);
    const std::uint64_t dice = rng.Below(10);
    std::optional<std::uint64_t> taken;
    if (dice < 4) {
      const std::uint64_t lowest = rng.Below(2) == 0 ? 0 : rng.Between(kBegin - 10, kEnd + 10);
      const std::optional<std::uint64_t> expected = bytes.Find(size_bytes, lowest, order);
      taken = space.Take(size_bytes, lowest);
      ASSERT_EQ(taken, expected) << "seed " << seed << " step " << step << ": Take(" << size_bytes << ", " << lowest
                                 << ")";
    } else if (dice < 6) {
      const std::uint64_t address = rng.Between(kBegin - 10, kEnd + 10);
      const bool is_free = bytes.IsFree(address, size_bytes);
      ASSERT_EQ(space.TakeAt(address, size_bytes), is_free) << "seed " << seed << " step " << step << ": " << address;
      if (is_free) taken = address;
    } else if (!live.empty()) {
      const std::size_t at = rng.Below(live.size());
      space.Give(live[at].first, live[at].second);
      bytes.Set(live[at].first, live[at].second, false);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (!taken) continue;
    bytes.Set(*taken, size_bytes, true);
    live.emplace_back(*taken, size_bytes);
  }
}

TEST(AddressSpaceTest, AscendingLikeAByteMap) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) RandomRun(seed, AddressOrder::kAscending);
}

TEST(AddressSpaceTest, DescendingLikeAByteMap) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) RandomRun(seed, AddressOrder::kDescending);
}

TEST(AddressSpaceTest, GivingEverythingBackJoinsTheRanges) {
  AddressSpace space(kBegin, kEnd, AddressOrder::kAscending);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(space.Take(10), kBegin + 10 * static_cast<std::uint64_t>(i));
  EXPECT_EQ(space.Take(1), std::nullopt);
  for (const std::uint64_t i : {3, 5, 4, 0, 19, 1, 2, 6, 18, 7, 17, 8, 9, 16, 10, 12, 11, 14, 13, 15}) {
    space.Give(kBegin + 10 * i, 10);
  }
  EXPECT_EQ(space.Take(kEnd - kBegin), kBegin);
}

}  // namespace
}  // namespace ashlar::device
