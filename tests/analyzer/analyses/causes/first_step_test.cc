// What a first step must still ask for, against what the program of the test would have asked.
#include "analyzer/analyses/causes/first_step.h"

#include <algorithm>
#include <vector>

#include "allocator/base/units.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/causes/training_parts.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {
namespace {

constexpr SeededFrame kMakesLinear = {"/lib/torch/nn/modules/linear.py", 109, "__init__"};
constexpr std::uint64_t kWeight = 64 * kMiB;
constexpr std::uint64_t kBias = 1 * kMiB;

void LayersOfWeights(SeededRun& run, int layers) {
  run.At({kMakesLinear, {"model.py", 12, "__init__"}, kMain});
  run.Allocate(200 * kMiB);  // an embedding, which no layer repeats
  for (int layer = 0; layer < layers; ++layer) {
    run.Allocate(kWeight);
    run.Allocate(kBias);
  }
}

std::vector<std::uint64_t> Asked(const std::vector<analyses::ComingRequest>& rest) {
  std::vector<std::uint64_t> out;
  for (const analyses::ComingRequest& coming : rest) {
    if (coming.bytes > 0) out.push_back(coming.bytes);
  }
  return out;
}

std::vector<analyses::ComingRequest> RestOf(SeededRun& run) {
  const SeededInput input = run.Finish();
  return analyses::RestOfFirstStep(Diagnosis(input).context());
}

TEST(FirstStepTest, LayersThatDidNotRunAreAsTheLastWholeOne) {
  constexpr int kLayers = 12;
  SeededRun run({.capacity_bytes = 200 * kMiB + kLayers * (kWeight + kBias) + 5 * 120 * kMiB + 20 * kMiB});
  LayersOfWeights(run, kLayers);
  Blocks saved;
  Forward(run, kLayers, 40 * kMiB, saved);  // 40 and 80 MiB a layer: the sixth finds no room
  ASSERT_TRUE(run.is_out_of_memory());
  const std::vector<std::uint64_t> asked = Asked(RestOf(run));
  // From the 80 MiB of the sixth layer on; at the least, so without those of the last.
  std::vector<std::uint64_t> truth;
  for (int i = 0; i < 6; ++i) truth.insert(truth.end(), {80 * kMiB, 40 * kMiB});
  EXPECT_EQ(asked, truth);
}

TEST(FirstStepTest, NothingComesWhereAllLayersRanOrNoneRepeats) {
  SeededRun whole({.capacity_bytes = 200 * kMiB + 5 * (kWeight + kBias) + 5 * 120 * kMiB + 20 * kMiB});
  LayersOfWeights(whole, 5);
  Blocks saved;
  Forward(whole, 6, 40 * kMiB, saved);
  ASSERT_TRUE(whole.is_out_of_memory());
  EXPECT_TRUE(RestOf(whole).empty());

  SeededRun other({.capacity_bytes = kGiB});
  other.At({kMakesLinear, {"model.py", 12, "__init__"}, kMain});
  for (std::uint64_t size = 40; size < 100; size += 10) other.Allocate(size * kMiB);
  Blocks of_other;
  Forward(other, 12, 40 * kMiB, of_other);
  ASSERT_TRUE(other.is_out_of_memory());
  EXPECT_TRUE(RestOf(other).empty());
}

TEST(FirstStepTest, GradientsComeForTheSizesThatHaveSomeWhileActivationsGo) {
  constexpr int kLayers = 8;
  SeededRun run(
      {.capacity_bytes = 200 * kMiB + kLayers * (kWeight + kBias) + kLayers * 3 * kMiB + 3 * kWeight + 10 * kMiB});
  LayersOfWeights(run, kLayers);
  Blocks saved;
  Forward(run, kLayers, kMiB, saved);
  run.At({kEngine});
  for (int layer = 0; layer < kLayers; ++layer) run.Allocate(kWeight);  // the fourth finds no room
  ASSERT_TRUE(run.is_out_of_memory());
  const std::vector<analyses::ComingRequest> rest = RestOf(run);
  EXPECT_EQ(Asked(rest), std::vector<std::uint64_t>(kLayers - 4, kWeight));  // of biases and the embedding none is seen
  EXPECT_EQ(rest.size() - (kLayers - 4), saved.size());
}

TEST(FirstStepTest, StateComesForEachGradient) {
  SeededRun run({.capacity_bytes = 4 * kWeight + 4 * kWeight + 3 * kWeight + 10 * kMiB});
  run.At({kMakesLinear, {"model.py", 12, "__init__"}, kMain});
  for (int i = 0; i < 4; ++i) run.Allocate(kWeight);
  Blocks saved;
  Forward(run, 4, kMiB / 2, saved);
  Blocks gradients;
  Backward(run, 4, kWeight, saved, gradients);
  run.At({{"/lib/torch/optim/adamw.py", 180, "_init_group"}, kMain});
  for (int i = 0; i < 8; ++i) run.Allocate(kWeight);  // two for each; the fourth finds no room
  ASSERT_TRUE(run.is_out_of_memory());
  EXPECT_EQ(Asked(RestOf(run)), std::vector<std::uint64_t>(4, kWeight));
}

TEST(FirstStepTest, AnEarlierStepTellsMore) {
  SeededRun run({.capacity_bytes = 4 * kGiB});
  LayersOfWeights(run, 12);
  for (int step = 0; !run.is_out_of_memory(); ++step) {
    Blocks saved;
    Blocks gradients;
    Forward(run, 12, static_cast<std::uint64_t>(step + 1) * 30 * kMiB, saved);
    Backward(run, 12, kWeight, saved, gradients);
    run.Free(gradients);
  }
  EXPECT_TRUE(RestOf(run).empty());
}

}  // namespace
}  // namespace ashlar::tests
