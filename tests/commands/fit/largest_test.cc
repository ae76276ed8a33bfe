// The largest value that fits: what is tried, and in how many rounds.
#include "commands/fit/largest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::answers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Found {
  std::optional<std::uint64_t> largest, least_that_fails;
  std::size_t rounds = 0;
  std::set<std::uint64_t> told;
};

Found FindLargest(const LargestSearch::Range& range, std::uint64_t fits_up_to, std::size_t at_once) {
  Found out;
  LargestSearch search(range);
  for (auto next = search.Next(at_once); !next.empty(); next = search.Next(at_once)) {
    ++out.rounds;
    EXPECT_LE(next.size(), at_once);
    for (const std::uint64_t value : next) {
      EXPECT_GE(value, range.least);
      EXPECT_LE(value, range.most);
      EXPECT_TRUE(out.told.insert(value).second) << value << " is tried twice";
      search.Tell(value, value <= fits_up_to);
    }
  }
  out.largest = search.largest();
  out.least_that_fails = search.least_that_fails();
  return out;
}

TEST(LargestSearchTest, IsRightOfEveryRangeStartAndLimit) {
  for (const std::size_t at_once : {1U, 2U, 3U, 5U}) {
    for (std::uint64_t most = 1; most < 24; ++most) {
      for (std::uint64_t start = 1; start <= most; ++start) {
        for (std::uint64_t limit = 0; limit <= most + 1; ++limit) {
          const Found found = FindLargest({.least = 1, .most = most, .start = start}, limit, at_once);
          const std::uint64_t right = std::min(limit, most);
          ASSERT_EQ(found.largest.value_or(0), right) << most << " from " << start << " with " << limit;
          if (right < most) {
            ASSERT_EQ(found.least_that_fails, right + 1);
            ASSERT_TRUE(found.told.contains(right + 1));
          }
        }
      }
    }
  }
}

TEST(LargestSearchTest, TriesNothingFarAboveWhatFails) {
  const Found found = FindLargest({.least = 1, .most = 1000000, .start = 8}, 100, 1);
  EXPECT_EQ(found.largest, 100);
  EXPECT_LE(*found.told.rbegin(), 128);
  EXPECT_LE(found.rounds, 11U);
}

TEST(LargestSearchTest, RunsSideBySideTakeFewerRounds) {
  const LargestSearch::Range range = {.least = 1, .most = 100000, .start = 1};
  EXPECT_LT(FindLargest(range, 5000, 4).rounds, FindLargest(range, 5000, 1).rounds * 2 / 3);
}

TEST(LargestSearchTest, ALargerOneThatFitsAfterAllIsBelieved) {
  LargestSearch search({.least = 1, .most = 16, .start = 4});
  search.Tell(4, true);
  search.Tell(8, false);
  search.Tell(16, true);
  EXPECT_EQ(search.largest(), 16);
  EXPECT_THAT(search.Next(2), IsEmpty());
}

TEST(LargestSearchTest, BeginsWhereItIsTold) {
  const LargestSearch search({.least = 1, .most = 64, .start = 24});
  EXPECT_THAT(search.Next(3), ElementsAre(24, 48, 64));
}

}  // namespace
}  // namespace ashlar::answers
