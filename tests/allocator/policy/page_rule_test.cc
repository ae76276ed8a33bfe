// The page rule: few large pages while there is room, small ones where it gets scarce, and PyTorch's pages untouched.
#include "allocator/base/rng.h"
#include "allocator/policy/ashlar_strategy.h"
#include "allocator/policy/strategy.h"
#include "gtest/gtest.h"

namespace ashlar::policy {
namespace {

GrowthSize Grow(const GrowthNeed& need) { return AshlarStrategy().SizeOf(need); }

// In the large pool, at the end of a reservation.
GrowthSize Grow(std::uint64_t wanted_bytes, std::uint64_t reserved_bytes, std::uint64_t spare_bytes) {
  return Grow({wanted_bytes, /*room_bytes=*/90 * kGiB, reserved_bytes, spare_bytes, /*page_bytes=*/2 * kMiB});
}

TEST(PageRuleTest, PagesAreLargeWhileThereIsRoom) {
  const GrowthSize size = Grow(40 * kMiB, 3 * kGiB, 20 * kGiB);
  EXPECT_EQ(size.page_bytes, 32 * kMiB);
  EXPECT_EQ(size.size_bytes, 64 * kMiB);
}

TEST(PageRuleTest, AndSmallWhereItIsScarce) {
  const GrowthSize size = Grow(39 * kMiB, 23 * kGiB, 300 * kMiB);
  EXPECT_EQ(size.page_bytes, 2 * kMiB);
  EXPECT_EQ(size.size_bytes, 40 * kMiB);
}

TEST(PageRuleTest, AProgramThatHoldsLittleIsGivenLittle) {
  EXPECT_LE(Grow(5 * kMiB, 20 * kMiB, 80 * kGiB).size_bytes, 8 * kMiB);
}

TEST(PageRuleTest, SizesAreWholePagesWithinTheRoomAndTheirOverhangIsASmallShare) {
  Rng rng(1);
  for (int i = 0; i < 100'000; ++i) {
    GrowthNeed need{.wanted_bytes = rng.Between(1, 512 * kMiB),
                    .reserved_bytes = rng.Below(100 * kGiB),
                    .spare_bytes = rng.Below(100 * kGiB),
                    .page_bytes = 2 * kMiB,
                    .is_small = rng.Below(2) == 0};
    need.room_bytes = RoundUp(need.wanted_bytes, need.page_bytes) + rng.Below(8) * need.page_bytes;
    const GrowthSize size = Grow(need);
    ASSERT_EQ(size.page_bytes % need.page_bytes, 0u);
    ASSERT_EQ(size.size_bytes % size.page_bytes, 0u);
    ASSERT_GT(size.size_bytes, 0u);
    ASSERT_LE(size.size_bytes, need.room_bytes);
    if (size.page_bytes == need.page_bytes) {
      ASSERT_EQ(size.size_bytes, LeastGrowth(need).size_bytes);
    } else {
      ASSERT_LE(size.page_bytes, need.spare_bytes / kSpareShare);
    }
  }
}

TEST(PageRuleTest, PyTorchsPagesAreItsOwn) {
  const GrowthNeed need{
      .wanted_bytes = 41 * kMiB, .room_bytes = 90 * kGiB, .spare_bytes = 80 * kGiB, .page_bytes = 20 * kMiB};
  EXPECT_EQ(TorchStrategy().SizeOf(need).size_bytes, 60 * kMiB);
  EXPECT_EQ(TorchStrategy().SizeOf(need).page_bytes, 20 * kMiB);
}

}  // namespace
}  // namespace ashlar::policy
