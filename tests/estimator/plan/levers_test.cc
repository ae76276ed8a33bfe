// Levers and what fits, against estimates made with the same flags, and against bytes counted by hand.
#include "estimator/plan/levers.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "estimator/plan/fit.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Model FourLayers() { return SmallBert(4, 256, 30000); }

EstimateOptions Asked() {
  EstimateOptions options;
  options.run.batch = 16;
  options.run.optimizer = "adamw-hf";
  options.run.torch_version = "1.10";
  options.tokens = 256;
  options.context_bytes = 0;
  return options;
}

Estimate MustEstimate(const EstimateOptions& options) { return MustEstimate(FourLayers(), options); }

std::uint64_t OnDevice(const Estimate& of) {
  return std::max(of.DeviceBytes(*of.ascending), of.DeviceBytes(*of.descending));
}
bool Fits(const EstimateOptions& options) {
  const Estimate of = MustEstimate(options);
  return of.ascending->fits && of.descending->fits;
}

const LeverRow* RowOf(const LeverResult& result, const std::string& flags) {
  for (const LeverRow& row : result.rows) {
    if (row.flags == flags) return &row;
  }
  return nullptr;
}

void ExpectAsEstimated(const LeverResult& result, const std::string& flags, const EstimateOptions& options) {
  const LeverRow* row = RowOf(result, flags);
  ASSERT_NE(row, nullptr) << flags;
  EXPECT_EQ(row->measured.device_bytes, OnDevice(MustEstimate(options))) << flags;
  EXPECT_EQ(row->saved_bytes, static_cast<std::int64_t>(result.asked.device_bytes) -
                                  static_cast<std::int64_t>(row->measured.device_bytes));
}

TEST(LeversTest, CheckpointingHelpsT5) {
  EstimateOptions options;
  options.run.batch = 16;
  options.tokens = 128;
  const Estimate of = MustEstimate(ModelOf("t5-small", "T5ForConditionalGeneration"), options);
  const LeverResult result = *RunLevers(of, 2);
  const LeverRow* row = RowOf(result, "--checkpointing");
  ASSERT_NE(row, nullptr);
  EXPECT_GT(row->saved_bytes, 0);
}

TEST(LeversTest, AreTheEstimatesOfTheirFlags) {
  const Estimate of = MustEstimate(Asked());
  const LeverResult result = *RunLevers(of, 2);
  EXPECT_EQ(result.asked.device_bytes, OnDevice(of));
  EXPECT_FALSE(result.asked.fits.has_value());
  EstimateOptions options = Asked();
  options.run.is_checkpointed = true;
  ExpectAsEstimated(result, "--checkpointing", options);
  options = Asked();
  options.run.batch = 8;
  options.run.accumulation = 2;
  ExpectAsEstimated(result, "--batch 8 --accumulation 2", options);
  options = Asked();
  options.tokens = 128;
  ExpectAsEstimated(result, "--seq 128", options);
  options = Asked();
  options.run.switches.vocabulary = 15'000;
  ExpectAsEstimated(result, "--vocab 15000", options);
  options = Asked();
  options.run.switches.layers = 2;
  ExpectAsEstimated(result, "--layers 2", options);
  options = Asked();
  options.run.precision = Precision::kFloat16Mixed;
  ExpectAsEstimated(result, "--precision fp16", options);
  for (std::size_t i = 1; i < result.rows.size(); ++i) {
    EXPECT_GE(result.rows[i - 1].saved_bytes, result.rows[i].saved_bytes);
  }
  EXPECT_EQ(result.rows.size() + result.skipped.size(), Levers().size());
}

// With the gradients of torch 1.10 kept, all states are there at the peak.
TEST(LeversTest, SaveWhatIsCountedByHand) {
  const Estimate of = MustEstimate(Asked());
  const LeverResult result = *RunLevers(of, 2);
  const auto saved = [&](const std::string& flags) {
    const LeverRow* row = RowOf(result, flags);
    EXPECT_NE(row, nullptr) << flags;
    return row == nullptr ? 0.0 : static_cast<double>(row->saved_bytes);
  };
  // Reserved is in segments, of 20 MiB below 10 MiB: two of them either way.
  const double slack = 40 * kMiB, parameters = static_cast<double>(of.model.count());
  EXPECT_NEAR(saved("--optimizer sgd"), 8 * parameters, slack);
  EXPECT_NEAR(saved("--optimizer sgd-momentum"), 4 * parameters, slack);
  EXPECT_NEAR(saved("--vocab 15000"), 16.0 * 15'000 * 256, slack);
  // A layer's saved bytes (closed_forms_test), and 16 a parameter.
  const double tokens = 16 * 256, scores = 16.0 * 4 * 256 * 256;
  const double layer = tokens * 256 * 34 + tokens * 1024 * 8 + scores * 13 + 16.0 * (12 * 256 * 256 + 13 * 256);
  EXPECT_NEAR(saved("--layers 2"), 2 * layer, slack);
}

TEST(LeversTest, PaddingIsALeverWhereLengthsAreKnown) {
  EstimateOptions options = Asked();
  options.tokens.reset();
  options.lengths = *NormalLengths("mean:60,sd:30,max:512", {.samples = 96});
  options.batching = Batching::kFixed;
  options.runs_an_epoch = true;
  const LeverResult result = *RunLevers(MustEstimate(options), 2);
  options.batching = Batching::kDynamic;
  ExpectAsEstimated(result, "--batching dynamic", options);
  EXPECT_GT(RowOf(result, "--batching dynamic")->saved_bytes, 0);
  EXPECT_NE(RowOf(result, "--batching uniform"), nullptr);
}

TEST(LeversTest, WhatARunDoesNotHaveIsNamed) {
  const LeverResult result = *RunLevers(MustEstimate(Asked()), 1);
  EXPECT_EQ(RowOf(result, "--batching dynamic"), nullptr);
  EXPECT_GE(result.skipped.size(), 3u);
  for (const LeverSkipped& skipped : result.skipped) EXPECT_FALSE(skipped.why.empty()) << skipped.lever->change.name;
  EXPECT_EQ(RunLevers(MustEstimate(*ModelOfCount(1000), {}), 1).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(FitTest, TheCheapestSetFitsAndNoneThatIsCheaperDoes) {
  EstimateOptions options = Asked();
  const std::uint64_t needed = OnDevice(MustEstimate(options));
  for (const double share : {0.8, 0.5, 0.3}) {
    options.capacity_bytes = static_cast<std::uint64_t>(share * static_cast<double>(needed));
    const Estimate of = MustEstimate(options);
    const Fit fit = *FindFit(of, {.threads = 2});
    ASSERT_TRUE(fit.cheapest.has_value()) << share;
    EXPECT_EQ(fit.asked.fits, false);
    EXPECT_EQ(fit.cheapest->measured.fits, true);
    int price = 0;
    Variant variant = VariantOf(of);
    for (const Lever* lever : fit.cheapest->levers) {
      price += lever->change.price;
      EXPECT_GT(lever->change.price, 0);
      EXPECT_THAT(lever->pull(of, variant), testing::Not(IsEmpty()));
    }
    EXPECT_EQ(price, fit.cheapest->price);
    for (const device::AddressOrder order : {device::AddressOrder::kAscending, device::AddressOrder::kDescending}) {
      variant.run.capacity_bytes = of.run.capacity_bytes;
      EXPECT_TRUE(RunDry(of.model, variant.run, order)->fits);
    }
    // Alone or in pairs nothing cheaper fits.
    for (const Lever& a : Levers()) {
      for (const Lever& b : Levers()) {
        const bool is_pair = a.group < b.group && a.change.price > 0 && b.change.price > 0;
        if (!is_pair && &a != &b) continue;
        Variant cheaper = VariantOf(of);
        if (a.change.price == 0 || a.pull(of, cheaper).empty()) continue;
        if (is_pair && b.pull(of, cheaper).empty()) continue;
        if (a.change.price + (is_pair ? b.change.price : 0) >= price) continue;
        const absl::StatusOr<Measured> measured = Measure(of, cheaper);
        if (!measured.ok()) continue;  // this version has no such setting
        EXPECT_EQ(measured->fits, false) << a.change.name << ", " << b.change.name;
      }
    }
  }
}

TEST(FitTest, TheLargestBatchFitsAndTheNextDoesNot) {
  EstimateOptions options = Asked();
  options.capacity_bytes = OnDevice(MustEstimate(options));
  const Fit fit = *FindFit(MustEstimate(options), {.threads = 2});
  EXPECT_EQ(fit.asked.fits, true);
  EXPECT_FALSE(fit.cheapest.has_value());
  EXPECT_GE(fit.largest.batch, 16);
  EXPECT_THAT(fit.largest.exceptions, IsEmpty());
  options.run.batch = fit.largest.batch;
  EXPECT_TRUE(Fits(options));
  ++options.run.batch;
  EXPECT_FALSE(Fits(options));
}

TEST(LeversTest, FusedAttentionWhereItWasNotTaken) {
  EstimateOptions options;
  options.run.batch = 4;
  options.run.switches.layers = 2;
  options.run.switches.vocabulary = 1000;
  options.tokens = 512;
  const LeverResult fused = *RunLevers(MustEstimate(ModelOf("gpt2"), options), 2);
  for (const LeverRow& row : fused.rows) EXPECT_NE(row.flags, "--attention sdpa");
  options.run.attention = kernels::Attention::kEager;
  const LeverResult eager = *RunLevers(MustEstimate(ModelOf("gpt2"), options), 2);
  const auto row = std::find_if(eager.rows.begin(), eager.rows.end(),
                                [](const LeverRow& of) { return of.flags == "--attention sdpa"; });
  ASSERT_NE(row, eager.rows.end());
  EXPECT_EQ(row->measured.device_bytes, fused.asked.device_bytes);
  EXPECT_GT(row->saved_bytes, 0);
  options.run.torch_version = "2.1";  // whose transformers has none for GPT-2
  const LeverResult older = *RunLevers(MustEstimate(ModelOf("gpt2"), options), 2);
  for (const LeverRow& of : older.rows) EXPECT_NE(of.flags, "--attention sdpa");
}

TEST(FitTest, SaysWhenNothingFits) {
  const Model one_layer = *ReadModel(
      R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"], "num_hidden_layers": 1,
          "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 512, "vocab_size": 30000})",
      {});
  EstimateOptions options = Asked();
  options.capacity_bytes = 19 * kMiB;  // 18 MiB are the driver's
  const Fit fit = *FindFit(MustEstimate(one_layer, options), {.threads = 2});
  EXPECT_FALSE(fit.cheapest.has_value());
  EXPECT_EQ(fit.largest.batch, 0);
  ASSERT_TRUE(fit.least.has_value());
  EXPECT_GT(fit.least->measured.device_bytes, 19 * kMiB);
  EXPECT_LT(fit.least->measured.device_bytes, fit.asked.device_bytes / 2);
  EXPECT_GT(fit.sets_tried, 50u);
  options.capacity_bytes.reset();
  EXPECT_THAT(std::string(FindFit(MustEstimate(one_layer, options), {}).status().message()),
              HasSubstr("how much memory"));
}

}  // namespace
}  // namespace ashlar::estimate
