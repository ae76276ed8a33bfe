#include "analyzer/analyses/steps/steps.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/base/units.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/steps/layered_program.h"
#include "tests/analyzer/analyses/steps/plain_program.h"

namespace ashlar::analyses {
namespace {

using tests::LayeredOptions;
using tests::LayeredProgram;
using tests::PlainProgram;
using timeline::EventIndex;

constexpr int kSeeds = 12;

Steps StepsOf(const PlainProgram& program, bool has_stacks = true) {
  return FindSteps(program.Finish(), has_stacks ? &program.stacks() : nullptr, program.annotations());
}

// Every found step begins where a true one begins, give or take a few events, and ends where the next one begins; and
// of the true steps at most `most_missed` were not found.
void ExpectTruth(const LayeredProgram& program, const Steps& steps, EventIndex tolerance, std::size_t most_missed) {
  const std::vector<EventIndex>& truth = program.begins();
  EXPECT_EQ(steps.source, StepSource::kPeriod);
  EXPECT_GE(steps.steps.size() + most_missed, truth.size());
  EXPECT_LE(steps.steps.size(), truth.size());
  for (const EventRange& step : steps.steps) {
    bool is_true = false;
    for (const EventIndex begin : truth) is_true = is_true || std::abs(begin - step.begin) <= tolerance;
    EXPECT_TRUE(is_true) << "no step begins at " << step.begin;
    EXPECT_LT(step.begin, step.end);
  }
}

struct Variant {
  std::string name;
  LayeredOptions options;
  EventIndex tolerance = 0;
  std::size_t most_missed = 0;
  std::size_t most_missed_by_sizes = 0;  // without stacks
};

std::vector<Variant> Variants() {
  std::vector<Variant> out;
  out.push_back({"plain", {}});
  out.push_back({"two steps", {.steps = 3}});
  out.push_back({"many steps", {.steps = 60, .layers = 3}});
  out.push_back({"inference", {.steps = 8, .is_training = false}});
  out.push_back({"warm-up", {.steps = 12, .warm_up_requests = 150}});
  out.push_back({"noise", {.steps = 20, .noise = 0.01}, 40, 2, 4});
  out.push_back({"evaluation in between", {.steps = 20, .evaluate_every = 5}});
  out.push_back({"evaluation of one pass", {.steps = 21, .evaluate_every = 2, .evaluation_passes = 1}, 0, 1});
  // Their first requests recur within a step: what marks a step is its end, which the first has none before it.
  out.push_back({"micro-steps", {.steps = 6, .micro_steps = 4}, 0, 1, 1});
  out.push_back({"a leak", {.steps = 9, .leaked_bytes = 3 * kMiB}});
  out.push_back({"growing lengths", {.steps = 10, .has_growing_length = true}});
  return out;
}

TEST(StepsTest, TheStepsOfAProgramWithStacks) {
  for (const Variant& variant : Variants()) {
    for (std::uint64_t seed = 0; seed < (variant.options.noise > 0 ? kSeeds : 1); ++seed) {
      SCOPED_TRACE(variant.name + ", seed " + std::to_string(seed));
      const LayeredProgram program(variant.options, seed);
      const Steps steps = StepsOf(program.program());
      ExpectTruth(program, steps, variant.tolerance, variant.most_missed);
      EXPECT_FALSE(steps.told_from_sizes);
    }
  }
}

TEST(StepsTest, TheStepsOfAProgramWithoutStacks) {
  for (Variant variant : Variants()) {
    if (variant.options.evaluate_every > 0) continue;
    variant.options.has_stacks = false;
    for (std::uint64_t seed = 0; seed < (variant.options.noise > 0 ? kSeeds : 1); ++seed) {
      SCOPED_TRACE(variant.name + ", seed " + std::to_string(seed));
      const LayeredProgram program(variant.options, seed);
      const Steps steps = StepsOf(program.program());
      ExpectTruth(program, steps, variant.tolerance, variant.most_missed_by_sizes);
      EXPECT_TRUE(steps.told_from_sizes);
    }
  }
}

// By sizes alone what repeats without exception is a round of steps with its evaluation, and may begin with either.
TEST(StepsTest, BySizesAloneARoundOfStepsAndEvaluation) {
  const LayeredProgram program({.steps = 20, .has_stacks = false, .evaluate_every = 5}, 1);
  const Steps steps = StepsOf(program.program());
  EXPECT_EQ(steps.source, StepSource::kPeriod);
  EXPECT_TRUE(steps.told_from_sizes);
  ASSERT_EQ(steps.steps.size(), 3u);  // whole ones of four
  const EventIndex round = program.begins()[10] - program.begins()[5];
  for (const EventRange& step : steps.steps) EXPECT_EQ(step.end - step.begin, round);
}

// The layers of a single pass repeat, but they are no steps: all of it is one call of a module's forward.
TEST(StepsTest, TheLayersOfOnePassAreNoSteps) {
  PlainProgram program;
  for (int layer = 0; layer < 24; ++layer) {
    for (int line = 50; line < 60; ++line) {
      program.At({{"/home/ada/block.py", line, "forward"},
                  {"/home/ada/model.py", 253, "forward"},
                  {"/home/ada/run.py", 3, "main"}});
      program.Free(program.Allocate(static_cast<std::uint64_t>(line) * kMiB));
    }
  }
  EXPECT_EQ(StepsOf(program).source, StepSource::kNone);
}

TEST(StepsTest, OneStepIsNoPeriod) {
  const LayeredProgram program({.steps = 1, .layers = 24}, 1);
  EXPECT_EQ(StepsOf(program.program()).source, StepSource::kNone);
}

// Requests drawn from `alphabet` sizes, each chosen by chance; `memory` > 0: by chance given the last one.
PlainProgram Aperiodic(std::uint64_t seed, std::uint64_t alphabet, bool depends_on_last, bool has_stacks) {
  Rng random(seed);
  std::vector<std::uint64_t> likely;
  for (std::uint64_t i = 0; i < alphabet; ++i) likely.push_back(random.Below(alphabet));
  PlainProgram program;
  std::vector<int> live;
  std::uint64_t last = 0;
  for (int i = 0; i < 3000; ++i) {
    last = depends_on_last && random.Below(4) != 0 ? likely[last] : random.Below(alphabet);
    if (has_stacks) program.At("/home/ada/serve.py", static_cast<int>(random.Below(5)), "handle");
    live.push_back(program.Allocate(512 * (1 + last)));
    while (live.size() > 40 || (!live.empty() && random.Below(2) == 0)) {
      const std::size_t at = random.Below(live.size());
      program.Free(live[at]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  return program;
}

TEST(StepsTest, NoStepsInAnAperiodicProgram) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const std::uint64_t alphabet : {2, 8, 100, 1'000'000}) {
      for (const bool depends_on_last : {false, true}) {
        for (const bool has_stacks : {false, true}) {
          const PlainProgram program = Aperiodic(seed, alphabet, depends_on_last, has_stacks);
          const Steps steps = StepsOf(program, has_stacks);
          EXPECT_EQ(steps.source, StepSource::kNone)
              << "seed " << seed << ", " << alphabet << " sizes, depends on last: " << depends_on_last
              << ", stacks: " << has_stacks << ": " << steps.steps.size() << " steps, " << steps.regularity;
          EXPECT_TRUE(steps.leaks.empty());
        }
      }
    }
  }
}

TEST(StepsTest, NothingAtAll) {
  const PlainProgram program;
  EXPECT_EQ(StepsOf(program).source, StepSource::kNone);
  PlainProgram one;
  one.Allocate(512);
  EXPECT_EQ(StepsOf(one).source, StepSource::kNone);
}

TEST(StepsTest, MarksOfTheProgramComeFirst) {
  const LayeredProgram program({.steps = 5, .has_marks = true}, 1);
  const Steps steps = StepsOf(program.program());
  EXPECT_EQ(steps.source, StepSource::kAnnotations);
  ASSERT_EQ(steps.steps.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(steps.steps[i].begin, program.begins()[i]);
  EXPECT_EQ(steps.steps[4].end, program.program().Now());
}

// Three optimizer steps: two whole steps between their ends. The forward marks are phases.
TEST(StepsTest, TheEndsOfOptimizerStepsAreSteps) {
  PlainProgram program;
  std::vector<EventIndex> ends;
  for (int step = 0; step < 3; ++step) {
    program.Mark("START", "forward");
    program.Free(program.Allocate(kMiB));
    program.Mark("END", "forward");
    program.Mark("START", "Optimizer.step#AdamW.step");
    program.Free(program.Allocate(2 * kMiB));
    program.Mark("END", "Optimizer.step#AdamW.step");
    ends.push_back(program.Now());
  }
  const Steps steps = StepsOf(program);
  EXPECT_EQ(steps.source, StepSource::kAnnotations);
  ASSERT_EQ(steps.steps.size(), 2u);
  EXPECT_EQ(steps.steps[0].begin, ends[0]);
  EXPECT_EQ(steps.steps[1].begin, ends[1]);
  EXPECT_EQ(steps.steps[1].end, ends[2]);
  ASSERT_EQ(steps.phases.size(), 6u);
  EXPECT_EQ(PhaseOf(steps, ends[0]), "step 1, forward");
  EXPECT_EQ(PhaseOf(steps, ends[1] - 1), "step 1, Optimizer.step#AdamW.step");
  EXPECT_EQ(PhaseOf(steps, 0), "before step 1, forward");
  EXPECT_EQ(PhaseOf(steps, ends[2]), "after step 2");
}

TEST(StepsTest, PhasesFromStacks) {
  PlainProgram program;
  program.At(
      {{"??", 0, "at::_ops::mm::call"}, {"/home/ada/model.py", 9, "forward"}, {"/home/ada/train.py", 4, "main"}});
  for (int i = 0; i < 5; ++i) program.Free(program.Allocate(512));
  const EventIndex loss = program.Now();
  program.At({{"/home/ada/train.py", 5, "main"}});
  for (int i = 0; i < 5; ++i) program.Free(program.Allocate(512));
  const EventIndex backward = program.Now();
  program.At({{"??", 0, "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"}});
  for (int i = 0; i < 5; ++i) program.Free(program.Allocate(512));
  program.At({{"/home/ada/model.py", 9, "forward"}});
  program.Free(program.Allocate(512));  // a hook: too short to be a phase
  program.At({{"??", 0, "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"}});
  program.Free(program.Allocate(512));
  const EventIndex optimizer = program.Now();
  program.At({{"C:\\py\\torch\\optim\\adamw.py", 9, "_multi_tensor_adamw"}, {"C:\\py\\train.py", 5, "main"}});
  program.Free(program.Allocate(512));
  const std::vector<Phase> phases = StepsOf(program).phases;
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].name, "forward");
  EXPECT_EQ(phases[0].events.end, loss);
  EXPECT_EQ(phases[1].name, "backward");
  EXPECT_EQ(phases[1].events.begin, backward);
  EXPECT_EQ(phases[1].events.end, optimizer);
  EXPECT_EQ(phases[2].name, "optimizer");
  EXPECT_EQ(phases[2].events.end, program.Now());
}

TEST(LeaksTest, WhatEachStepKeepsToTheByte) {
  const LayeredProgram program({.steps = 9, .leaked_bytes = 3 * kMiB}, 1);
  const Steps steps = StepsOf(program.program());
  ASSERT_EQ(steps.leaks.size(), 1u);
  const trace::Frame& frame =
      program.program().stacks().frame(program.program().stacks().stack(steps.leaks[0].stack)[0]);
  EXPECT_EQ(frame.function, "log_loss");
  EXPECT_EQ(steps.leaks[0].bytes_per_step, 3 * kMiB);
  EXPECT_EQ(steps.leaks[0].blocks, 8u);  // of the last step it is not known whether it stays
  EXPECT_EQ(steps.leaks[0].bytes, 24 * kMiB);
}

TEST(LeaksTest, NoLeakWhereStepsKeepNothing) {
  for (const Variant& variant : Variants()) {
    if (variant.options.leaked_bytes > 0) continue;
    const LayeredProgram program(variant.options, 3);
    EXPECT_TRUE(StepsOf(program.program()).leaks.empty()) << variant.name;  // the optimizer's state is none
  }
}

// A block that lives one step longer than its own is alive at the end, and no leak.
TEST(LeaksTest, ABlockThatTheNextStepReplacesIsNone) {
  PlainProgram program;
  int last = -1;
  for (int step = 0; step < 10; ++step) {
    for (int line = 0; line < 20; ++line) {
      program.At("train.py", line, "train");
      program.Free(program.Allocate(static_cast<std::uint64_t>(1 + line) * kMiB));
    }
    program.At("train.py", 90, "train");
    const int loss = program.Allocate(512);
    if (last >= 0) program.Free(last);
    last = loss;
  }
  const Steps steps = StepsOf(program);
  EXPECT_EQ(steps.steps.size(), 10u);
  EXPECT_TRUE(steps.leaks.empty());
}

// The work grows with the events, not with their square: 100,000 of them in well under a second.
TEST(StepsTest, ManyEvents) {
  const LayeredProgram program({.steps = 250, .layers = 12}, 1);
  const timeline::Timeline timeline = program.program().Finish();
  ASSERT_GT(timeline.event_count(), 100'000);
  const auto begin = std::chrono::steady_clock::now();
  const Steps steps = FindSteps(timeline, &program.program().stacks(), {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%lld events, %.3f s\n", static_cast<long long>(timeline.event_count()), seconds.count());
  EXPECT_EQ(steps.steps.size(), 250u);
}

}  // namespace
}  // namespace ashlar::analyses
