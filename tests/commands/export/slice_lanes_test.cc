#include <algorithm>
#include <vector>

#include "allocator/base/rng.h"
#include "commands/export/perfetto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::exports {
namespace {

using testing::ElementsAre;

TEST(SliceLanesTest, WhatOverlapsLiesApart) {
  //   |---- a ----|  |-- c --|
  //        |----- b -----|
  EXPECT_THAT(LanesOf(std::vector<LaneSlice>{{0, 10}, {5, 15}, {12, 20}}, false), ElementsAre(0, 1, 0));
  EXPECT_THAT(LanesOf(std::vector<LaneSlice>{{0, 10}, {10, 20}}, false), ElementsAre(0, 0));
}

TEST(SliceLanesTest, NestingIsForThoseThatMay) {
  const std::vector<LaneSlice> slices = {{2, 4}, {0, 10}, {0, 5}, {4, 6}};
  EXPECT_THAT(LanesOf(slices, true), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(LanesOf(slices, false), ElementsAre(2, 0, 1, 2));
}

// On a lane any two lie apart or, where they may, one in the other: checked pair by pair.
TEST(SliceLanesTest, AnyTwoOfALaneNestOrLieApart) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<LaneSlice> slices;
    for (std::uint64_t i = 0; i < 1 + rng.Below(30); ++i) {
      const auto begin = static_cast<timeline::EventIndex>(rng.Below(40));
      slices.push_back({begin, begin + 1 + static_cast<timeline::EventIndex>(rng.Below(20))});
    }
    for (const bool may_nest : {false, true}) {
      const std::vector<std::size_t> lanes = LanesOf(slices, may_nest);
      for (std::size_t i = 0; i < slices.size(); ++i) {
        for (std::size_t j = i + 1; j < slices.size(); ++j) {
          if (lanes[i] != lanes[j]) continue;
          const LaneSlice &a = slices[i], &b = slices[j];
          const bool apart = a.end <= b.begin || b.end <= a.begin;
          const bool nested = (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
          EXPECT_TRUE(apart || (may_nest && nested)) << round;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ashlar::exports
