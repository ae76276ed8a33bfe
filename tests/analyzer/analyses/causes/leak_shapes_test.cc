// What piles up, and what only looks as if it did.
#include "analyzer/analyses/causes/leak_shapes.h"

#include <vector>

#include "analyzer/analyses/causes/leak_shapes.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/seeded_run.h"

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

// What a backward pass makes and the program keeps: hooks are named only where the stacks show some.
SeededInput GradientsOfEachRound(bool has_hooks) {
  SeededRun run;
  for (int round = 0; round < 12; ++round) {
    std::vector<core::Block*> saved;
    for (int layer = 0; layer < 6; ++layer) {
      if (has_hooks) {
        run.At({{"net.py", 10 + layer, "layer"},
                kNet,
                {"/lib/torch/nn/modules/module.py", 1850, "inner"},
                {"/lib/torch/nn/modules/module.py", 1794, "_call_impl"},
                kLoop});
      } else {
        run.At({{"net.py", 10 + layer, "layer"}, kNet, {"/lib/torch/nn/modules/module.py", 1794, "_call_impl"}, kLoop});
      }
      saved.push_back(run.Allocate(16 * kMiB));
    }
    run.At({{"/lib/torch/_tensor.py", 570, "backward"}, kLoop});
    run.Free(run.Allocate(512));
    run.At({});
    run.Allocate(8 * kMiB);
    run.Free(saved);
  }
  return run.Finish();
}

TEST(LeakShapesTest, WithoutAHookNoHookIsNamed) {
  const Diagnosis without(GradientsOfEachRound(false));
  EXPECT_EQ(without.Of(CauseKind::kHooksKeepActivations).finding, Finding::kAbsent);
  EXPECT_EQ(without.Of(CauseKind::kOutputsKept).finding, Finding::kFound);
  const Diagnosis with(GradientsOfEachRound(true));
  EXPECT_EQ(with.Of(CauseKind::kHooksKeepActivations).finding, Finding::kFound);
  EXPECT_EQ(with.Of(CauseKind::kOutputsKept).finding, Finding::kAbsent);
}

TEST(LeakShapesTest, LayersOfTheFirstPassAreNoIterations) {
  EXPECT_FALSE(LeakAt(Diagnosis(LongPass(false)).context()).has_value());
  const Diagnosis rounds(LongPass(true));
  ASSERT_TRUE(LeakAt(rounds.context()).has_value());
  EXPECT_EQ(LeakAt(rounds.context())->shape, LeakShape::kEvalGraph);
}

void Replace(SeededRun& run, core::Block*& block, std::uint64_t bytes) {
  core::Block* const larger = run.Allocate(bytes);
  if (block != nullptr) run.Free(block);
  block = larger;
}

// Three caches of two tensors each: a call fills them with 8 MiB more, and another adds 1 MiB three times. The last
// round gets to the first cache alone.
SeededInput Caches(bool is_let_go) {
  SeededRun run;
  std::vector<core::Block*> caches(6, nullptr);
  std::uint64_t bytes = 24 * kMiB;
  for (int round = 0; round < 12; ++round) {
    run.At({{"data.py", 3, "batch"}, kLoop});
    run.Free(run.Allocate(kMiB));
    for (std::size_t cache = 0; cache < (round == 11 ? 2 : caches.size()); ++cache) {
      run.At({{"net.py", 12, "update"}, kNet, kCall, {"serve.py", 5, "fill"}, kLoop});
      Replace(run, caches[cache], bytes + 8 * kMiB);
      run.At({{"net.py", 12, "update"}, kNet, kCall, {"serve.py", 9, "decode"}, kLoop});
      for (std::uint64_t token = 1; token <= 3; ++token) Replace(run, caches[cache], bytes + (8 + token) * kMiB);
    }
    bytes += 11 * kMiB;
  }
  if (is_let_go) run.Free(caches);
  run.Fail(64 * kGiB);
  return run.Finish();
}

TEST(LeakShapesTest, CachesThatTwoCallsFillGrow) {
  const Diagnosis diagnosis(Caches(false));
  ASSERT_TRUE(LeakAt(diagnosis.context()).has_value());
  EXPECT_EQ(LeakAt(diagnosis.context())->shape, LeakShape::kCache);
  const std::uint64_t asked = (2 * 156 + 4 * 145) * kMiB;
  EXPECT_GE(LeakAt(diagnosis.context())->bytes, asked);
  EXPECT_LE(LeakAt(diagnosis.context())->bytes, asked + 6 * kMiB);  // what is not worth a split
  EXPECT_FALSE(LeakAt(Diagnosis(Caches(true)).context()).has_value());
}

// A cache grows inside of the model; between rounds its rows are copied in another order.
SeededInput Reordered(std::uint64_t added) {
  SeededRun run;
  std::vector<core::Block*> caches(4, nullptr);
  for (std::uint64_t round = 0; round < 40; ++round) {
    const std::uint64_t bytes = 32 * kMiB + round * added;
    run.At({{"net.py", 12, "extend"}, kNet, kCall, kLoop});
    for (core::Block*& cache : caches) Replace(run, cache, bytes);
    run.At({{"data.py", 3, "order"}, kLoop});
    run.Free(run.Allocate(kMiB));
    run.At({{"search.py", 20, "reorder"}, kLoop});
    for (core::Block*& cache : caches) Replace(run, cache, bytes);
  }
  return run.Finish();
}

TEST(LeakShapesTest, ACacheThatIsCopiedBetweenRoundsGrows) {
  const Diagnosis grows(Reordered(kMiB));
  ASSERT_TRUE(LeakAt(grows.context()).has_value());
  EXPECT_EQ(LeakAt(grows.context())->shape, LeakShape::kCache);
  EXPECT_EQ(grows.Of(CauseKind::kKvCacheGrows).finding, Finding::kFound);
  EXPECT_FALSE(LeakAt(Diagnosis(Reordered(0)).context()).has_value());
}

// Rounds whose activations stay, each with a line of `last` at its end, in a function that another calls.
SeededInput RoundsThatEndIn(const SeededFrame& last, const SeededFrame& function, const SeededFrame& caller) {
  SeededRun run;
  for (int round = 0; round < 30; ++round) {
    run.At({{"data.py", 3, "batch"}, function, caller, kLoop});
    core::Block* const small = run.Allocate(kMiB);
    for (int line = 0; line < 4; ++line) {
      run.At({{"net.py", 10 + line, "layer"}, kNet, kCall, function, caller, kLoop});
      run.Allocate(8 * kMiB);
    }
    run.At({last, function, caller, kLoop});
    run.Allocate(512);
    run.Free(small);
  }
  return run.Finish();
}

LeakShape ShapeOf(const SeededInput& input) {
  const std::optional<LeakGrowth> leak = LeakAt(Diagnosis(input).context());
  EXPECT_TRUE(leak.has_value());
  return leak.has_value() ? leak->shape : LeakShape::kOther;
}

// Without a backward pass in the whole history: it may be a training that adds up the losses of several batches.
TEST(LeakShapesTest, PassesThatEndInALossAreAnEvaluationOnlyByName) {
  const SeededFrame loss = {"/lib/torch/nn/functional.py", 3494, "cross_entropy"};
  const SeededFrame metric = {"train.py", 22, "accuracy"};
  const SeededFrame caller = {"train.py", 50, "start"};
  EXPECT_EQ(ShapeOf(RoundsThatEndIn(loss, {"train.py", 40, "run"}, caller)), LeakShape::kGraph);
  EXPECT_EQ(ShapeOf(RoundsThatEndIn(metric, {"train.py", 40, "run"}, caller)), LeakShape::kEvalGraph);
  EXPECT_EQ(ShapeOf(RoundsThatEndIn(loss, {"train.py", 40, "evaluate"}, caller)), LeakShape::kEvalGraph);
}

// Where gradients are off there is no graph, so that what stays are outputs.
TEST(LeakShapesTest, WithoutGradientsThereIsNoGraph) {
  const SeededFrame off = {"/lib/torch/utils/_contextlib.py", 120, "decorate_context"};
  EXPECT_EQ(ShapeOf(RoundsThatEndIn({"train.py", 22, "accuracy"}, {"train.py", 40, "predict"}, off)),
            LeakShape::kEvalOutputs);
}

// A training of eight steps; then passes of the same lines, one right after the other, whose activations stay.
SeededInput PassesAfterTraining(int passes, const SeededFrame& caller = {"train.py", 40, "draw"}) {
  SeededRun run;
  const auto pass = [&run](const SeededFrame& from) {
    std::vector<core::Block*> out;
    for (int line = 0; line < 4; ++line) {
      run.At({{"net.py", 10 + line, "layer"}, kNet, kCall, from});
      out.push_back(run.Allocate(static_cast<std::uint64_t>(16 + line) * kMiB));
    }
    return out;
  };
  for (int step = 0; step < 8; ++step) {
    run.At({{"data.py", 3, "batch"}, kLoop});
    core::Block* const batch = run.Allocate(kMiB);
    std::vector<core::Block*> saved = pass(kLoop);
    run.At({});
    std::vector<core::Block*> gradients;
    for (int line = 0; line < 4; ++line) gradients.push_back(run.Allocate(8 * kMiB));
    run.Free(saved);
    run.At({{"torch/optim/adam.py", 10, "step"}, kLoop});
    run.Free(run.Allocate(8 * kMiB));
    run.Free(gradients);
    run.Free(batch);
  }
  for (int at = 0; at < passes; ++at) pass(caller);
  return run.Finish();
}

TEST(LeakShapesTest, PassesAfterTheLastStepAreIterations) {
  const Diagnosis many(PassesAfterTraining(12));
  ASSERT_TRUE(LeakAt(many.context()).has_value());
  EXPECT_EQ(LeakAt(many.context())->shape, LeakShape::kEvalGraph);
  EXPECT_EQ(many.Of(CauseKind::kEvalWithoutNoGrad).finding, Finding::kFound);
  EXPECT_FALSE(LeakAt(Diagnosis(PassesAfterTraining(2)).context()).has_value());
}

// Each step let go what these lines made only after its backward pass: they add up the losses of the next step.
TEST(LeakShapesTest, PassesOfATrainingsOwnLinesAreNoEvaluation) {
  const Diagnosis diagnosis(PassesAfterTraining(12, kLoop));
  ASSERT_TRUE(LeakAt(diagnosis.context()).has_value());
  EXPECT_EQ(LeakAt(diagnosis.context())->shape, LeakShape::kGraph);
  EXPECT_EQ(diagnosis.Of(CauseKind::kEvalWithoutNoGrad).finding, Finding::kAbsent);
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
