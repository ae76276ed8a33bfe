// Steps held out of a plan: what a run of some steps is, which steps are held out together, and that a plan which only
// fits the run that it was made of is not chosen.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "allocator/base/rng.h"
#include "analyzer/whatif/plan_choice.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::tests {
namespace {

struct SteppedRun {
  RequestList list;
  std::vector<std::int64_t> begins;

  void BeginStep() { begins.push_back(static_cast<std::int64_t>(list.trace().requests.size())); }
};

std::vector<std::uint64_t> MebibytesAsked(const trace::RequestTrace& trace) {
  std::vector<std::uint64_t> out;
  for (const trace::Op& op : trace.requests) {
    if (op.kind == trace::OpKind::kAlloc) out.push_back(op.bytes / kMiB);
  }
  return out;
}

TEST(HeldOutStepsTest, ARunOfSomeStepsHasWhatTheyAskForAndWhatLasts) {
  SteppedRun run;
  run.list.Allocate(1 * kMiB);
  std::uint32_t carried = 0;
  for (std::uint64_t step = 0; step < 4; ++step) {
    run.BeginStep();
    const std::uint32_t passing = run.list.Allocate((10 + step) * kMiB);
    if (step > 0) run.list.Free(carried);
    carried = run.list.Allocate((20 + step) * kMiB);
    if (step == 1) run.list.Allocate(30 * kMiB);  // for good
    run.list.Free(passing);
  }
  EXPECT_EQ(MebibytesAsked(whatif::OnlySteps(run.list.trace(), run.begins, {true, false, true, true})),
            (std::vector<std::uint64_t>{1, 10, 20, 30, 12, 22, 13, 23}));
  EXPECT_EQ(whatif::OnlySteps(run.list.trace(), run.begins, {true, true, true, true}).requests.size(),
            run.list.trace().requests.size());
}

TEST(HeldOutStepsTest, HalvesOfTheStepsAreHeldOutEachOnceAndTheFirstNever) {
  SteppedRun run;
  for (int step = 0; step < 6; ++step) {
    run.BeginStep();
    run.list.Free(run.list.Allocate(4 * kMiB));
  }
  std::vector<std::vector<bool>> seen;
  const auto plan_without = [&](const std::vector<bool>& left_out) {
    seen.push_back(left_out);
    return policy::Options{};
  };
  const auto held_out = whatif::HoldOutSteps(run.list.trace(), run.begins, {}, plan_without);
  ASSERT_TRUE(held_out.has_value());
  EXPECT_EQ(held_out->runs, 6u);
  EXPECT_EQ(held_out->worst, 1.0);
  EXPECT_EQ(held_out->mean, 1.0);
  const std::vector<std::vector<bool>> halves = {{0, 0, 1, 0, 1, 0}, {0, 1, 0, 1, 0, 1}, {0, 1, 0, 0, 1, 1},
                                                 {0, 0, 1, 1, 0, 0}, {0, 1, 1, 1, 0, 0}, {0, 0, 0, 0, 1, 1}};
  EXPECT_EQ(seen, halves);
  // Nothing to hold out.
  EXPECT_FALSE(whatif::HoldOutSteps(run.list.trace(), {run.begins.data(), 2}, {}, plan_without).has_value());
  EXPECT_FALSE(whatif::HoldOutSteps(run.list.trace(), {}, {}, plan_without).has_value());
}

// A table, its gradient and the optimizer's two states, of one size, and of each step a batch of another length: under
// a plan, a batch longer than planned cuts a place that the table's gradient needs.
SteppedRun TableOfRows(std::uint64_t seed, bool is_one_length) {
  constexpr std::uint64_t kTable = 146 * kMiB;
  SteppedRun run;
  Rng lengths(seed);
  run.list.Allocate(kTable);
  for (int step = 0; step < 16; ++step) {
    run.BeginStep();
    const std::uint64_t length = is_one_length ? 64 : lengths.Between(8, 64);
    const std::uint32_t batch = run.list.Allocate(length * kMiB + 4096);
    const std::uint32_t squares = run.list.Allocate(length * kMiB / 2 + 4096);
    const std::uint32_t of_batch = run.list.Allocate(length * kMiB + 8192);
    const std::uint32_t gradient = run.list.Allocate(kTable);
    for (const std::uint32_t id : {batch, squares, of_batch}) run.list.Free(id);
    if (step == 0) {
      run.list.Allocate(kTable);
      run.list.Allocate(kTable);
    }
    const std::uint32_t root = run.list.Allocate(kTable);
    run.list.Free(run.list.Allocate(kTable));
    run.list.Free(root);
    run.list.Free(gradient);
  }
  return run;
}

whatif::PlanChoice ChoiceOf(const SteppedRun& run, bool repeats = false) {
  const auto lanes = *whatif::LaneRequestsOf(run.list.trace(), {});
  return *whatif::ChoosePlan({run.list.trace(), {}, lanes, run.begins, 1'000'000, repeats});
}

std::uint64_t NeedOf(const SteppedRun& run, const whatif::PlanChoice& planned) {
  return whatif::NeedOf(run.list.trace(), whatif::Following({}, planned.made.plan), 0).Bytes();
}

TEST(PlanChoiceTest, APlanThatFitsItsOwnRunAloneIsNotChosen) {
  int worse = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SteppedRun run = TableOfRows(seed, false), other = TableOfRows(seed + 100, false);
    const whatif::PlanChoice own = ChoiceOf(run, true), chosen = ChoiceOf(run);
    EXPECT_LE(own.with.Bytes(), own.without.Bytes());
    EXPECT_FALSE(own.held_out.has_value());
    const std::uint64_t without = NeedOf(other, {});
    worse += NeedOf(other, own) > without;
    EXPECT_LE(NeedOf(other, chosen), without) << seed;
  }
  EXPECT_GT(worse, 6) << "else this program shows nothing";
}

TEST(PlanChoiceTest, StepsOfOneLengthAreAllPlanned) {
  const whatif::PlanChoice chosen = ChoiceOf(TableOfRows(1, true));
  ASSERT_TRUE(chosen.held_out.has_value());
  EXPECT_LE(chosen.held_out->worst, 1);
  EXPECT_FALSE(chosen.lasting_only);
  EXPECT_FALSE(chosen.made.lanes.empty());
}

}  // namespace
}  // namespace ashlar::tests
