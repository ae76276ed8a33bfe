// The bytes that causes name, where the test knows them because it put them there.
#include <vector>

#include "allocator/base/units.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {
namespace {

using analyses::CauseFinding;
using analyses::CauseKind;
using analyses::Finding;

constexpr SeededFrame kFiguresMain = {"train.py", 60, "main"};
constexpr SeededFrame kFiguresEngine = {"??", 0,
                                        "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"};
constexpr SeededFrame kFiguresAdam = {"/lib/torch/optim/adamw.py", 180, "_init_group"};

// Weights of 32, 40, ... 88 MiB, together 480 MiB.
template <typename Each>
void ForEachWeight(Each each) {
  for (std::uint64_t mib = 32; mib <= 88; mib += 8) each(mib * kMiB);
}

// They, a pass, their gradients, and Adam's two moments for each as far as they fit.
SeededInput FirstOptimizerStep(std::uint64_t capacity_bytes) {
  SeededRun run({.capacity_bytes = capacity_bytes});
  run.At({{"model.py", 12, "__init__"}, kFiguresMain});
  ForEachWeight([&run](std::uint64_t bytes) { run.Allocate(bytes); });
  run.At({{"model.py", 33, "forward"}, kFiguresMain});
  run.Free(run.Allocate(64 * kMiB));
  run.At({kFiguresEngine});
  ForEachWeight([&run](std::uint64_t bytes) { run.Allocate(bytes); });
  run.At({kFiguresAdam, kFiguresMain});
  ForEachWeight([&run](std::uint64_t bytes) {
    run.Allocate(bytes);
    run.Allocate(bytes);
  });
  return run.Finish();
}

TEST(CausesFiguresTest, StateThatWasStillToComeIsCountedApart) {
  const SeededInput input = FirstOptimizerStep(1160 * kMiB);  // room for the first 5 of 16 blocks of state
  const CauseFinding state = Diagnosis(input).Of(CauseKind::kOptimizerState);
  EXPECT_EQ(state.finding, Finding::kFound);
  EXPECT_EQ(state.bytes, 960 * kMiB);
  EXPECT_EQ(state.to_come_bytes, (960 - 2 * (32 + 40) - 48) * kMiB);
}

TEST(CausesFiguresTest, NothingIsToComeWhereTheStepWasDone) {
  const SeededInput input = FirstOptimizerStep(16 * kGiB);
  const CauseFinding state = Diagnosis(input).Of(CauseKind::kOptimizerState);
  EXPECT_EQ(state.bytes, 960 * kMiB);
  EXPECT_EQ(state.to_come_bytes, 0U);
}

// Segments that each step needs, of together 700 MiB; the program empties the cache after it.
SeededInput EmptiedByProgram(int steps) {
  SeededRun run({.capacity_bytes = 8 * kGiB});
  run.At({{"model.py", 12, "__init__"}, kFiguresMain});
  run.Allocate(100 * kMiB);
  for (int step = 0; step < steps; ++step) {
    std::vector<core::Block*> taken;
    for (int layer = 1; layer <= 3; ++layer) {
      run.At({{"net.py", 10 + layer, "layer"}, {"net.py", 5, "forward"}, kFiguresMain});
      taken.push_back(run.Allocate(static_cast<std::uint64_t>(layer) * 100 * kMiB));
    }
    run.At({kFiguresEngine});
    taken.push_back(run.Allocate(100 * kMiB));
    run.Free(taken);
    run.EmptyCache();
  }
  return run.Finish();
}

// On a device that is nearly full, each step needs larger segments than the cache has.
SeededInput EmptiedByAllocator(int steps) {
  SeededRun run({.capacity_bytes = 1000 * kMiB});
  for (int step = 0; step < steps; ++step) {
    std::vector<core::Block*> taken;
    for (int layer = 0; layer < 3; ++layer) {
      run.At({{"net.py", 10 + layer, "layer"}, {"net.py", 5, "forward"}, kFiguresMain});
      taken.push_back(run.Allocate(static_cast<std::uint64_t>(200 + 10 * step) * kMiB));
    }
    run.Free(taken);
  }
  return run.Finish();
}

// Each round asks for a bit more than the one before, and the device has room for one: the last finds the segment of
// the one before, of which something else has a piece.
CauseFinding GrownPast(const std::vector<std::uint64_t>& sizes) {
  SeededRun run({.capacity_bytes = 2560 * kMiB});
  run.At("train.py", 5, "setup");
  run.Allocate(40 * kMiB);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    run.At("model.py", 30, "enter");
    core::Block* const entered = i + 1 < sizes.size() ? nullptr : run.Allocate(200 * kMiB);
    run.At("model.py", 34, "forward");
    run.Free(run.Allocate(sizes[i]));
    run.At("model.py", 35, "forward");
    run.Free(run.Allocate(100 * kMiB));
    if (entered != nullptr) run.Free(entered);
  }
  return Diagnosis(run.Finish()).Of(CauseKind::kGrowingSizes);
}

TEST(CausesFiguresTest, ASegmentOfAnEarlierAndSmallerRequestOfTheLine) {
  const CauseFinding grown = GrownPast({1500 * kMiB, 1510 * kMiB, 1520 * kMiB, 1530 * kMiB, 1540 * kMiB});
  ASSERT_EQ(grown.finding, Finding::kFound);
  EXPECT_EQ(grown.bytes, 1330 * kMiB) << "1,530 without the piece of 200";
  EXPECT_EQ(grown.evidence.front(), "its line asked for more in 4 of 4 changes of its size, from 1.46 GiB to 1.50 GiB");
  EXPECT_EQ(GrownPast({1500 * kMiB, 1530 * kMiB, 1510 * kMiB, 1530 * kMiB, 1540 * kMiB}).finding, Finding::kAbsent);
}

TEST(CausesFiguresTest, ACacheThatTheProgramEmptiesIsNoRetry) {
  const SeededInput input = EmptiedByProgram(8);
  const Diagnosis diagnosis(input);
  EXPECT_EQ(diagnosis.Of(CauseKind::kEmptyCacheEachStep).bytes, 700 * kMiB);
  EXPECT_EQ(diagnosis.Of(CauseKind::kRetryStorm).finding, Finding::kAbsent);
  EXPECT_EQ(diagnosis.Found().front().kind, CauseKind::kEmptyCacheEachStep);
}

TEST(CausesFiguresTest, ACacheThatServesNoRequestIsReturnedInARetry) {
  const SeededInput input = EmptiedByAllocator(8);
  const Diagnosis diagnosis(input);
  EXPECT_EQ(diagnosis.Of(CauseKind::kEmptyCacheEachStep).finding, Finding::kAbsent);
  EXPECT_EQ(diagnosis.Of(CauseKind::kRetryStorm).finding, Finding::kFound);
}

TEST(CausesFiguresTest, WhatFreesNothingComesBehindWhatFreesMuch) {
  CauseFinding emptied;
  emptied.kind = CauseKind::kEmptyCacheEachStep;
  emptied.finding = Finding::kFound;
  emptied.bytes = 8 * kGiB;
  emptied.yields_to_bytes = kGiB;
  CauseFinding much = emptied;
  much.kind = CauseKind::kNotExpandable;
  much.bytes = kGiB;
  much.yields_to_bytes = 0;
  std::vector<CauseFinding> causes = {emptied, much};
  analyses::SortCauses(causes);
  EXPECT_EQ(causes.front().kind, CauseKind::kNotExpandable);
  causes = {much, emptied};
  for (CauseFinding& cause : causes) {
    if (cause.kind == CauseKind::kNotExpandable) cause.bytes = kGiB - 1;
  }
  analyses::SortCauses(causes);
  EXPECT_EQ(causes.front().kind, CauseKind::kEmptyCacheEachStep);
}

// A device that is full by a pass, and 1,636 MiB outside: four contexts of 409 MiB.
TEST(CausesFiguresTest, ProcessesThatAreKnownToUseTheDeviceAreNamed) {
  SeededRun run({.capacity_bytes = 2 * kGiB});
  run.At("net.py", 4, "forward");
  while (!run.is_out_of_memory()) run.Allocate(100 * kMiB);
  SeededInput input = run.Finish();
  input.total_bytes = 2 * kGiB + 4 * 409 * kMiB;
  const Diagnosis diagnosis(input);
  EXPECT_EQ(diagnosis.Of(CauseKind::kOtherProcess).finding, Finding::kAbsent);
  analyses::CauseContext context = diagnosis.context();
  for (const std::size_t others : {std::size_t{3}, std::size_t{0}}) {
    context.device.shared = analyses::SharedDevice{others, 409 * kMiB};
    for (const CauseFinding& cause : FindCauses(context)) {
      if (cause.kind == CauseKind::kWorkspaces) {
        EXPECT_EQ(cause.finding, others > 0 ? Finding::kAbsent : Finding::kFound);
      }
      if (cause.kind != CauseKind::kOtherProcess) continue;
      EXPECT_EQ(cause.finding, others > 0 ? Finding::kFound : Finding::kAbsent);
      if (others > 0) {
        EXPECT_EQ(cause.bytes, 3 * 409 * kMiB);
      }
    }
  }
}

}  // namespace
}  // namespace ashlar::tests
