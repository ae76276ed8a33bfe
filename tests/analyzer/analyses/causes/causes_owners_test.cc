// Causes that owners prove: programs whose snapshot says who holds each block. Where the owner contradicts the shape of
// lines and times, the owner wins; what a program needs to work is no leak.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/units.h"
#include "analyzer/analyses/changes/program_changes.h"
#include "tests/analyzer/analyses/causes/owned_run.h"
#include "tests/analyzer/analyses/causes/training_parts.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {
namespace {

using analyses::CauseFinding;
using analyses::CauseKind;
using analyses::Confidence;
using analyses::Finding;
using testing::HasSubstr;

constexpr SeededFrame kOwnersLoad = {"/lib/torch/serialization.py", 1400, "load"};

TEST(OwnedCausesTest, AListThatKeepsGraphsOfTrainedModules) {
  OwnedRun run;
  run.Weights("model");
  run.Train(12, [&run](int) {
    run.run().At({{"model.py", 50, "aux"}, kOwnersForward, kMain});
    for (int i = 0; i < 4; ++i) run.Keep(24 * kMiB, OwnerNamed("graph", "losses[]", {}, "train"));
  });
  ExpectFirst(run.FailInPass(), CauseKind::kGraphKeptAlive, "losses[]",
              {CauseKind::kEvalWithoutNoGrad, CauseKind::kOutputsKept, CauseKind::kModelCopies});
}

// Passes without a backward pass: an evaluation in eval mode, a sum of many losses where the modules are in training.
SeededInput PassesWithoutBackward(const std::string& mode) {
  OwnedRun run;
  run.Weights("model");
  run.Train(4, [](int) {});
  for (int round = 0; round < 10; ++round) {
    run.run().At({{"train.py", 70, "load_batch"}, kMain});
    core::Block* const batch = run.run().Allocate(4 * kMiB);
    run.Own(batch, OwnerNamed("local", "batch"));
    Blocks saved;
    Forward(run.run(), 6, 16 * kMiB, saved);
    for (core::Block* block : saved) run.Own(block, OwnerNamed("graph", "total", {}, mode));
    run.run().Free(batch);
  }
  return run.FailInPass(OwnerNamed("graph", "x", {"in_call"}, mode));
}

TEST(OwnedCausesTest, AnEvaluationIsOneByTheModeOfItsModules) {
  ExpectFirst(PassesWithoutBackward("eval"), CauseKind::kEvalWithoutNoGrad, "total", {CauseKind::kGraphKeptAlive});
  ExpectFirst(PassesWithoutBackward("train"), CauseKind::kGraphKeptAlive, "total", {CauseKind::kEvalWithoutNoGrad});
}

// Clones of gradients have the sizes of the weights; their owner says that they are none.
TEST(OwnedCausesTest, AHistoryOfGradientsIsNoCopyOfTheModel) {
  const auto program = [](const trace::Holder& owner) {
    OwnedRun run;
    run.Weights("model");
    run.Train(10, [&](int) {
      run.run().At({{"log.py", 11, "log_gradients"}, kMain});
      for (int layer = 0; layer < 6; ++layer) {
        for (const std::uint64_t size : {32, 16}) run.Keep(size * kMiB, owner);
      }
    });
    return run.FailInPass();
  };
  ExpectFirst(program(OwnerNamed("element", "HIST[][]")), CauseKind::kOutputsKept, "HIST[]", {CauseKind::kModelCopies});
  ExpectFirst(program(OwnerNamed("element", "swa_states[][]", {"state_dict"})), CauseKind::kModelCopies, "swa_states[]",
              {CauseKind::kOutputsKept});
  ExpectFirst(program(OwnerNamed("parameter", "models[].net.weight")), CauseKind::kModelCopies, "models[]",
              {CauseKind::kOutputsKept});
  ExpectFirst(program(OwnerNamed("element", "feats[]", {"hooked"})), CauseKind::kHooksKeepActivations, "feats[]",
              {CauseKind::kOutputsKept, CauseKind::kModelCopies});
  ExpectFirst(program(OwnerNamed("cycle", "reference cycle of Node")), CauseKind::kReferenceCycle,
              "reference cycle of Node", {CauseKind::kOutputsKept, CauseKind::kModelCopies});
  ExpectFirst(program(OwnerNamed("element", "opt.s_hist[]", {"of_optimizer"})), CauseKind::kOptimizerState,
              "opt.s_hist[]", {CauseKind::kOutputsKept, CauseKind::kModelCopies});
}

// The newest set may be of the iteration that failed: the list has it as it has the others.
TEST(OwnedCausesTest, AListOfModelsHasTheNewestToo) {
  OwnedRun run;
  run.Weights("model");
  const auto keep_set = [&run](int) {
    run.run().At({{"ensemble.py", 11, "add"}, kMain});
    for (int layer = 0; layer < 6; ++layer) {
      for (const std::uint64_t size : {32, 16}) run.Keep(size * kMiB, OwnerNamed("parameter", "members[].net.weight"));
    }
  };
  run.Train(10, keep_set);
  run.run().At({{"train.py", 20, "load_batch"}, kMain});
  run.Keep(4 * kMiB, OwnerNamed("local", "batch"));
  keep_set(10);
  EXPECT_EQ(Diagnosis(run.FailInPass()).Of(CauseKind::kModelCopies).bytes, 11 * 288 * kMiB);
}

TEST(OwnedCausesTest, AnErrorThatIsKeptHoldsItsFrames) {
  OwnedRun run;
  run.Weights("model");
  trace::Holder errors = OwnerNamed("traceback", "errors[]");
  errors.variables = {"logits", "h"};
  run.Train(8, [&](int) {
    run.run().At({{"model.py", 40, "attention"}, kOwnersForward, kMain});
    run.Keep(512 * kMiB, errors);
  });
  const SeededInput input = run.FailInPass();
  ExpectFirst(input, CauseKind::kExceptionHoldsFrames, "errors[]",
              {CauseKind::kGraphKeptAlive, CauseKind::kOutputsKept});
  EXPECT_THAT(SaidOf(Diagnosis(input).Of(CauseKind::kExceptionHoldsFrames)), HasSubstr("(logits, h)"));
}

TEST(OwnedCausesTest, ACopyIsAModuleOfEqualPathsThatNoOptimizerHas) {
  const auto program = [](std::vector<std::string> traits) {
    OwnedRun run;
    run.Weights("model");
    run.Weights("ema.module", std::move(traits));
    run.Train(4, [](int) {});
    return run.FailInPass();
  };
  ExpectFirst(program({}), CauseKind::kModelCopies, "ema.module");
  EXPECT_EQ(Diagnosis(program({"optimized"})).Of(CauseKind::kModelCopies).finding, Finding::kAbsent)
      << "two towers that are trained";
}

TEST(OwnedCausesTest, AFoldedNameMayBeOfSeveralCopies) {
  OwnedRun run;
  run.Weights("model");
  for (int copy = 0; copy < 3; ++copy) run.Weights("averages.shadow[]", {});
  run.Train(4, [](int) {});
  const SeededInput input = run.FailInPass();
  ExpectFirst(input, CauseKind::kModelCopies, "averages.shadow[]");
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kModelCopies).bytes, 3 * 288 * kMiB);
}

// A model of an earlier fold: optimized too, and last trained before the one of this fold was made.
TEST(OwnedCausesTest, AModelThatAnotherTookThePlaceOf) {
  const auto program = [](bool is_trained_still) {
    OwnedRun run;
    run.Weights("results[].model");
    if (is_trained_still) run.Weights("model");
    run.run().At({kEngine});
    for (int layer = 0; layer < 6; ++layer) run.Keep(32 * kMiB, OwnerNamed("gradient", "results[].model.*.up.grad"));
    if (!is_trained_still) run.Weights("model");
    run.Train(4, [](int) {});
    return run.FailInPass();
  };
  ExpectFirst(program(false), CauseKind::kModelCopies, "results[].model");
  EXPECT_EQ(Diagnosis(program(true)).Of(CauseKind::kModelCopies).finding, Finding::kAbsent);
}

// Calls of torch.autograd.grad within a pass are no iterations that keep their graph.
TEST(OwnedCausesTest, AnInnerLoopIsOnePass) {
  constexpr SeededFrame kGrad = {"/lib/torch/autograd/__init__.py", 500, "grad"};
  OwnedRun run;
  run.Weights("net");
  for (int task = 0; task < 12; ++task) {
    run.run().At({{"maml.py", 20, "load_batch"}, kMain});
    core::Block* const batch = run.Keep(4 * kMiB, OwnerNamed("local", "x"));
    Blocks saved;
    Forward(run.run(), 6, 16 * kMiB, saved);
    for (core::Block* block : saved) run.Own(block, OwnerNamed("graph", "meta_loss", {}, "train"));
    run.run().At({{"maml.py", 28, "adapt"}, kGrad, kMain});
    run.Keep(kMiB, OwnerNamed("graph", "meta_loss", {}, "train"));
    run.run().At({kEngine});
    for (int i = 0; i < 6; ++i) run.Keep(16 * kMiB, OwnerNamed("graph", "meta_loss", {}, "train"));
    run.run().Free(batch);
  }
  const Diagnosis diagnosis(run.FailInPass());
  EXPECT_EQ(diagnosis.Of(CauseKind::kGraphKeptAlive).finding, Finding::kAbsent);
  EXPECT_FALSE(LeakAt(diagnosis.context()).has_value());
}

TEST(OwnedCausesTest, ACheckpointThatIsKeptBesideItsModel) {
  OwnedRun run;
  run.Weights("model");
  run.run().At({kOwnersLoad, kMain});
  for (int layer = 0; layer < 6; ++layer) {
    for (const std::uint64_t size : {32, 16})
      run.Keep(size * kMiB, OwnerNamed("element", "ckpt.model[]", {"state_dict"}));
    run.Keep(32 * kMiB, OwnerNamed("attribute", "ckpt.optimizer.state[].exp_avg"));
  }
  run.Train(4, [](int) {});
  ExpectFirst(run.FailInPass(), CauseKind::kLoadedTwice, "ckpt");
}

// Its layers come one by one, and it is too large for the device.
TEST(OwnedCausesTest, AModelThatIsMovedLayerByLayerIsNoOutput) {
  for (const char* name : {"model.layers.*.up.weight", "batches[]"}) {
    const bool is_model = std::string(name) != "batches[]";
    OwnedRun run;
    for (int layer = 0; layer < 30; ++layer) {
      run.run().At({{"modeling_utils.py", 4343, "to"}, kMain});
      run.Keep(512 * kMiB, OwnerNamed(is_model ? "parameter" : "element", name));
      run.run().At({{"modeling_utils.py", 4344, "to"}, kMain});
      run.run().Free(run.run().Allocate(kMiB));
    }
    const SeededInput input = run.Fail();
    EXPECT_EQ(Diagnosis(input).Of(CauseKind::kOutputsKept).finding == analyses::Finding::kFound, !is_model);
  }
}

TEST(OwnedCausesTest, DataOnTheDeviceIsNamed) {
  OwnedRun run;
  run.Weights("model");
  run.run().At({{"data.py", 9, "load"}, kMain});
  for (int part = 0; part < 8; ++part) run.Keep(512 * kMiB, OwnerNamed("element", "images[]"));
  run.Train(4, [](int) {});
  ExpectFirst(run.FailInPass(), CauseKind::kLongLivedTensor, "images[]",
              {CauseKind::kOutputsKept, CauseKind::kModelCopies});
}

// As a cache of keys and values that a model makes at its first call. Nothing is trained.
TEST(OwnedCausesTest, WhatAPassMadeIsNoDataFromTheSetup) {
  constexpr SeededFrame kNoGrad = {"/lib/torch/utils/_contextlib.py", 124, "decorate_context"};
  for (const bool is_of_pass : {false, true}) {
    OwnedRun run;
    run.Weights("model");
    run.run().At({{"cache.py", 9, "make"}, is_of_pass ? kOwnersForward : kOwnersInit, kNoGrad, kMain});
    run.Keep(4 * kGiB, OwnerNamed("attribute", "cache.data"));
    run.run().At({{"model.py", 40, "attention"}, kOwnersForward, kNoGrad, kMain});
    EXPECT_EQ(Diagnosis(run.Fail()).Of(CauseKind::kLongLivedTensor).finding == Finding::kFound, !is_of_pass);
  }
}

// How much more a program's first pass was to keep is not known: that the one request fits without holes says nothing
// of it. Of a later pass it does.
TEST(OwnedCausesTest, AFirstPassThatHolesStoppedIsNamedForWhatItKeeps) {
  for (const int steps : {0, 3}) {
    SeededRun run({.capacity_bytes = kGiB});
    Model(run, 6, 8 * kMiB);
    for (int step = 0; step < steps; ++step) Step(run, 6, 2 * kMiB, 8 * kMiB);
    Blocks saved;
    while (!run.is_out_of_memory()) Forward(run, 1, 3 * kMiB, saved);  // three of 6 MiB in 20 MiB, or less
    const CauseFinding found = Diagnosis(run.Finish()).Of(CauseKind::kActivationsSaved);
    EXPECT_EQ(found.finding, steps == 0 ? Finding::kFound : Finding::kAbsent) << SaidOf(found);
    EXPECT_EQ(found.yields_to_bytes > 0, steps == 0);
  }
}

// No graph has any of it: checkpointing would save nothing.
TEST(OwnedCausesTest, WhatAnEvaluationMakesIsSavedForNoBackwardPass) {
  const auto saved_by = [](const trace::Holder& owner) {
    OwnedRun run(4 * kGiB);
    run.Weights("model");
    run.Train(4, [](int) {});
    Blocks saved;
    Forward(run.run(), 6, 160 * kMiB, saved);
    for (core::Block* block : saved) run.Own(block, owner);
    run.run().At({{"model.py", 40, "attention"}, kOwnersForward, kMain});
    return Diagnosis(run.Fail()).Of(CauseKind::kActivationsSaved).finding;
  };
  EXPECT_EQ(saved_by(OwnerNamed("graph", "x", {"in_call"}, "train")), Finding::kFound);
  EXPECT_EQ(saved_by(OwnerNamed("graph", "x", {"in_call"}, "eval")), Finding::kFound) << "without no_grad";
  EXPECT_EQ(saved_by(OwnerNamed("local", "x", {"in_call"}, "eval")), Finding::kAbsent);
}

// The lists that a multi-tensor optimizer works on have the sizes of the weights, and are gone after its step.
TEST(OwnedCausesTest, WhatAnOptimizersStepWorksOnIsNoCopyOfTheWeights) {
  for (const bool is_step : {true, false}) {
    OwnedRun run;
    run.Weights("model");
    run.Train(2, [](int) {});
    run.run().At({{"/lib/torch/optim/adadelta.py", 394, "_multi_tensor_adadelta"}, kMain});
    trace::Holder list = OwnerNamed("element", "std[]");
    if (is_step) list.file = "/lib/torch/optim/adadelta.py";
    for (int layer = 0; layer < 6; ++layer) {
      for (const std::uint64_t size : {32, 16}) run.Keep(size * kMiB, list);
    }
    const SeededInput input = run.Fail();
    EXPECT_EQ(Diagnosis(input).Of(CauseKind::kModelCopies).finding == analyses::Finding::kFound, !is_step);
  }
}

// Too few steps to tell one from the next; what was there before the optimizer's last step is of none that runs.
TEST(OwnedCausesTest, GraphsOfEarlierStepsInAListOfFew) {
  for (const char* name : {"drift[]", "loss"}) {
    OwnedRun run;
    run.Weights("model");
    Blocks saved;
    Forward(run.run(), 40, 64 * kMiB, saved);
    for (core::Block* block : saved) run.Own(block, OwnerNamed("graph", name, {}, "train"));
    run.Train(1, [](int) {});
    const SeededInput input = run.FailInPass();
    if (std::string(name) == "drift[]") {
      ExpectFirst(input, CauseKind::kGraphKeptAlive, name);
      EXPECT_THAT(SaidOf(Diagnosis(input).Found().front()), HasSubstr("from before the optimizer's last step"));
    } else {
      EXPECT_EQ(Diagnosis(input).Of(CauseKind::kGraphKeptAlive).finding, analyses::Finding::kAbsent);
    }
  }
}

TEST(OwnedCausesTest, AnOptimizerThatAloneHasItsParameters) {
  OwnedRun run;
  run.run().At({kOwnersInit, kMain});
  for (int i = 0; i < 4; ++i) {
    run.Keep(256 * kMiB, OwnerNamed("element", "first_opt.state[]", {"of_optimizer", "optimized"}));
    run.Keep(256 * kMiB, OwnerNamed("optimizer_state", "first_opt.state[].exp_avg"));
  }
  run.Weights("model");
  run.Train(4, [](int) {});
  ExpectFirst(run.FailInPass(), CauseKind::kOptimizerState, "first_opt");
}

TEST(OwnedCausesTest, ASparseGradientThatNobodyClears) {
  OwnedRun run;
  run.Weights("model");
  run.run().At({kOwnersInit, kMain});
  run.Keep(256 * kMiB, OwnerNamed("parameter", "model.table.weight", {"optimized"}));
  run.Train(4, [](int) {});
  run.run().At({kEngine});
  run.Keep(kGiB, OwnerNamed("gradient", "model.table.weight.grad"));
  ExpectFirst(run.FailInPass(), CauseKind::kGradientsKept, "model.table.weight.grad");
}

// What each stage of a training leaves in a list: its optimizer, with a state for all that it trained.
TEST(OwnedCausesTest, OptimizersThatAListKeeps) {
  OwnedRun run;
  run.Weights("model");
  run.Train(8, [&run](int) {
    run.run().At({{"/lib/torch/optim/adam.py", 178, "_init_group"}, kMain});
    for (int i = 0; i < 6; ++i) {
      run.Keep(64 * kMiB, OwnerNamed("optimizer_state", "stages[].optimizer.state[up].exp_avg", {"of_optimizer"}));
    }
  });
  const SeededInput input = run.FailInPass();
  ExpectFirst(input, CauseKind::kOptimizerState, "stages[]", {CauseKind::kOutputsKept});
  EXPECT_EQ(Diagnosis(input).Found().front().change, &analyses::changes::kNewestOptimizer);
}

// A pass whose loss has made its own tensor of the logits; the backward pass asks for one more. `of_layers` blocks of a
// layer's line are as large as the logits.
SeededInput LogitsOfAVariable(const std::string& kind, int of_layers) {
  constexpr SeededFrame kLoss = {"/lib/torch/nn/functional.py", 3504, "cross_entropy"};
  OwnedRun run(4 * kGiB);
  run.Weights("model");
  Blocks saved;
  Forward(run.run(), 6, 8 * kMiB, saved);
  for (core::Block* block : saved) run.Own(block, OwnerNamed("graph", "out.loss", {}, "train"));
  run.run().At({{"model.py", 44, "mlp"}, kOwnersForward, kMain});
  for (int i = 0; i < of_layers; ++i) run.Keep(512 * kMiB, OwnerNamed("graph", "out.loss", {}, "train"));
  run.run().At({{"model.py", 60, "head"}, kOwnersForward, kMain});
  run.Keep(512 * kMiB, OwnerNamed(kind, "out.logits"));
  run.run().At({kLoss, kOwnersForward, kMain});
  run.Keep(512 * kMiB, OwnerNamed("graph", "out.loss", {}, "train"));
  run.run().At({kEngine});
  return run.Fail();
}

TEST(OwnedCausesTest, LogitsThatAVariableHasAreLogits) {
  for (const std::string kind : {"attribute", "global", "local"}) {
    const SeededInput input = LogitsOfAVariable(kind, 0);
    const CauseFinding found = Diagnosis(input).Of(CauseKind::kLogitsSpike);
    ASSERT_EQ(found.finding, Finding::kFound) << kind << ": " << SaidOf(found);
    EXPECT_EQ(found.confidence, Confidence::kLikely) << kind;
    EXPECT_EQ(found.bytes, kGiB) << kind;
  }
}

TEST(OwnedCausesTest, WhatLayersMakeIsNoneOfTheLogits) {
  EXPECT_EQ(Diagnosis(LogitsOfAVariable("attribute", 4)).Of(CauseKind::kLogitsSpike).bytes, kGiB);
}

// A hole would have served this request; the program itself, run again without holes, failed as well.
TEST(OwnedCausesTest, AProgramThatFailsAgainIsShortOfMemory) {
  OwnedRun run(4 * kGiB);
  run.Weights("model");
  Blocks saved;
  Forward(run.run(), 6, 160 * kMiB, saved);
  for (core::Block* block : saved) run.Own(block, OwnerNamed("graph", "x", {}, "train"));
  run.run().At({{"model.py", 40, "attention"}, kOwnersForward, kMain});
  run.run().Free(run.run().Allocate(600 * kMiB));
  run.Keep(18 * kMiB, OwnerNamed("graph", "x", {}, "train"));  // of the segment that the other leaves
  run.run().Fail(4 * kGiB - run.run().LiveBytes() - 64 * kMiB);
  SeededInput input = run.Finish();
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kActivationsSaved).finding, Finding::kAbsent);
  input.fails_again = true;
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kActivationsSaved).finding, Finding::kFound);
}

TEST(OwnedCausesTest, WhatTheProgramItselfJoinsAreOutputs) {
  OwnedRun run;
  run.Weights("model");
  core::Block* joined = nullptr;
  run.Train(24, [&](int step) {
    run.run().At({{"train.py", 37, "main"}});
    core::Block* const grown =
        run.Keep(static_cast<std::uint64_t>(step + 1) * 64 * kMiB, OwnerNamed("local", "features"));
    if (joined != nullptr) run.run().Free(joined);
    joined = grown;
  });
  const SeededInput input = run.FailInPass();
  ExpectFirst(input, CauseKind::kOutputsKept, "features", {CauseKind::kKvCacheGrows});
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kOutputsKept).change, &analyses::changes::kRoomForAll) << "it is no list";
}

TEST(OwnedCausesTest, ViewsOfAPartAreToBeCopied) {
  const auto change_of = [](std::vector<std::string> traits) {
    OwnedRun run;
    run.Weights("model");
    run.Train(12, [&](int) {
      run.run().At({{"model.py", 50, "features"}, kOwnersForward, kMain});
      run.Keep(128 * kMiB, OwnerNamed("element", "kept[]", traits));
    });
    return Diagnosis(run.FailInPass()).Of(CauseKind::kOutputsKept).change;
  };
  EXPECT_EQ(change_of({"part"}), &analyses::changes::kCopyOfPart);
  EXPECT_EQ(change_of({}), nullptr) << "its row's";
}

TEST(OwnedCausesTest, ABufferOfFixedLengthIsNoLeak) {
  OwnedRun run;
  run.Weights("model");
  std::deque<core::Block*> ring;
  run.Train(40, [&](int) {
    run.run().At({{"buffer.py", 5, "push"}, kMain});
    ring.push_back(run.Keep(64 * kMiB, OwnerNamed("element", "buffer[]")));
    if (ring.size() <= 8) return;
    run.run().Free(ring.front());
    ring.pop_front();
  });
  const Diagnosis diagnosis(run.FailInPass());
  EXPECT_EQ(diagnosis.Of(CauseKind::kOutputsKept).finding, Finding::kAbsent);
  EXPECT_FALSE(LeakAt(diagnosis.context()).has_value());
}

// Its layers make what rounds of a loop would make.
TEST(OwnedCausesTest, TheGraphOfThePassUnderWayIsNoLeak) {
  OwnedRun run;
  run.Weights("model");
  run.Train(5, [](int) {});
  for (int layer = 0; layer < 24; ++layer) {
    run.run().At({{"model.py", 40, "attention"}, kOwnersForward, kMain});
    run.Keep(256 * kMiB, OwnerNamed("graph", "input", {"in_call"}, "train"));
    run.run().At({{"train.py", 20, "load_batch"}, kMain});
    run.run().Free(run.run().Allocate(kMiB));
  }
  const Diagnosis diagnosis(run.FailInPass());
  EXPECT_FALSE(LeakAt(diagnosis.context()).has_value());
  for (const CauseKind kind : {CauseKind::kGraphKeptAlive, CauseKind::kEvalWithoutNoGrad, CauseKind::kOutputsKept,
                               CauseKind::kModelCopies, CauseKind::kReferenceCycle}) {
    EXPECT_EQ(diagnosis.Of(kind).finding, Finding::kAbsent) << CauseName(kind);
  }
}

// What torch.utils.checkpoint computes again is held by a frame of PyTorch's until the backward pass has passed it.
TEST(OwnedCausesTest, WhatIsComputedAgainIsOfThePassUnderWay) {
  OwnedRun run;
  run.Weights("model");
  run.Train(5, [](int) {});
  Blocks saved;
  Forward(run.run(), 2, 16 * kMiB, saved);
  constexpr SeededFrame kUnpack = {"/lib/torch/utils/checkpoint.py", 1369, "unpack_hook"};
  for (int layer = 0; layer < 24; ++layer) {
    run.run().At({{"model.py", 40, "attention"}, kOwnersForward, kUnpack, kEngine});
    run.Keep(600 * kMiB, OwnerNamed("element", "frame.recomputed[]", {"in_call"}));
    run.run().At({{"train.py", 20, "load_batch"}, kMain});
    run.run().Free(run.run().Allocate(kMiB));
  }
  const Diagnosis diagnosis(run.Fail());
  EXPECT_FALSE(LeakAt(diagnosis.context()).has_value());
  EXPECT_EQ(diagnosis.Of(CauseKind::kOutputsKept).finding, Finding::kAbsent);
  ASSERT_FALSE(diagnosis.Found().empty());
  const CauseFinding first = diagnosis.Found().front();
  EXPECT_EQ(std::string(CauseName(first.kind)), CauseName(CauseKind::kActivationsSaved));
  EXPECT_GE(first.bytes, 24 * 600 * kMiB);
  EXPECT_THAT(SaidOf(first), HasSubstr("it spans too much"));
}

// The last list is what memory ran out for.
TEST(OwnedCausesTest, TheListThatFailedIsATemporaryOfTheOptimizer) {
  OwnedRun run;
  run.Weights("model");
  run.Train(5, [](int) {});
  run.run().At({{"/lib/torch/optim/adam.py", 600, "_multi_tensor_adam"}, kMain});
  run.Keep(4 * kGiB, OwnerNamed("temporary", ""));
  run.run().Fail(13 * kGiB);
  const CauseFinding found = Diagnosis(run.Finish()).Of(CauseKind::kOptimizerTemporaries);
  ASSERT_EQ(found.finding, Finding::kFound) << SaidOf(found);
  EXPECT_EQ(found.bytes, 17 * kGiB);
  EXPECT_EQ(found.to_come_bytes, 13 * kGiB);
}

// The first step has all of its state: what it asks for then are its lists.
TEST(OwnedCausesTest, ListsComeBeforeAStateThatIsWhole) {
  for (const bool is_whole : {true, false}) {
    OwnedRun run(kGiB);
    run.Weights("model");
    Blocks saved;
    Blocks gradients;
    Forward(run.run(), 6, 2 * kMiB, saved);
    Backward(run.run(), 6, 32 * kMiB, saved, gradients);
    run.run().At({{"/lib/torch/optim/adam.py", 150, "_init_group"}, kMain});
    for (int i = 0; i < (is_whole ? 12 : 9); ++i) {
      run.Keep(32 * kMiB, OwnerNamed("optimizer_state", "optimizer.state[].exp_avg"));
    }
    run.run().At({{"/lib/torch/optim/adam.py", 600, "_multi_tensor_adam"}, kMain});
    run.Keep(96 * kMiB, OwnerNamed("temporary", ""));
    run.run().Fail(is_whole ? 96 * kMiB : 192 * kMiB);
    const Diagnosis diagnosis(run.Finish());
    const CauseFinding state = diagnosis.Of(CauseKind::kOptimizerState);
    ASSERT_EQ(state.finding, Finding::kFound) << SaidOf(state);
    EXPECT_EQ(state.to_come_bytes == 0, is_whole);
    ASSERT_FALSE(diagnosis.Found().empty());
    EXPECT_EQ(diagnosis.Found().front().kind == CauseKind::kOptimizerTemporaries, is_whole);
  }
}

// The first pass fails in its first layers: what their frames have is no data.
TEST(OwnedCausesTest, WhatTheCallUnderWayHasIsNotFromTheSetup) {
  for (const bool is_in_call : {true, false}) {
    OwnedRun run(4 * kGiB);
    run.Weights("model");
    run.run().At({{"train.py", 24, "embed"}, kMain});
    run.Keep(2 * kGiB,
             OwnerNamed("local", "x", is_in_call ? std::vector<std::string>{"in_call"} : std::vector<std::string>{}));
    const CauseFinding found = Diagnosis(run.Fail()).Of(CauseKind::kLongLivedTensor);
    EXPECT_EQ(found.finding, is_in_call ? Finding::kAbsent : Finding::kFound) << SaidOf(found);
  }
}

// They are told by their sizes, so no more than likely, and no variable is named.
TEST(OwnedCausesTest, CastsThatAutocastKeepsAreCopiesOfTheModel) {
  OwnedRun run;
  run.Weights("model");
  run.run().At({kOwnersForward, kMain});
  for (int layer = 0; layer < 6; ++layer) run.Keep(512 * kMiB, OwnerNamed("autocast_cache", "casts"));
  const Diagnosis diagnosis(run.Fail());
  const CauseFinding found = diagnosis.Of(CauseKind::kModelCopies);
  ASSERT_EQ(found.finding, Finding::kFound) << SaidOf(found);
  EXPECT_EQ(found.confidence, Confidence::kLikely);
  EXPECT_EQ(found.bytes, 3 * kGiB);
  EXPECT_TRUE(found.holders.empty());
  EXPECT_EQ(found.change, &analyses::changes::kNoAutocastCache);
}

// Parameters that go to the device one by one look like steps.
TEST(OwnedCausesTest, PartsOfAModelGrowWithNoStep) {
  const auto grown = [](const std::string& kind, const std::string& name) {
    OwnedRun run;
    for (int layer = 0; layer < 40; ++layer) {
      run.run().At({{"train.py", 20, "main"}, kMain});
      run.run().Free(run.run().Allocate(3 * kMiB));
      run.run().Free(run.run().Allocate(5 * kMiB));
      run.Keep(24 * kMiB, OwnerNamed(kind, name));
    }
    const Diagnosis diagnosis(run.Fail());
    const analyses::CauseHistory& history = *diagnosis.context().history;
    return std::pair(history.held->rows.front().growth.has_value(), history.steps.leaks.empty());
  };
  EXPECT_EQ(grown("parameter", "net.*.weight"), std::pair(false, true));
  EXPECT_EQ(grown("parameter", "nets[].weight"), std::pair(true, false));
  EXPECT_EQ(grown("element", "kept[]"), std::pair(true, false));
}

// Without names the lines and times decide, as before.
TEST(OwnedCausesTest, WithoutNamesNoOwnerIsSaid) {
  OwnedRun run;
  run.Weights("model");
  run.Train(12, [&run](int) {
    run.run().At({{"model.py", 50, "features"}, kOwnersForward, kMain});
    run.Keep(256 * kMiB, OwnerNamed("element", "feats[]"));
  });
  SeededInput input = run.FailInPass();
  input.snapshot.holders.reset();
  const Diagnosis diagnosis(input);
  EXPECT_TRUE(diagnosis.Of(CauseKind::kOutputsKept).holders.empty());
  EXPECT_EQ(diagnosis.Of(CauseKind::kOutputsKept).finding, Finding::kFound);
  EXPECT_EQ(diagnosis.Of(CauseKind::kReferenceCycle).finding, Finding::kNotInTrace);
}

}  // namespace
}  // namespace ashlar::tests
