// Which pass a graph is of, by its owner and by where the program called its model: one that a backward pass works on,
// a training's, an evaluation's; and optimizers of earlier stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "allocator/base/units.h"
#include "analyzer/analyses/causes/owned_leaks.h"
#include "analyzer/analyses/changes/program_changes.h"
#include "tests/analyzer/analyses/causes/owned_run.h"
#include "tests/analyzer/analyses/causes/training_parts.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {
namespace {

using analyses::CauseFinding;
using analyses::CauseKind;
using analyses::Finding;
using testing::HasSubstr;

constexpr int kLayers = 24;

// Layers of a loop within one forward, and the backward pass through them, which fails. `line` is outside of the model:
// where it recurs the loop is the program's own, and adds up losses.
SeededInput FailsInBackward(bool has_rounds) {
  OwnedRun run;
  run.Weights("flow");
  for (int layer = 0; layer < kLayers; ++layer) {
    if (has_rounds) {
      run.run().At({{"train.py", 20, "load_batch"}, kMain});
      run.run().Free(run.run().Allocate(4 * kMiB));
    }
    for (int line = 40; line < 48; ++line) {
      run.run().At({{"flow.py", line, "forward"}, {"flow.py", 33, "forward"}, kMain});
      run.Keep(16 * kMiB, OwnerNamed("graph", "loss", {}, "train"));
      run.run().Free(run.run().Allocate(static_cast<std::uint64_t>(line) * kMiB));
    }
  }
  run.run().At({kEngine});
  for (int i = 0; i < 3; ++i) run.Keep(32 * kMiB, OwnerNamed("temporary", "temporary of the backward pass"));
  return run.Fail();
}

// By steps that are its layers, as the period of its requests may tell.
std::size_t LeaksOfLayers(const SeededInput& input, timeline::EventIndex first, timeline::EventIndex each) {
  const Diagnosis diagnosis(input);
  const analyses::CauseHistory& history = *diagnosis.context().history;
  analyses::Steps steps;
  for (int layer = 0; layer < kLayers; ++layer) {
    steps.steps.push_back({first + layer * each, first + (layer + 1) * each});
  }
  return analyses::OwnedLeaks(*history.timeline, history.stacks, steps, *history.Owners()).size();
}

TEST(OwnedPassesTest, ThePassThatABackwardPassWorksOnIsNoLeak) {
  constexpr timeline::EventIndex kWeights = 12, kOfLayer = 32, kOfBatch = 3;
  EXPECT_EQ(LeaksOfLayers(FailsInBackward(false), kWeights, kOfLayer), 0u);
  EXPECT_EQ(LeaksOfLayers(FailsInBackward(true), kWeights, kOfLayer + kOfBatch), 1u) << "losses of several passes";
}

// A training, then `passes` calls of the model from another place, or from the training's own.
SeededInput PassesFrom(SeededFrame place, int passes, const std::string& mode) {
  const auto forward = [&](OwnedRun& run, SeededFrame caller, Blocks& saved) {
    for (int layer = 0; layer < 6; ++layer) {
      run.run().At({{"model.py", 40 + layer, "block"}, kOwnersForward, kCall, caller, kMain});
      saved.push_back(run.run().Allocate(64 * kMiB));
    }
  };
  OwnedRun run(8 * kGiB);
  run.Weights("model");
  for (int step = 0; step < 4; ++step) {
    Blocks saved;
    Blocks gradients;
    forward(run, {"train.py", 31, "fit"}, saved);
    Backward(run.run(), 6, 32 * kMiB, saved, gradients);
    Optimize(run.run(), 6, 32 * kMiB);
    run.run().Free(gradients);
  }
  for (int pass = 0; pass < passes; ++pass) {
    Blocks saved;
    forward(run, place, saved);
    for (core::Block* block : saved) run.Own(block, OwnerNamed("graph", "draws[]", {"in_call"}, mode));
  }
  run.run().At({{"model.py", 40, "block"}, kOwnersForward, kCall, place, kMain});
  return run.Fail();
}

CauseFinding EvaluationOf(const SeededInput& input) { return Diagnosis(input).Of(CauseKind::kEvalWithoutNoGrad); }

TEST(OwnedPassesTest, APassFromWhereTheProgramTrainsIsATrainings) {
  EXPECT_EQ(EvaluationOf(PassesFrom({"train.py", 31, "fit"}, 1, "eval")).finding, Finding::kAbsent);
  EXPECT_EQ(EvaluationOf(PassesFrom({"train.py", 70, "check"}, 1, "eval")).finding, Finding::kFound);
}

TEST(OwnedPassesTest, PassesThatNoBackwardPassHasEverFollowedAreAnEvaluations) {
  const CauseFinding found = EvaluationOf(PassesFrom({"train.py", 70, "spread"}, 5, "train"));
  ASSERT_EQ(found.finding, Finding::kFound);
  EXPECT_THAT(found.evidence.front(), HasSubstr("of 5 passes that train.py:70 spread began"));
  EXPECT_EQ(EvaluationOf(PassesFrom({"train.py", 70, "spread"}, 1, "train")).finding, Finding::kAbsent)
      << "a backward pass may be to come";
  EXPECT_EQ(EvaluationOf(PassesFrom({"train.py", 31, "fit"}, 5, "train")).finding, Finding::kAbsent);
}

void KeepState(OwnedRun& run, const std::string& optimizer, int layers) {
  run.run().At({{"/lib/torch/optim/adam.py", 178, "_init_group"}, kMain});
  for (int layer = 0; layer < layers; ++layer) {
    for (const std::uint64_t size : {32, 16}) {
      for (const char* slot : {"exp_avg", "exp_avg_sq"}) {
        run.Keep(size * kMiB,
                 OwnerNamed("optimizer_state", optimizer + (size == 32 ? ".state[*.up]." : ".state[*.down].") + slot,
                            {"of_optimizer"}));
      }
    }
  }
}

TEST(OwnedPassesTest, AnOptimizerWhoseParametersANewerOneHas) {
  OwnedRun run;
  run.Weights("model");
  KeepState(run, "runs.last", 2);
  KeepState(run, "runs.deep", 4);
  run.Train(4, [](int) {});
  KeepState(run, "optimizer", 6);
  const SeededInput input = run.FailInPass();
  ExpectFirst(input, CauseKind::kOptimizerState, "runs.deep");
  const CauseFinding found = Diagnosis(input).Of(CauseKind::kOptimizerState);
  EXPECT_EQ(found.bytes, 6 * 96 * kMiB) << "of both, and nothing of the newest";
  EXPECT_EQ(found.change, &analyses::changes::kNewestOptimizer);
}

// Each has its own model, of the same layers.
TEST(OwnedPassesTest, OptimizersOfTwoModelsAreBothNeeded) {
  OwnedRun run;
  run.Weights("first");
  run.Weights("second");
  KeepState(run, "first_optimizer", 6);
  KeepState(run, "second_optimizer", 6);
  run.Train(4, [](int) {});
  EXPECT_NE(Diagnosis(run.FailInPass()).Of(CauseKind::kOptimizerState).confidence, analyses::Confidence::kProven);
}

}  // namespace
}  // namespace ashlar::tests
