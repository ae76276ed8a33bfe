// Causes that sizes tell, with their bytes: scores of attention and logits that no name says, pools, copies.
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/changes/program_changes.h"
#include "analyzer/whatif/program_remedies.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/causes/owned_run.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {
namespace {

using analyses::CauseContext;
using analyses::CauseFinding;
using analyses::CauseKind;
using analyses::Confidence;
using analyses::Finding;
using Made = std::vector<core::Block*>;
using testing::HasSubstr;

constexpr SeededFrame kShapesMain = {"train.py", 60, "main"};
constexpr SeededFrame kShapesMade = {"/lib/torch/nn/modules/module.py", 1300, "convert"};
constexpr SeededFrame kShapesMoved = {"/lib/torch/nn/modules/module.py", 966, "_apply"};
constexpr SeededFrame kShapesEngine = {"??", 0,
                                       "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"};

// A decoder of 32-bit numbers over rows of 2 x 2,048 places.
struct Decoder {
  std::uint64_t layers = 6, width = 512, classes = 1024;
  bool has_scores = false;     // and the masks of their dropout, a byte for each
  bool has_dropout = false;    // masks of the rows, a byte for each number
  std::uint64_t own_loss = 0;  // so many blocks as large as the logits, by the program's own lines
  std::uint64_t rows() const { return 2 * 2048; }
  std::uint64_t ScoreBytes() const { return 2 * (width / 64) * 2048 * 2048 * 4; }
  std::uint64_t LogitBytes() const { return rows() * classes * 4; }
};

Made WeightsOf(SeededRun& run, const Decoder& net, std::uint64_t bytes_each = 4) {
  run.At({kShapesMade, kShapesMoved, kShapesMain});
  Made out;
  for (std::uint64_t layer = 0; layer < net.layers; ++layer) {
    for (const std::uint64_t columns : {std::uint64_t{1}, 3 * net.width, net.width, 4 * net.width, 4 * net.width}) {
      out.push_back(run.Allocate(columns * net.width * bytes_each));
    }
  }
  out.push_back(run.Allocate(net.classes * net.width * bytes_each));
  return out;
}

void DecoderPass(SeededRun& run, const Decoder& net, Made& saved) {
  const std::uint64_t row_bytes = net.rows() * net.width * 4;
  for (std::uint64_t layer = 0; layer < net.layers; ++layer) {
    int line = 30;
    for (const std::uint64_t widths : {1, 3, 1, 4, 1}) {
      run.At({{"model.py", ++line, "forward"}, kShapesMain});
      saved.push_back(run.Allocate(widths * row_bytes));
    }
    for (int i = 0; net.has_dropout && i < 2; ++i) saved.push_back(run.Allocate(row_bytes / 4));
    if (!net.has_scores) continue;
    run.At({{"model.py", 40, "forward"}, kShapesMain});
    saved.push_back(run.Allocate(net.ScoreBytes()));
    saved.push_back(run.Allocate(net.ScoreBytes() / 4));
  }
  for (std::uint64_t i = 0; i < net.own_loss; ++i) {
    run.At({{"loss.py", static_cast<int>(10 + i), "forward"}, kShapesMain});
    saved.push_back(run.Allocate(net.LogitBytes()));
  }
}

// `temporary_bytes` is alive when the last gradient is made.
void DecoderBackward(SeededRun& run, const Made& weights, Made& saved, Made& gradients,
                     std::uint64_t temporary_bytes = kMiB) {
  run.At({kShapesEngine});
  core::Block* const temporary = run.Allocate(temporary_bytes);
  for (const core::Block* const weight : weights) {
    if (weight != nullptr) gradients.push_back(run.Allocate(weight->size_bytes));
  }
  run.Free(temporary);
  run.Free(saved);
}

SeededInput DecoderSteps(const Decoder& net, int steps) {
  SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = 80 * kGiB});
  const Made weights = WeightsOf(run, net);
  for (int step = 0; step < steps; ++step) {
    Made saved;
    Made gradients;
    DecoderPass(run, net, saved);
    DecoderBackward(run, weights, saved, gradients);
    run.Free(gradients);
  }
  return run.Finish();
}

TEST(CausesShapesTest, ScoresAndTheirMasksAreFoundWithoutAFailure) {
  const Decoder net{.has_scores = true};
  const SeededInput input = DecoderSteps(net, 3);
  const CauseFinding scores = Diagnosis(input).Of(CauseKind::kAttentionScores);
  EXPECT_EQ(scores.finding, Finding::kFound);
  EXPECT_EQ(scores.bytes, net.layers * (net.ScoreBytes() + net.ScoreBytes() / 4));
  EXPECT_TRUE(scores.is_sickness);
}

// The advice is then not to use what the program uses.
TEST(CausesShapesTest, ScoresThatAFusedCallKeepsAreItsOwn) {
  const SeededInput input = DecoderSteps({.has_scores = true}, 3);
  const Diagnosis diagnosis(input);
  CauseContext context = diagnosis.context();
  for (const bool is_call : {false, true}) {
    context.device.calls_fused_attention = [&](const trace::Frame&) { return is_call; };
    std::vector<whatif::TestedCause> scores;
    for (const CauseFinding& finding : FindCauses(context)) {
      if (finding.kind == CauseKind::kAttentionScores) scores.push_back({finding});
    }
    ASSERT_EQ(scores.size(), 1U);
    EXPECT_EQ(scores[0].finding.change == &analyses::changes::kWhatFusedKernelsTake, is_call);
    const std::vector<whatif::ProgramRemedy> advice = whatif::ProgramRemedies(scores);
    ASSERT_EQ(advice.size(), 1U);
    EXPECT_EQ(absl::StrJoin(advice[0].python, "\n").find("F.scaled_dot_product_attention(") == std::string::npos,
              is_call);
    EXPECT_EQ(absl::StrContains(advice[0].sentence, "none takes this call"), is_call);
  }
}

// Masks of dropout are a quarter as large as what they mask, and no rows of a shorter text.
TEST(CausesShapesTest, MasksOfDropoutMakeNoScores) {
  const SeededInput input = DecoderSteps({.has_dropout = true}, 3);
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kAttentionScores).finding, Finding::kAbsent);
}

TEST(CausesShapesTest, APassWithoutScoresHasNone) {
  const SeededInput input = DecoderSteps({}, 3);
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kAttentionScores).finding, Finding::kAbsent);
}

TEST(CausesShapesTest, LogitsOfALossOfOnesOwnAreToldBySizes) {
  const Decoder net{.classes = 32'000, .own_loss = 4};
  const SeededInput input = DecoderSteps(net, 3);
  const CauseFinding logits = Diagnosis(input).Of(CauseKind::kLogitsSpike);
  EXPECT_EQ(logits.finding, Finding::kFound);
  EXPECT_EQ(logits.bytes, 4 * net.LogitBytes());
}

// The output layer asks for all logits of a generation's texts at once, and there are none yet.
TEST(CausesShapesTest, LogitsThatARequestWasForAreToldBySizes) {
  for (const bool is_wide : {true, false}) {
    const Decoder net{.layers = 2, .classes = is_wide ? 32'000U : 4 * 512U};
    SeededRun run({.capacity_bytes = (is_wide ? 512 : 176) * kMiB});
    WeightsOf(run, net);
    Made saved;
    DecoderPass(run, net, saved);
    run.At({{"/lib/torch/nn/modules/linear.py", 134, "forward"}, {"model.py", 60, "forward"}, kShapesMain});
    run.Fail(net.LogitBytes());
    const SeededInput input = run.Finish();
    const CauseFinding logits = Diagnosis(input).Of(CauseKind::kLogitsSpike);
    EXPECT_EQ(logits.finding, is_wide ? Finding::kFound : Finding::kAbsent);
    if (!is_wide) continue;
    EXPECT_EQ(logits.bytes, net.LogitBytes());
    EXPECT_THAT(SaidOf(logits), HasSubstr("32,000 outputs for each of 4,096 rows of 512"));
    EXPECT_EQ(logits.change, &analyses::changes::kLogitsOfTheLast) << "nothing is trained";
  }
}

// As a log-softmax asks for its output beside its input.
TEST(CausesShapesTest, TheRequestThatFailedIsOneOfTheBlocksOfALoss) {
  for (const bool is_as_large : {true, false}) {
    const Decoder net{.layers = 2, .classes = 32'000, .own_loss = 1};
    SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = kGiB});
    WeightsOf(run, net);
    Made saved;
    DecoderPass(run, net, saved);
    run.At({{"model.py", 61, "token_logps"}, kShapesMain});
    run.Fail(is_as_large ? net.LogitBytes() : 4 * net.LogitBytes());
    const CauseFinding logits = Diagnosis(run.Finish()).Of(CauseKind::kLogitsSpike);
    EXPECT_EQ(logits.finding == Finding::kFound && logits.confidence == Confidence::kLikely, is_as_large)
        << SaidOf(logits);
  }
}

// A loss that leaves out the last place of each text makes its logits of a copy without those rows, which goes.
TEST(CausesShapesTest, LogitsWithoutTheLastPlacesAreToldBySizes) {
  const Decoder net{.layers = 2, .classes = 32'000};
  for (const std::uint64_t left_out : {2, 60, 400}) {
    SeededRun run({.capacity_bytes = 512 * kMiB});
    WeightsOf(run, net);
    Made saved;
    DecoderPass(run, net, saved);
    run.At({{"/lib/torch/nn/modules/linear.py", 134, "forward"}, {"model.py", 60, "forward"}, kShapesMain});
    run.Fail((net.rows() - left_out) * net.classes * 4);
    const CauseFinding logits = Diagnosis(run.Finish()).Of(CauseKind::kLogitsSpike);
    EXPECT_EQ(logits.finding, left_out < 400 ? Finding::kFound : Finding::kAbsent) << left_out;
  }
}

// As wide as a layer within the model: four times its width.
TEST(CausesShapesTest, WhatALayerWithinTheModelMakesIsNoLogits) {
  const Decoder net{.layers = 2, .classes = 4 * 512, .own_loss = 40};
  const SeededInput input = DecoderSteps(net, 3);
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kLogitsSpike).finding, Finding::kAbsent);
}

// No weight has as many columns as the large blocks.
TEST(CausesShapesTest, LargeBlocksThatNoWeightMakesAreNoLogits) {
  SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = 80 * kGiB});
  const Made weights = WeightsOf(run, {});
  Made saved;
  DecoderPass(run, {.classes = 32'000, .own_loss = 4}, saved);
  const SeededInput input = run.Finish();
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kLogitsSpike).finding, Finding::kAbsent);
}

// By chance sizes are those of an output layer, as where all are powers of two.
TEST(CausesShapesTest, WhatLayersBeforeItMakeTooIsNoLogits) {
  for (const int layers : {0, 6}) {
    SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = 80 * kGiB});
    run.At({{"model.py", 12, "__init__"}, kShapesMain});
    run.Allocate(16 * kMiB);  // 8,192 x 512
    run.At({{"model.py", 42, "forward"}, kShapesMain});
    for (int layer = 0; layer < layers; ++layer) run.Allocate(64 * kMiB);
    run.Allocate(8 * kMiB);  // 4,096 rows of 512
    for (int i = 0; i < 2; ++i) run.Allocate(128 * kMiB);
    const SeededInput input = run.Finish();
    EXPECT_EQ(Diagnosis(input).Of(CauseKind::kLogitsSpike).finding, layers == 0 ? Finding::kFound : Finding::kAbsent);
  }
}

// A pool for each graph; the first is the widest.
SeededInput GraphsWithAPoolEach(const std::vector<std::uint64_t>& pools_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB, .has_pool_ids = true});
  std::uint64_t pool = 0;
  for (const std::uint64_t bytes : pools_bytes) {
    run.At({{"graphs.py", 30, "capture"}, kShapesMain});
    run.Free(run.Allocate(bytes, {}, PoolId{0, ++pool}));
  }
  run.At({{"serve.py", 9, "answer"}, kShapesMain});
  run.Allocate(kGiB);
  return run.Finish();
}

TEST(CausesShapesTest, OnePoolForAllWouldNeedTheWidestAlone) {
  const SeededInput input = GraphsWithAPoolEach({4 * kGiB, 2 * kGiB, kGiB});
  const CauseFinding pools = Diagnosis(input).Of(CauseKind::kPrivatePools);
  EXPECT_EQ(pools.finding, Finding::kFound);
  EXPECT_EQ(pools.bytes, 3 * kGiB);
}

// What the first left free holds all of the second, though that has little free itself.
TEST(CausesShapesTest, OnePoolForAllTakesInWhatLives) {
  SeededRun run({.capacity_bytes = 80 * kGiB, .has_pool_ids = true});
  run.At({{"graphs.py", 30, "capture"}, kShapesMain});
  run.Free(run.Allocate(220 * kMiB, {}, PoolId{0, 1}));
  run.Allocate(200 * kMiB, {}, PoolId{0, 2});
  run.Free(run.Allocate(20 * kMiB, {}, PoolId{0, 2}));
  const SeededInput input = run.Finish();
  const CauseFinding pools = Diagnosis(input).Of(CauseKind::kPrivatePools);
  EXPECT_EQ(pools.finding, Finding::kFound);
  EXPECT_EQ(pools.bytes, 220 * kMiB);
}

TEST(CausesShapesTest, ASinglePoolIsCountedWhole) {
  const SeededInput input = GraphsWithAPoolEach({4 * kGiB});
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kPrivatePools).bytes, 4 * kGiB);
}

// A copy of the weights after each step; the last is made after the last backward pass, and the next pass fails at
// once.
TEST(CausesShapesTest, TheCopyMadeSinceTheLastBackwardPassIsCounted) {
  const Decoder net;
  SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = kGiB});
  const Made weights = WeightsOf(run, net);
  std::uint64_t set_bytes = 0;
  for (const core::Block* const weight : weights) set_bytes += weight->size_bytes;
  for (int step = 0; step < 3; ++step) {
    Made saved;
    Made gradients;
    DecoderPass(run, net, saved);
    // A temporary half as large as the gradients, which is none.
    DecoderBackward(run, weights, saved, gradients, set_bytes / 2);
    run.Free(gradients);
    run.At({{"keep.py", 7, "clone"}, kShapesMain});
    for (const core::Block* const weight : weights) run.Allocate(weight->size_bytes);
  }
  run.At({{"model.py", 31, "forward"}, kShapesMain});
  run.Allocate(4 * kGiB);
  ASSERT_TRUE(run.is_out_of_memory());
  const SeededInput input = run.Finish();
  const CauseFinding copies = Diagnosis(input).Of(CauseKind::kModelCopies);
  EXPECT_EQ(copies.finding, Finding::kFound);
  EXPECT_EQ(copies.bytes, 3 * set_bytes);
}

// Three models of one shape, one after the other, each trained and then evaluated; all are kept, and the third fails in
// its first pass. The evaluation has no backward pass, so that nothing but the next model ends it.
TEST(CausesShapesTest, AModelThatIsMadeAfterAnEvaluationIsASetOfWeights) {
  const Decoder net;
  SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = kGiB});
  std::uint64_t set_bytes = 0;
  for (int model = 0; model < 3; ++model) {
    const Made weights = WeightsOf(run, net);
    set_bytes = 0;
    for (const core::Block* const weight : weights) set_bytes += weight->size_bytes;
    for (int step = 0; model < 2 && step < 3; ++step) {
      Made saved;
      Made gradients;
      DecoderPass(run, net, saved);
      DecoderBackward(run, weights, saved, gradients);
      run.Free(gradients);
    }
    Made evaluated;
    if (model < 2) DecoderPass(run, net, evaluated);
    run.Free(evaluated);
  }
  run.At({{"model.py", 31, "forward"}, kShapesMain});
  run.Allocate(4 * kMiB);
  run.Allocate(4 * kGiB);
  ASSERT_TRUE(run.is_out_of_memory());
  const SeededInput input = run.Finish();
  const CauseFinding copies = Diagnosis(input).Of(CauseKind::kModelCopies);
  EXPECT_EQ(copies.finding, Finding::kFound);
  EXPECT_GE(copies.bytes, 2 * set_bytes);
  EXPECT_LE(copies.bytes, 2 * set_bytes + 2 * kMiB);  // a temporary of a weight's size counts as a gradient
}

// A model with numbers of 2 bytes, beside the blocks of a checkpoint: each is `up` / `down` as large as a weight.
SeededInput LoadedBeside(std::uint64_t up, std::uint64_t down) {
  SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = 80 * kGiB});
  const Made weights = WeightsOf(run, {.classes = 8192}, 2);
  run.At({{"/lib/torch/serialization.py", 1800, "restore_location"}, kShapesMain});
  for (const core::Block* const weight : weights) run.Allocate(weight->size_bytes * up / down);
  return run.Finish();
}

TEST(CausesShapesTest, ACheckpointOfTwiceThePrecisionIsLoadedTwice) {
  const SeededInput input = LoadedBeside(2, 1);
  const CauseFinding loaded = Diagnosis(input).Of(CauseKind::kLoadedTwice);
  EXPECT_EQ(loaded.finding, Finding::kFound);
  EXPECT_EQ(loaded.bytes, Diagnosis(input).timeline().allocated_peak().bytes / 3 * 2);
}

TEST(CausesShapesTest, ACheckpointOfAnotherModelIsNot) {
  const SeededInput input = LoadedBeside(4, 3);
  EXPECT_EQ(Diagnosis(input).Of(CauseKind::kLoadedTwice).finding, Finding::kAbsent);
}

}  // namespace
}  // namespace ashlar::tests
