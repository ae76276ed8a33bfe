#include <limits>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/failure/release_set.h"
#include "gtest/gtest.h"

namespace ashlar::analyses {
namespace {

// Every subset.
std::optional<std::uint64_t> FewestCost(const std::vector<CoverItem>& items, std::uint64_t need) {
  std::optional<std::uint64_t> best;
  for (std::uint32_t set = 0; set < (std::uint32_t{1} << items.size()); ++set) {
    std::uint64_t gain = 0, cost = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      gain += items[i].gain;
      cost += items[i].cost;
    }
    if (gain >= need && (!best || cost < *best)) best = cost;
  }
  return best;
}

void ExpectCovers(const std::vector<CoverItem>& items, std::uint64_t need, const Cover& cover) {
  std::uint64_t gain = 0, cost = 0;
  for (std::size_t k = 0; k < cover.items.size(); ++k) {
    ASSERT_LT(cover.items[k], items.size());
    EXPECT_TRUE(k == 0 || cover.items[k - 1] < cover.items[k]);
    gain += items[cover.items[k]].gain;
    cost += items[cover.items[k]].cost;
  }
  EXPECT_GE(gain, need);
  EXPECT_EQ(cost, cover.cost);
  EXPECT_LE(cover.lower_bound, cover.cost);
}

TEST(CheapestCoverTest, ByHand) {
  const std::vector<CoverItem> items = {{20, 3}, {20, 5}, {40, 7}, {100, 30}};
  EXPECT_EQ(CheapestCover(items, 20)->items, (std::vector<std::size_t>{0}));
  EXPECT_EQ(CheapestCover(items, 40)->items, (std::vector<std::size_t>{2}));
  EXPECT_EQ(CheapestCover(items, 41)->cost, 10u);   // 40 and 20
  EXPECT_EQ(CheapestCover(items, 80)->cost, 15u);   // all but the last
  EXPECT_EQ(CheapestCover(items, 120)->cost, 33u);  // the last and the cheapest
  EXPECT_EQ(CheapestCover(items, 0)->cost, 0u);
  EXPECT_TRUE(CheapestCover(items, 180).has_value());
  EXPECT_FALSE(CheapestCover(items, 181).has_value());
  EXPECT_FALSE(CheapestCover({}, 1).has_value());
}

TEST(CheapestCoverTest, EqualsExhaustiveSearch) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    std::vector<CoverItem> items(rng.Below(11));
    const std::uint64_t unit = rng.Below(2) == 0 ? 1 : 2 * kMiB;
    std::uint64_t sum = 0;
    for (CoverItem& item : items) {
      item = {rng.Below(30) * unit, rng.Below(40) * rng.Below(3)};
      sum += item.gain;
    }
    const std::uint64_t need = rng.Below(sum + 2 * unit);
    SCOPED_TRACE(seed);
    const std::optional<std::uint64_t> expected = FewestCost(items, need);
    const std::optional<Cover> cover = CheapestCover(items, need);
    const std::optional<Cover> greedy = CheapestCover(items, need, /*most_cells=*/0);
    ASSERT_EQ(cover.has_value(), expected.has_value());
    ASSERT_EQ(greedy.has_value(), expected.has_value());
    if (!expected.has_value()) continue;
    EXPECT_EQ(cover->cost, *expected);
    EXPECT_EQ(cover->lower_bound, *expected);
    ExpectCovers(items, need, *cover);
    ExpectCovers(items, need, *greedy);
    EXPECT_GE(greedy->cost, *expected);
    EXPECT_LE(greedy->lower_bound, *expected);
  }
}

// Too large for the table: the bound still holds the answer from below, and the two are close.
TEST(CheapestCoverTest, ThousandsOfItems) {
  Rng rng(5);
  std::vector<CoverItem> items(4000);
  for (CoverItem& item : items) item = {rng.Between(1, 1000) * 1009 + 1, rng.Between(1, 1000) * 1000};
  const std::optional<Cover> cover = CheapestCover(items, 500'000'000);
  ASSERT_TRUE(cover.has_value());
  ExpectCovers(items, 500'000'000, *cover);
  EXPECT_LT(cover->cost - cover->lower_bound, cover->cost / 100);
}

TEST(CheapestCoverTest, HugeNumbersDoNotWrap) {
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  const std::vector<CoverItem> items = {{huge, 5}, {huge - 1, 4}, {3, 1}};
  const std::optional<Cover> cover = CheapestCover(items, huge);
  ASSERT_TRUE(cover.has_value());
  EXPECT_EQ(cover->cost, 5u);
  EXPECT_EQ(cover->lower_bound, 5u);
}

}  // namespace
}  // namespace ashlar::analyses
