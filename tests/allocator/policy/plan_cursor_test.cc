// A cursor over plans drawn by hand: what it says of programs that keep to the plan, and of those that do not.
#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/policy/placement_plan.h"
#include "gtest/gtest.h"

namespace ashlar::policy {
namespace {

// Numbers of the requests: 2, 3 prologue; 4, 5, 6 one kind of step; 7, 8 the other.
LanePlan Steps() {
  LanePlan lane;
  lane.segment_bytes = kGiB;
  lane.requests = {{0, {}, {2}},        {0, {}, {4, 7}},      {40 * kMiB, {}, {3}},
                   {50 * kMiB, {}, {}}, {10 * kMiB, {}, {5}}, {20 * kMiB, {}, {6}},
                   {30 * kMiB, {}, {}}, {16 * kMiB, {}, {8}}, {32 * kMiB, {}, {}}};
  return lane;
}

std::vector<int> Followed(const std::vector<std::uint64_t>& mebibytes) {
  const LanePlan lane = Steps();
  PlanCursor cursor(lane);
  std::vector<int> out;
  for (const std::uint64_t mib : mebibytes) {
    const std::uint32_t number = cursor.NextNumber(mib * kMiB);
    out.push_back(number == PlanCursor::kNone ? -1 : static_cast<int>(number));
  }
  return out;
}

using Numbers = std::vector<int>;

TEST(PlanCursorTest, FollowsThePrologueAndThenEitherKindOfStep) {
  EXPECT_EQ(Followed({40, 50, 10, 20, 30, 16, 32, 16, 32, 10, 20, 30}), (Numbers{2, 3, 4, 5, 6, 7, 8, 7, 8, 4, 5, 6}));
}

TEST(PlanCursorTest, AShorterRequestTakesTheNextLargerOnesPlace) {
  EXPECT_EQ(Followed({40, 50, 15, 31, 9, 19, 29}), (Numbers{2, 3, 7, 8, 4, 5, 6}));
}

TEST(PlanCursorTest, ALongerRequestHasNoPlace) { EXPECT_EQ(Followed({40, 50, 17, 16}), (Numbers{2, 3, -1, 7})); }

TEST(PlanCursorTest, WhatIsLeftOutIsPassedOver) { EXPECT_EQ(Followed({50, 10, 30, 16}), (Numbers{3, 4, 6, 7})); }

TEST(PlanCursorTest, WhatComesInBetweenIsPassedOver) {
  EXPECT_EQ(Followed({40, 99, 98, 50, 10, 97, 20, 30}), (Numbers{2, -1, -1, 3, 4, -1, 5, 6}));
}

TEST(PlanCursorTest, AStrangerStandsForAPlannedRequest) {
  EXPECT_EQ(Followed({40, 50, 10, 21, 29, 16}), (Numbers{2, 3, 4, -1, 6, 7})) << "29 takes the place of 30";
}

TEST(PlanCursorTest, AfterManyStrangersTheNextStepBeginsAnew) {
  std::vector<std::uint64_t> program = {40};
  Numbers expected = {2};
  for (int i = 0; i < 65; ++i) {
    program.push_back(100 + static_cast<std::uint64_t>(i));
    expected.push_back(-1);
  }
  program.insert(program.end(), {10, 20, 30});
  expected.insert(expected.end(), {4, 5, 6});
  EXPECT_EQ(Followed(program), expected);
}

TEST(PlanCursorTest, APlanWithoutStepsIsFollowedOnce) {
  LanePlan lane;
  lane.segment_bytes = kGiB;
  lane.requests = {{0, {}, {2}}, {}, {4 * kMiB, {}, {}}};
  PlanCursor cursor(lane);
  EXPECT_EQ(cursor.NextNumber(4 * kMiB), 2u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(cursor.NextNumber(4 * kMiB), PlanCursor::kNone);
}

}  // namespace
}  // namespace ashlar::policy
