// Steps in another order: each asks for what it asked for, in its own order; what it hands on is freed by the step that
// follows it now; and what was recorded from the smallest to the largest then needs less.
#include "analyzer/whatif/step_order.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/what_if.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::whatif {
namespace {

using trace::Op;
using trace::OpKind;
using trace::RequestTrace;

// A training in steps: weights first; each step frees what the last one left, and asks for `blocks` blocks of its size.
struct Training {
  tests::RequestList list = {};
  std::vector<std::size_t> begins = {};
  std::vector<std::uint32_t> left = {};

  void Setup(std::uint64_t bytes) { list.Allocate(bytes); }
  void Begin() { begins.push_back(list.trace().requests.size()); }
  // `hands_on`: of its blocks, those that the next step frees, after its own first request.
  void Step(std::uint64_t bytes, std::size_t blocks, std::size_t hands_on) {
    Begin();
    std::vector<std::uint32_t> own = {list.Allocate(bytes)};
    for (const std::uint32_t id : left) list.Free(id);
    while (own.size() < blocks) own.push_back(list.Allocate(bytes + own.size() * kMiB));
    left.assign(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(hands_on));
    for (std::size_t i = hands_on; i < own.size(); ++i) list.Free(own[i]);
  }
};

// Every id is allocated once, before it is freed, and freed at most once.
void ExpectSound(const RequestTrace& requests) {
  std::set<std::uint32_t> allocated, freed;
  for (const Op& request : requests.requests) {
    if (request.kind == OpKind::kAlloc) {
      EXPECT_TRUE(allocated.insert(request.id).second) << request.id;
    }
    if (request.kind == OpKind::kFree) {
      EXPECT_TRUE(allocated.count(request.id) > 0) << request.id;
      EXPECT_TRUE(freed.insert(request.id).second) << request.id;
    }
  }
}

std::vector<std::uint64_t> SizesOf(const RequestTrace& requests) {
  std::vector<std::uint64_t> out;
  for (const Op& request : requests.requests) {
    if (request.kind == OpKind::kAlloc) out.push_back(request.bytes / kMiB);
  }
  return out;
}

TEST(StepOrderTest, TheLargestComeFirstAndFreeWhatNowLiesBeforeThem) {
  Training training;
  for (const std::uint64_t size : {10, 20, 30, 40, 50}) training.Step(size * kMiB, 2, 1);
  training.Step(60 * kMiB, 2, 2);  // it is cut off
  const std::optional<StepOrder> order = LargestStepsFirst(training.list.trace(), training.begins, true);
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->first, 1u);
  EXPECT_EQ(order->count, 4u);
  // The first and the last stay.
  EXPECT_THAT(SizesOf(order->requests), testing::ElementsAre(10, 11, 50, 51, 40, 41, 30, 31, 20, 21, 60, 61));
  ExpectSound(order->requests);
  // At no time is more than one block handed on.
  std::map<std::uint32_t, std::uint64_t> live;
  for (const Op& request : order->requests.requests) {
    if (request.kind == OpKind::kAlloc) live[request.id] = request.bytes;
    if (request.kind == OpKind::kFree) live.erase(request.id);
    EXPECT_LE(live.size(), 2u + 1u);
  }
  EXPECT_EQ(live.size(), 2u);
}

TEST(StepOrderTest, AWholeLastStepIsPutInOrderToo) {
  Training training;
  for (const std::uint64_t size : {10, 20, 30, 40}) training.Step(size * kMiB, 2, 1);
  const std::optional<StepOrder> order = LargestStepsFirst(training.list.trace(), training.begins, true);
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->count, 3u);
  EXPECT_THAT(SizesOf(order->requests), testing::ElementsAre(10, 11, 40, 41, 30, 31, 20, 21));
  ExpectSound(order->requests);
  EXPECT_FALSE(LargestStepsFirst(training.list.trace(), training.begins, false).has_value()) << "it may be cut off";
}

TEST(StepOrderTest, WhatCannotBePutInOrderIsLeft) {
  Training alike;
  for (int i = 0; i < 6; ++i) alike.Step(10 * kMiB, 2, 1);
  EXPECT_FALSE(LargestStepsFirst(alike.list.trace(), alike.begins, true).has_value()) << "they hold alike";
  Training falling;
  for (const std::uint64_t size : {60, 50, 40, 30, 20, 10}) falling.Step(size * kMiB, 2, 1);
  EXPECT_FALSE(LargestStepsFirst(falling.list.trace(), falling.begins, true).has_value()) << "the largest come first";
  Training uneven;
  std::size_t hands_on = 1;
  for (const std::uint64_t size : {10, 20, 30, 40, 50, 60}) uneven.Step(size * kMiB, 4, hands_on++ % 3 + 1);
  EXPECT_FALSE(LargestStepsFirst(uneven.list.trace(), uneven.begins, true).has_value()) << "each leaves another number";
  Training few;
  for (const std::uint64_t size : {10, 20, 30}) few.Step(size * kMiB, 2, 1);
  EXPECT_FALSE(LargestStepsFirst(few.list.trace(), few.begins, true).has_value()) << "two behind the first";
}

// A block that the step after the next one frees ties three steps together.
TEST(StepOrderTest, AStepThatFreesFurtherBackStaysBehindIt) {
  Training training;
  std::vector<std::uint32_t> kept;
  for (std::uint64_t step = 0; step < 8; ++step) {
    training.Step((10 + 10 * step) * kMiB, 2, 1);
    kept.push_back(training.list.Allocate(kMiB));
    if (step >= 2) training.list.Free(kept[step - 2]);
  }
  EXPECT_FALSE(LargestStepsFirst(training.list.trace(), training.begins, true).has_value());
}

TEST(StepOrderTest, GrowingStepsNeedLessWithTheLargestFirst) {
  Training training;
  training.Setup(100 * kMiB);
  for (std::uint64_t step = 0; step < 12; ++step) training.Step((30 + 7 * step) * kMiB, 4, 1);
  const std::optional<StepOrder> order = LargestStepsFirst(training.list.trace(), training.begins, true);
  ASSERT_TRUE(order.has_value());
  const WhatIfSettings settings = {};
  const absl::StatusOr<WhatIfRow> before = RunWhatIf(training.list.trace(), settings, settings.baseline);
  const absl::StatusOr<WhatIfRow> after = RunWhatIf(order->requests, settings, settings.baseline);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_LT(2 * after->peak_reserved_bytes, before->peak_reserved_bytes);
}

// Random trainings: the steps of the new order are those of the old one, whole.
TEST(StepOrderTest, RandomStepsStayWhole) {
  int sorted = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    Training training;
    training.Setup(rng.Between(1, 50) * kMiB);
    const std::size_t hands_on = rng.Below(3);
    const std::size_t steps = 3 + rng.Below(9);
    for (std::size_t i = 0; i < steps; ++i) {
      const bool is_odd = rng.Below(12) == 0;
      training.Step(rng.Between(1, 40) * kMiB, 3 + rng.Below(3), is_odd ? 3 : hands_on);
    }
    const RequestTrace& recorded = training.list.trace();
    const std::optional<StepOrder> order = LargestStepsFirst(recorded, training.begins, rng.Below(2) == 0);
    if (!order.has_value()) continue;
    ++sorted;
    SCOPED_TRACE(tests::PlainTrace(recorded));
    ExpectSound(order->requests);
    ASSERT_EQ(order->requests.requests.size(), recorded.requests.size());
    // A step's allocations, by its begin's id, are found as one piece.
    std::vector<std::uint32_t> ids, new_ids;
    for (const Op& request : recorded.requests) {
      if (request.kind == OpKind::kAlloc) ids.push_back(request.id);
    }
    for (const Op& request : order->requests.requests) {
      if (request.kind == OpKind::kAlloc) new_ids.push_back(request.id);
    }
    std::vector<std::uint32_t> heads;
    for (const std::size_t begin : training.begins) heads.push_back(recorded.requests[begin].id);
    for (std::size_t i = 1; i < new_ids.size(); ++i) {
      const bool begins_step = std::binary_search(heads.begin(), heads.end(), new_ids[i]);
      if (!begins_step) {
        EXPECT_EQ(new_ids[i], new_ids[i - 1] + 1);
      }
    }
    std::sort(new_ids.begin(), new_ids.end());
    EXPECT_EQ(new_ids, ids);
  }
  EXPECT_GT(sorted, 100);
}

}  // namespace
}  // namespace ashlar::whatif
