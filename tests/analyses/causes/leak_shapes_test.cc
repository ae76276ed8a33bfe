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
