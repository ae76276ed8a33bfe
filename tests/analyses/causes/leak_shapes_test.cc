// What piles up, and what only looks as if it did.
#include "analyzer/analyses/causes/leak_shapes.h"

#include <vector>

#include "analyzer/analyses/causes/failed_attempts.h"
#include "gtest/gtest.h"
#include "tests/analyses/seeded_run.h"

namespace ashlar::tests {
namespace {

using analyses::CauseKind;
using analyses::Finding;
using analyses::LeakAt;
using analyses::LeakGrowth;
using analyses::LeakShape;

constexpr SeededFrame kLoop = {"train.py", 20, "main"};
constexpr SeededFrame kNet = {"net.py", 5, "forward"};

// A batch, six activations that go, and what `keep` does with an output of 8 MiB.
template <typename Keep>
SeededInput Loop(int rounds, Keep keep) {
  SeededRun run;
  for (int round = 0; round < rounds; ++round) {
    run.At({{"data.py", 3, "batch"}, kLoop});
    core::Block* const batch = run.Allocate(kMiB);
    std::vector<core::Block*> saved;
    for (int layer = 0; layer < 6; ++layer) {
      run.At({{"net.py", 10 + layer, "layer"}, kNet, kLoop});
      saved.push_back(run.Allocate(16 * kMiB));
    }
    run.At({{"net.py", 30, "head"}, kNet, kLoop});
    keep(run, round, run.Allocate(8 * kMiB));
    run.Free(saved);
    run.Free(batch);
  }
  return run.Finish();
}

TEST(LeakShapesTest, AnOutputOfEachRoundIsKeptToTheByte) {
  const Diagnosis diagnosis(Loop(21, [](SeededRun&, int, core::Block*) {}));
  const std::optional<LeakGrowth> leak = LeakAt(diagnosis.context());
  ASSERT_TRUE(leak.has_value());
  EXPECT_EQ(leak->shape, LeakShape::kOutputs);
  EXPECT_EQ(leak->bytes, 20 * 8 * kMiB);  // the moment's own round is not over
  EXPECT_EQ(leak->bytes_per_step, 8 * kMiB);
  EXPECT_EQ(leak->steps, 20u);
  EXPECT_EQ(leak->lines, 1u);
  EXPECT_EQ(diagnosis.Of(CauseKind::kOutputsKept).finding, Finding::kFound);
  EXPECT_EQ(diagnosis.Of(CauseKind::kGraphKeptAlive).finding, Finding::kAbsent);
}

TEST(LeakShapesTest, ALeakOfEveryFifthRoundIsOne) {
  const Diagnosis diagnosis(Loop(41, [](SeededRun& run, int round, core::Block* output) {
    if (round % 5 != 0) run.Free(output);
  }));
  const std::optional<LeakGrowth> leak = LeakAt(diagnosis.context());
  ASSERT_TRUE(leak.has_value());
  EXPECT_EQ(leak->bytes, 8 * 8 * kMiB);
  EXPECT_EQ(leak->bytes_per_step, 64 * kMiB / 36);  // the fullest round is the 36th after the first
}

TEST(LeakShapesTest, ABufferOfFixedLengthIsNone) {
  std::vector<core::Block*> buffer;
  const Diagnosis diagnosis(Loop(60, [&buffer](SeededRun& run, int, core::Block* output) {
    buffer.push_back(output);
    if (buffer.size() <= 10) return;
    run.Free(buffer.front());
    buffer.erase(buffer.begin());
  }));
  EXPECT_FALSE(LeakAt(diagnosis.context()).has_value());
}

TEST(LeakShapesTest, WhatAnEpochCollectsAndLetsGoIsNone) {
  std::vector<core::Block*> collected;
  const Diagnosis diagnosis(Loop(60, [&collected](SeededRun& run, int round, core::Block* output) {
    collected.push_back(output);
    if (round == 55) run.Free(run.Allocate(64 * kMiB));  // the peak lies in the last epoch
    if (round % 15 == 14) run.Free(collected);
  }));
  EXPECT_FALSE(LeakAt(diagnosis.context()).has_value());
}

constexpr SeededFrame kMove = {"torch/nn/modules/module.py", 966, "_apply"};
constexpr SeededFrame kCall = {"torch/nn/modules/module.py", 1794, "_call_impl"};
constexpr SeededFrame kInnerForward = {"torch/nn/modules/module.py", 1840, "inner"};
constexpr SeededFrame kInnerHook = {"torch/nn/modules/module.py", 1850, "inner"};

// A model is moved layer by layer, each read into a buffer that goes; `place` makes the layer.
SeededInput Load(std::initializer_list<SeededFrame> place) {
  SeededRun run;
  for (int layer = 0; layer < 30; ++layer) {
    run.At({{"load.py", 5, "read"}, kLoop});
    core::Block* const buffer = run.Allocate(32 * kMiB);
    run.At(place);
    run.Allocate(32 * kMiB);
    run.Free(buffer);
  }
  return run.Finish();
}

TEST(LeakShapesTest, AModelThatIsMovedOrLoadedIsNone) {
  EXPECT_FALSE(LeakAt(Diagnosis(Load({kMove, kLoop})).context()).has_value());
  EXPECT_FALSE(LeakAt(Diagnosis(Load({{"torch/nn/parameter.py", 40, "__new__"}, kLoop})).context()).has_value());
  EXPECT_FALSE(LeakAt(Diagnosis(Load({{"torch/nn/init.py", 40, "normal_"}, kLoop})).context()).has_value());
  EXPECT_TRUE(LeakAt(Diagnosis(Load({{"load.py", 6, "keep"}, kLoop})).context()).has_value());
}

// A model of four parameters; each round keeps blocks of `sizes` that no module made.
SeededInput Snapshots(std::initializer_list<std::uint64_t> sizes) {
  SeededRun run;
  run.At({kMove, kLoop});
  for (const std::uint64_t size : {8 * kMiB, 6 * kMiB, 4 * kMiB, 3 * kMiB}) run.Allocate(size);
  for (int round = 0; round < 30; ++round) {
    run.At({{"data.py", 3, "batch"}, kLoop});
    core::Block* const batch = run.Allocate(kMiB);
    run.At({kNet, kCall, kLoop});
    core::Block* const output = run.Allocate(16 * kMiB);
    run.At({{"train.py", 31, "snapshot"}, kLoop});
    for (const std::uint64_t size : sizes) run.Allocate(size);
    run.Free(output);
    run.Free(batch);
  }
  return run.Finish();
}

TEST(LeakShapesTest, CopiesOfTheModelAreNoOutputs) {
  const Diagnosis copies(Snapshots({8 * kMiB, 6 * kMiB, 4 * kMiB, 3 * kMiB}));
  ASSERT_TRUE(LeakAt(copies.context()).has_value());
  EXPECT_EQ(LeakAt(copies.context())->shape, LeakShape::kOther);
  EXPECT_EQ(copies.Of(CauseKind::kOutputsKept).finding, Finding::kAbsent);
  const Diagnosis others(Snapshots({9 * kMiB, 7 * kMiB, 4 * kMiB, 3 * kMiB}));
  ASSERT_TRUE(LeakAt(others.context()).has_value());
  EXPECT_EQ(LeakAt(others.context())->shape, LeakShape::kOutputs);
  const Diagnosis equal(Snapshots({8 * kMiB, 8 * kMiB, 8 * kMiB, 8 * kMiB}));  // of the size of one parameter
  EXPECT_EQ(LeakAt(equal.context())->shape, LeakShape::kOutputs);
}

// Each round keeps one of three blocks: made inside of what the module with hooks called from `line`.
SeededInput Hooked(const SeededFrame& called, const SeededFrame& line) {
  SeededRun run;
  for (int round = 0; round < 30; ++round) {
    run.At({{"data.py", 3, "batch"}, kLoop});
    std::vector<core::Block*> gone = {run.Allocate(kMiB)};
    run.At({{"layer.py", 8, "forward"}, kInnerForward, kCall, kNet, kCall, kLoop});
    gone.push_back(run.Allocate(16 * kMiB));
    run.At({{"net.py", 8, "head"}, kNet, kCall, kLoop});
    for (int line_of_net = 0; line_of_net < 6; ++line_of_net) gone.push_back(run.Allocate(4 * kMiB));
    run.At({called, line, kCall, kLoop});
    run.Allocate(8 * kMiB);
    run.Free(gone);
  }
  return run.Finish();
}

TEST(LeakShapesTest, AWrapperAroundForwardIsNoHook) {
  const Diagnosis hook(Hooked({"watch.py", 4, "save"}, kInnerHook));
  ASSERT_TRUE(LeakAt(hook.context()).has_value());
  EXPECT_EQ(LeakAt(hook.context())->shape, LeakShape::kHooks);
  const Diagnosis wrapper(Hooked({"watch.py", 4, "wrapped"}, kInnerForward));
  ASSERT_TRUE(LeakAt(wrapper.context()).has_value());
  EXPECT_EQ(LeakAt(wrapper.context())->shape, LeakShape::kOutputs);
}

// Layers of the same lines keep their activations; between them nothing outside of the model allocates.
SeededInput LongPass(bool has_rounds) {
  SeededRun run;
  for (int layer = 0; layer < 30; ++layer) {
    if (has_rounds || layer == 0) run.At({{"data.py", 3, "batch"}, kLoop});
    core::Block* const small = run.Allocate(kMiB);
    for (int line = 0; line < 4; ++line) {
      run.At({{"net.py", 10 + line, "layer"}, kNet, kCall, kLoop});
      run.Allocate(8 * kMiB);
    }
    run.Free(small);
  }
  return run.Finish();
}

TEST(LeakShapesTest, LayersOfTheFirstPassAreNoIterations) {
  EXPECT_FALSE(LeakAt(Diagnosis(LongPass(false)).context()).has_value());
  const Diagnosis rounds(LongPass(true));
  ASSERT_TRUE(LeakAt(rounds.context()).has_value());
  EXPECT_EQ(LeakAt(rounds.context())->shape, LeakShape::kEvalGraph);
}

TEST(LeakShapesTest, WhatWasMadeInOneBurstIsNone) {
  const Diagnosis diagnosis(Loop(30, [](SeededRun& run, int round, core::Block* output) {
    if (round >= 2) run.Free(output);
  }));
  EXPECT_FALSE(LeakAt(diagnosis.context()).has_value());
}

SeededInput TwoAttempts(bool is_let_go) {
  SeededRun run({.capacity_bytes = kGiB});
  std::vector<core::Block*> saved;
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (int layer = 0; layer < 6; ++layer) {
      run.At({{"net.py", 10 + layer, "layer"}, kNet, kLoop});
      saved.push_back(run.Allocate(64 * kMiB));
    }
    run.Fail(kGiB);
    if (is_let_go) run.Free(saved);
  }
  return run.Finish();
}

TEST(FailedAttemptsTest, OnlyWhatOutlivesTheAttemptIsHeld) {
  const Diagnosis held(TwoAttempts(false));
  EXPECT_EQ(held.Of(CauseKind::kExceptionHoldsFrames).finding, Finding::kFound);
  EXPECT_EQ(held.Of(CauseKind::kExceptionHoldsFrames).bytes, 6 * 64 * kMiB);
  const Diagnosis gone(TwoAttempts(true));
  EXPECT_EQ(gone.Of(CauseKind::kExceptionHoldsFrames).finding, Finding::kAbsent);
}

}  // namespace
}  // namespace ashlar::tests
