#include "ashlar/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/analyzer/tuner/epochs.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using tests::ByHand;
using tests::EpochProgram;
using Kind = TunerDecision::Kind;

void RunGrowing(EpochProgram& program, Tuner& tuner, int epochs) {
  for (int i = 0; i < epochs; ++i) {
    program.GrowingEpoch();
    tuner.StepEnded();
  }
}

TEST(TunerTest, AdvisesWhatIsProvenAndChangesNothing) {
  EpochProgram program;
  Tuner tuner(program.allocator(), program.recorder(), ByHand(/*may_switch=*/false));
  RunGrowing(program, tuner, 4);
  const TunerDecision decision = tuner.Look();
  EXPECT_EQ(decision.kind, Kind::kAdvised) << decision.text;
  EXPECT_THAT(decision.text, StartsWith("advised "));
  EXPECT_LE(decision.promised_bytes, decision.peak_bytes * 95 / 100);
  EXPECT_EQ(decision.peak_bytes, program.PeakBytes());
  EXPECT_EQ(program.allocator().settings().conf, "");
  EXPECT_EQ(tuner.last().text, decision.text);
}

// The peak of the epochs after the switch is to the byte what was promised.
TEST(TunerTest, AfterASwitchTheProgramNeedsWhatWasPromised) {
  EpochProgram program;
  std::vector<std::string> told;
  TunerOptions options = ByHand(/*may_switch=*/true);
  options.on_decision = [&](const TunerDecision& decision) { told.push_back(decision.text); };
  Tuner tuner(program.allocator(), program.recorder(), options);
  RunGrowing(program, tuner, 4);
  const std::uint64_t before = program.PeakBytes();
  const TunerDecision switched = tuner.Look();
  ASSERT_EQ(switched.kind, Kind::kSwitched) << switched.text;
  EXPECT_EQ(program.allocator().settings().conf, switched.conf);
  EXPECT_EQ(program.allocator().options().conf, "") << "as it was made";
  EXPECT_EQ(program.allocator().Validate(), absl::OkStatus());

  program.allocator().EmptyCache();
  program.allocator().ResetPeaks();
  RunGrowing(program, tuner, 2);
  EXPECT_EQ(tuner.Look().kind, Kind::kNothing) << "too few steps to tell";
  EXPECT_THAT(tuner.last().text, HasSubstr("of the 4 steps"));
  RunGrowing(program, tuner, 3);
  EXPECT_EQ(program.PeakBytes(), switched.promised_bytes);
  EXPECT_LT(program.PeakBytes(), before * 95 / 100);
  const TunerDecision kept = tuner.Look();
  EXPECT_EQ(kept.kind, Kind::kKept) << kept.text;
  EXPECT_EQ(program.allocator().settings().conf, switched.conf);
  RunGrowing(program, tuner, 1);
  const TunerDecision after = tuner.Look();
  EXPECT_EQ(after.kind, Kind::kAdvised) << after.text;
  EXPECT_THAT(after.text, StartsWith("advised start with "));
  EXPECT_EQ(told.size(), 4u) << "one line a decision";
}

TEST(TunerTest, SwitchesBackOnceWhereTheGainDoesNotCome) {
  EpochProgram program;
  Tuner tuner(program.allocator(), program.recorder(), ByHand(/*may_switch=*/true));
  RunGrowing(program, tuner, 3);
  const TunerDecision switched = tuner.Look();
  ASSERT_EQ(switched.kind, Kind::kSwitched) << switched.text;
  for (int i = 0; i < 4; ++i) {
    program.EvenEpoch();
    tuner.StepEnded();
  }
  const TunerDecision back = tuner.Look();
  EXPECT_EQ(back.kind, Kind::kSwitchedBack) << back.text;
  EXPECT_EQ(back.conf, "");
  EXPECT_EQ(program.allocator().settings().conf, "");
  EXPECT_THAT(back.text, HasSubstr(switched.conf));
  RunGrowing(program, tuner, 4);
  const TunerDecision again = tuner.Look();
  EXPECT_NE(again.conf, switched.conf) << again.text;
}

TEST(TunerTest, NothingIsDoneWhereNothingGains) {
  EpochProgram program;
  Tuner tuner(program.allocator(), program.recorder(), ByHand(/*may_switch=*/true));
  for (int i = 0; i < 4; ++i) {
    program.EvenEpoch();
    tuner.StepEnded();
  }
  const TunerDecision decision = tuner.Look();
  EXPECT_EQ(decision.kind, Kind::kNothing) << decision.text;
  EXPECT_THAT(decision.text, StartsWith("nothing gains 5 % in 4 steps: the best was "));
  EXPECT_EQ(program.allocator().settings().conf, "");
}

TEST(TunerTest, WithoutStepsNothingIsTried) {
  EpochProgram program;
  Tuner tuner(program.allocator(), program.recorder(), ByHand(/*may_switch=*/true));
  EXPECT_EQ(tuner.last().text, "no look was taken yet");
  EXPECT_EQ(tuner.Look().text, "nothing is tried: 0 whole steps are seen");
  RunGrowing(program, tuner, 1);
  EXPECT_EQ(tuner.Look().text, "nothing is tried: 1 whole step is seen");
}

// No call tells the steps: the requests do.
TEST(TunerTest, FindsTheStepsInTheRequests) {
  EpochProgram program;
  Tuner tuner(program.allocator(), program.recorder(), ByHand(/*may_switch=*/false));
  for (int i = 0; i < 12; ++i) program.GrowingEpoch();
  const TunerDecision decision = tuner.Look();
  EXPECT_EQ(decision.kind, Kind::kAdvised) << decision.text;
  EXPECT_GE(decision.steps, 4u);
}

TEST(TunerTest, OneWithoutARingSaysSo) {
  EpochProgram program;
  Tuner tuner({[] { return absl::FailedPreconditionError("no ring"); }, [] { return std::uint64_t{0}; },
               [](const std::string&) { return absl::OkStatus(); }},
              ByHand(true));
  EXPECT_EQ(tuner.Look().kind, Kind::kFailed);
  EXPECT_EQ(tuner.last().text, "no ring");
}

// The tuner's own thread beside those of the program, and a destructor in the middle of it.
TEST(TunerTest, LooksWhileThreadsAllocate) {
  EpochProgram program;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (std::uint64_t stream = 1; stream <= 2; ++stream) {
    threads.emplace_back([&, stream] {
      for (std::uint64_t i = 0; !is_over; ++i) {
        const absl::StatusOr<Block> block = program.allocator().Allocate((1 + i % 40) * kMiB, Stream{stream});
        if (block.ok()) program.allocator().Free(*block);
        if (i % 400 == 0) program.allocator().EmptyCache();
      }
    });
  }
  {
    std::atomic<int> decisions{0};
    TunerOptions options;
    options.may_switch = true;
    options.pause = std::chrono::milliseconds(1);
    options.on_decision = [&](const TunerDecision&) { ++decisions; };
    Tuner tuner(program.allocator(), program.recorder(), options);
    while (decisions < 1) {
      tuner.StepEnded();
      std::this_thread::yield();
    }
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(program.allocator().Validate(), absl::OkStatus());
}

}  // namespace
}  // namespace ashlar
