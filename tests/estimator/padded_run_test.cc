// What a mask for padded batches, outputs that a loop keeps, and pure half precision change, counted by hand.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "estimator/estimate.h"
#include "estimator/levers/levers.h"
#include "estimator/program.h"
#include "estimator/report/estimate_report.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using kernels::Attention;
using testing::HasSubstr;

constexpr std::int64_t kBatch = 32, kLayers = 2;

// Without optimizer states and with small embeddings the peak lies where all that forward saved is alive.
DryRunOptions Options(std::int64_t tokens, std::optional<std::int64_t> vocabulary = 1000) {
  DryRunOptions out{.steps = 2, .batch = kBatch, .tokens = tokens};
  out.optimizer = "sgd";
  out.switches.layers = kLayers;
  out.switches.vocabulary = vocabulary;
  return out;
}

DryRun MustRun(const Model& model, const DryRunOptions& options) {
  const absl::StatusOr<DryRun> run = RunDry(model, options, device::AddressOrder::kAscending);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *run : DryRun();
}

// The run with padded batches, beside that with full ones.
std::pair<DryRun, DryRun> PaddedAndFull(const Model& model, DryRunOptions options) {
  const DryRun full = MustRun(model, options);
  options.is_padded = true;
  return {MustRun(model, options), full};
}

// One float mask (B, 1, S, S) that all layers' kernels keep.
TEST(PaddedRunTest, FusedAttentionKeepsOneMaskForAllLayers) {
  for (const auto& [file, architecture] :
       {std::pair("bert-base-uncased", "BertForSequenceClassification"),
        std::pair("roberta-base", "RobertaForMaskedLM"), std::pair("distilbert-base-uncased", "DistilBertForMaskedLM"),
        std::pair("gpt2", "GPT2LMHeadModel"), std::pair("qwen2-0.5b", "Qwen2ForCausalLM")}) {
    SCOPED_TRACE(architecture);
    DryRunOptions options = Options(128);
    options.attention = Attention::kSdpa;
    const auto [padded, full] = PaddedAndFull(ModelOf(file, architecture), options);
    EXPECT_EQ(padded.parts.saved_activations, full.parts.saved_activations + 4u * kBatch * 128 * 128);
  }
}

// Rows of 100 are no multiple of 8: each layer keeps a copy with rows of 104 of its own, and the mask itself goes.
TEST(PaddedRunTest, OddRowsAreCopiedInEachLayer) {
  DryRunOptions options = Options(100);
  options.attention = Attention::kSdpa;
  const auto [padded, full] = PaddedAndFull(ModelOf("bert-base-uncased", "BertForSequenceClassification"), options);
  EXPECT_EQ(padded.parts.saved_activations, full.parts.saved_activations + kLayers * 4u * kBatch * 100 * 104);
}

// What is added to scores is one row a sample, and an addition saves nothing.
TEST(PaddedRunTest, EagerAttentionKeepsNothingMore) {
  for (const auto& [file, architecture] :
       {std::pair("bert-base-uncased", "BertForSequenceClassification"), std::pair("gpt2", "GPT2LMHeadModel"),
        std::pair("t5-small", "T5ForConditionalGeneration")}) {
    SCOPED_TRACE(architecture);
    DryRunOptions options = Options(128);
    options.attention = Attention::kEager;
    const auto [padded, full] = PaddedAndFull(ModelOf(file, architecture), options);
    EXPECT_EQ(padded.parts.saved_activations, full.parts.saved_activations);
  }
}

// FlashAttention takes no mask: in bf16 on an A100 the memory-efficient kernel takes its place.
TEST(PaddedRunTest, AMaskLeavesFlashAttention) {
  DryRunOptions options = Options(128);
  options.precision = Precision::kBFloat16Pure;
  options.attention = Attention::kSdpa;
  const auto [padded, full] = PaddedAndFull(ModelOf("bert-base-uncased", "BertForSequenceClassification"), options);
  // Sums of 128 rows either way; the mask in two bytes.
  EXPECT_EQ(padded.parts.saved_activations, full.parts.saved_activations + 2u * kBatch * 128 * 128);
}

// The package flash_attn keeps, a layer, for the tokens that are no padding (T), in two bytes: query, key, value and
// output, where FlashAttention over the whole batch (N tokens) keeps the same of all, and 24 bytes of seeds where the
// unpadded kernel has 16. The output with padding put back is one tensor of N more, where the whole batch's output is
// the next product's input itself. A sum a row of each head; indices of 8 bytes; starts of 4, one more than samples.
TEST(PaddedRunTest, FlashKeepsTheRealTokens) {
  for (const auto& [file, architecture] :
       {std::pair("gpt2", "GPT2LMHeadModel"), std::pair("gpt-neo-125m", "GPTNeoForCausalLM"),
        std::pair("distilbert-base-uncased", "DistilBertForMaskedLM")}) {
    SCOPED_TRACE(architecture);
    DryRunOptions options = Options(128);
    options.precision = Precision::kBFloat16Pure;
    options.attention = Attention::kFlash;
    const DryRun full = MustRun(ModelOf(file, architecture), options);
    constexpr std::int64_t kAll = kBatch * 128, kReal = 2500, kWidth = 768, kHeads = 12;
    options.batches = {{.batch = kBatch, .tokens = 128, .is_padded = true, .real_tokens = kReal}};
    const DryRun padded = MustRun(ModelOf(file, architecture), options);
    // GPT-2's three are one tensor, of which the whole batch's kernel keeps views.
    const std::int64_t of_a_token = 4 * 2 * kWidth + 4 * kHeads;
    const std::int64_t more = 2 * kAll * kWidth + 8 * kReal + 4 * (kBatch + 1) + 16 - 24;
    EXPECT_EQ(static_cast<std::int64_t>(padded.parts.saved_activations),
              static_cast<std::int64_t>(full.parts.saved_activations) + kLayers * (more - (kAll - kReal) * of_a_token));
  }
}

TEST(PaddedRunTest, FlashTakesLessThanAMaskOverSamplesOfManyLengths) {
  DryRunOptions options = Options(512);
  options.precision = Precision::kBFloat16Pure;
  Lengths lengths = *NormalLengths("mean:80,sd:60,max:512", {.samples = 256, .seed = 3});
  options.batches = EpochOf(lengths, Batching::kDynamic, kBatch, 0);
  std::int64_t tokens = 0;
  for (const BatchShape& shape : options.batches) {
    EXPECT_LE(shape.real_tokens, shape.batch * shape.tokens);
    EXPECT_EQ(shape.is_padded, shape.real_tokens < shape.batch * shape.tokens);
    tokens += shape.real_tokens;
  }
  EXPECT_EQ(tokens, std::accumulate(lengths.samples.begin(), lengths.samples.end(), std::int64_t{0}));
  for (const char* file : {"gpt2", "qwen2-0.5b"}) {
    const Model model = ModelOf(file);
    options.attention = Attention::kSdpa;
    const DryRun masked = MustRun(model, options);
    options.attention = Attention::kFlash;
    const DryRun unpadded = MustRun(model, options);
    EXPECT_LT(unpadded.peak_requested_bytes, masked.peak_requested_bytes) << file;
    EXPECT_LT(unpadded.parts.saved_activations, masked.parts.saved_activations) << file;
  }
}

TEST(PaddedRunTest, BatchesOfOneLengthAreNotPadded) {
  Lengths lengths;
  lengths.samples = {50, 50, 50, 50};
  lengths.longest = 50;
  std::size_t padded = 0;
  for (const BatchShape& shape : EpochOf(lengths, Batching::kDynamic, 2, 0)) padded += shape.is_padded ? 1 : 0;
  EXPECT_EQ(padded, 0u);
  lengths.longest = 60;
  for (const BatchShape& shape : EpochOf(lengths, Batching::kFixed, 2, 0)) EXPECT_TRUE(shape.is_padded);
}

// At the backward of the loss: log-probabilities and two gradients, and the logits that the loop holds.
TEST(KeptOutputsTest, AreTheLogitsUntilTheNextCallHasReturned) {
  const Model model = ModelOf("bert-base-uncased", "BertForMaskedLM");
  DryRunOptions options = Options(128, std::nullopt);
  const DryRun dropped = MustRun(model, options);
  options.keeps_outputs = true;
  const DryRun kept = MustRun(model, options);
  EXPECT_EQ(kept.peak_requested_bytes, dropped.peak_requested_bytes + 4u * kBatch * 128 * 30'522);
}

// Keys and values of GPT-2 are outputs too: views of the packed projections, (B, S, 3 d), which the graph keeps until
// a layer's backward. In the next forward pass all of them are there beside the logits.
TEST(KeptOutputsTest, InferenceHoldsThoseOfTheCallBefore) {
  const Model model = ModelOf("gpt2", "GPT2LMHeadModel");
  DryRunOptions options = Options(128, std::nullopt);
  options.is_training = false;
  const DryRun dropped = MustRun(model, options);
  options.keeps_outputs = true;
  const DryRun kept = MustRun(model, options);
  constexpr std::uint64_t kTokens = kBatch * 128;
  EXPECT_EQ(kept.peak_requested_bytes, dropped.peak_requested_bytes + 4 * kTokens * (50'257 + kLayers * 3 * 768));
}

TEST(KeptOutputsTest, DeletingThemIsALever) {
  EstimateOptions options;
  options.run = Options(128);
  options.run.switches = {};
  options.run.batch = 16;
  options.run.keeps_outputs = true;
  options.context_bytes = 0;
  const absl::StatusOr<Estimate> of = EstimateMemory(ModelOf("gpt2", "GPT2LMHeadModel"), options);
  ASSERT_TRUE(of.ok()) << of.status();
  const LeverResult result = *RunLevers(*of, 1);
  std::int64_t saved = 0;
  for (const LeverRow& row : result.rows) {
    if (row.flags == "--keep-outputs=false") saved = row.saved_bytes;
  }
  options.run.keeps_outputs = false;
  const Estimate without = *EstimateMemory(ModelOf("gpt2", "GPT2LMHeadModel"), options);
  EXPECT_EQ(saved, static_cast<std::int64_t>(
                       std::max(of->DeviceBytes(*of->ascending), of->DeviceBytes(*of->descending)) -
                       std::max(without.DeviceBytes(*without.ascending), without.DeviceBytes(*without.descending))));
  EXPECT_GT(saved, 4 * 16 * 128 * 50'257 / 2);
}

// No head, no loss: the mean of what is returned stands for one, of an encoder and of a decoder, and the report says
// so.
TEST(BareModelTest, TrainsByTheMeanOfItsOutput) {
  for (const auto& [file, architecture] :
       {std::pair("bert-base-uncased", "BertModel"), std::pair("gpt2", "GPT2Model"),
        std::pair("qwen2-0.5b", "Qwen2Model"), std::pair("t5-small", "T5EncoderModel")}) {
    SCOPED_TRACE(architecture);
    EstimateOptions options;
    options.run = Options(64);
    options.tokens = 64;
    const Model model = ModelOf(file, architecture);
    EXPECT_TRUE(IsTrainedByMean(model));
    const absl::StatusOr<Estimate> estimate = EstimateMemory(model, options);
    ASSERT_TRUE(estimate.ok() && estimate->ascending.has_value()) << architecture;
    EXPECT_EQ(estimate->ascending->parts.batch, 8u * kBatch * 64);  // ids alone
    EXPECT_THAT(ToText({"", *estimate}), HasSubstr("by the mean of its output"));
  }
  EXPECT_FALSE(IsTrainedByMean(ModelOf("gpt2", "GPT2LMHeadModel")));
}

// Parameters of 2 bytes, and position and type ids.
TEST(EncoderHalfTest, WeightsAreHalf) {
  const Model model = ModelOf("bert-base-uncased", "BertForSequenceClassification");
  DryRunOptions options{.steps = 2, .batch = 2, .tokens = 64, .precision = Precision::kBFloat16Pure};
  const DryRun run = MustRun(model, options);
  EXPECT_EQ(run.parts.weights, 2 * static_cast<std::uint64_t>(model.count()) + 2 * 512 * 8);
  EXPECT_EQ(run.parts.total(), run.peak_requested_bytes);
}

}  // namespace
}  // namespace ashlar::estimate
