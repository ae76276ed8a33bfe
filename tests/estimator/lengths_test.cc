// Lengths and batches by what must hold of them whatever the generator; and dry runs of batches that differ.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "estimator/batching.h"
#include "estimator/dry_run.h"
#include "estimator/estimate.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::UnorderedElementsAreArray;

std::string ErrorOf(const absl::StatusOr<Lengths>& lengths) {
  EXPECT_FALSE(lengths.ok());
  return std::string(lengths.status().message());
}

TEST(LengthsTest, AreNormalAndCutAtBothEnds) {
  const Lengths lengths = *NormalLengths("mean:80,sd:40,max:512", {.samples = 40'000, .seed = 7});
  double sum = 0, squares = 0;
  std::size_t within = 0, above = 0;
  for (const std::int64_t sample : lengths.samples) {
    EXPECT_THAT(sample, AllOf(Ge(1), Le(512)));
    sum += static_cast<double>(sample);
    squares += static_cast<double>(sample * sample);
    within += sample >= 40 && sample <= 120 ? 1 : 0;
    above += sample > 160 ? 1 : 0;
  }
  const double count = 40'000, mean = sum / count;
  // Cut at 1, two deviations below: the mean rises by 0.34 and the deviation falls to 39.2. Five standard errors each.
  EXPECT_NEAR(mean, 80.34, 1);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 39.2, 0.8);
  EXPECT_NEAR(static_cast<double>(within) / count, 0.6887, 0.012);  // one deviation and half a token either side
  EXPECT_NEAR(static_cast<double>(above) / count, 0.0221, 0.004);
  EXPECT_EQ(lengths.longest, 512);
  EXPECT_EQ(lengths.samples, NormalLengths("mean:80,sd:40,max:512", {.samples = 40'000, .seed = 7})->samples);
  EXPECT_NE(lengths.samples, NormalLengths("mean:80,sd:40,max:512", {.samples = 40'000, .seed = 8})->samples);
  EXPECT_THAT(NormalLengths("mean:80,sd:0,max:512", {.samples = 3})->samples, ElementsAre(80, 80, 80));
}

TEST(LengthsTest, AFileIsTakenAsItIs) {
  Lengths lengths = *ListedLengths("x", "# tokens\n12\n\n 700\r\n3", {});
  EXPECT_THAT(lengths.samples, ElementsAre(12, 700, 3));
  EXPECT_EQ(lengths.longest, 700);
  lengths.CutTo(512);
  EXPECT_THAT(lengths.samples, ElementsAre(12, 512, 3));
  EXPECT_EQ(lengths.longest, 512);
  EXPECT_EQ(lengths.cut, 1u);
  const Lengths drawn = *ListedLengths("x", "5\n9\n", {.samples = 30});
  EXPECT_EQ(drawn.samples.size(), 30u);
  for (const std::int64_t sample : drawn.samples) EXPECT_TRUE(sample == 5 || sample == 9);
}

TEST(LengthsTest, ErrorsSayWhat) {
  EXPECT_THAT(ErrorOf(NormalLengths("mean:80", {})), HasSubstr("mean, sd and max are needed; such as"));
  EXPECT_THAT(ErrorOf(NormalLengths("mean:80,sd:x,max:9", {})), HasSubstr("'x' is no sd"));
  EXPECT_THAT(ErrorOf(NormalLengths("mean:80,dev:1,max:9", {})), HasSubstr("'dev' is none of mean, sd, min, max"));
  EXPECT_THAT(ErrorOf(NormalLengths("mean:80,sd:1,max:0", {})), HasSubstr("'0' is no max"));
  EXPECT_THAT(ErrorOf(NormalLengths("mean:80,sd:nan,max:9", {})), HasSubstr("'nan' is no sd"));
  EXPECT_THAT(ErrorOf(NormalLengths("mean:8,sd:1,min:9,max:5", {})), HasSubstr("min is above max"));
  EXPECT_THAT(ErrorOf(ListedLengths("x", "12\nabc\n", {})), HasSubstr("line 2: 'abc' is not a length"));
  EXPECT_THAT(ErrorOf(ListedLengths("x", "12\n0\n", {})), HasSubstr("line 2: '0'"));
  EXPECT_THAT(ErrorOf(ListedLengths("x", "\n", {})), HasSubstr("no length"));
  EXPECT_THAT(ErrorOf(ListedLengths("x", "12\n", {.samples = 0})), HasSubstr("0 is not from 1"));
}

std::vector<std::int64_t> TokensOf(const std::vector<BatchShape>& shapes) {
  std::vector<std::int64_t> out;
  for (const BatchShape& shape : shapes) out.push_back(shape.tokens);
  return out;
}

TEST(BatchingTest, EverySampleIsInOneBatch) {
  const Lengths lengths = *NormalLengths("mean:80,sd:40,max:512", {.samples = 103});
  const std::int64_t longest = *std::max_element(lengths.samples.begin(), lengths.samples.end());
  for (const std::uint64_t shuffle : {0, 1, 2}) {
    for (const Batching batching : {Batching::kDynamic, Batching::kUniform}) {
      // Batches of one sample are the samples.
      EXPECT_THAT(TokensOf(EpochOf(lengths, batching, 1, shuffle)), UnorderedElementsAreArray(lengths.samples));
      const std::vector<BatchShape> shapes = EpochOf(lengths, batching, 8, shuffle);
      ASSERT_EQ(shapes.size(), 13u);
      EXPECT_EQ(shapes.back().batch, 103 - 12 * 8);
      const std::vector<std::int64_t> tokens = TokensOf(shapes);
      EXPECT_EQ(*std::max_element(tokens.begin(), tokens.end()), longest);
      EXPECT_TRUE(batching != Batching::kUniform || tokens.front() == longest);
    }
    for (const BatchShape& shape : EpochOf(lengths, Batching::kFixed, 8, shuffle)) EXPECT_EQ(shape.tokens, 512);
  }
  EXPECT_NE(TokensOf(EpochOf(lengths, Batching::kDynamic, 8, 0)), TokensOf(EpochOf(lengths, Batching::kDynamic, 8, 1)));
}

// 400 samples of batch 4: 25 batches are sorted together, so that padding is nearly gone.
TEST(BatchingTest, UniformBatchesPadLess) {
  const Lengths lengths = *NormalLengths("mean:80,sd:40,max:512", {.samples = 400});
  const auto padded = [&](Batching batching) {
    std::int64_t out = 0;
    for (const BatchShape& shape : EpochOf(lengths, batching, 4, 3)) out += shape.batch * shape.tokens;
    return out;
  };
  std::int64_t tokens = 0;
  for (const std::int64_t sample : lengths.samples) tokens += sample;
  EXPECT_LT(padded(Batching::kUniform), tokens * 110 / 100);
  EXPECT_GT(padded(Batching::kDynamic), tokens * 130 / 100);
  EXPECT_GT(padded(Batching::kFixed), padded(Batching::kDynamic));
}

// Live bytes depend on the batch at work alone once the states are there: the peak is that of the worst batch.
TEST(BatchingTest, TheWorstBatchMakesThePeak) {
  const Model model = ModelOf("bert-base-uncased", "BertForSequenceClassification");
  const auto peak = [&](std::vector<BatchShape> batches) {
    const DryRunOptions options{.steps = 6, .batches = std::move(batches), .torch_version = "1.10"};
    return RunDry(model, options, device::AddressOrder::kAscending)->peak_requested_bytes;
  };
  const std::uint64_t longer = peak({{4, 200}}), shorter = peak({{4, 90}}), wider = peak({{9, 120}});
  EXPECT_GT(longer, shorter);
  EXPECT_EQ(peak({{4, 90}, {4, 90}, {4, 200}, {4, 90}}), longer);
  EXPECT_EQ(peak({{4, 90}, {9, 120}, {4, 90}, {4, 200}}), std::max(longer, wider));
}

TEST(BatchingTest, AnEpochIsRunUpToABound) {
  EstimateOptions options;
  options.run.batch = 4;
  options.run.accumulation = 2;
  options.tokens = 64;
  options.lengths = *NormalLengths("mean:80,sd:40,max:512", {.samples = 1000});
  options.runs_an_epoch = true;
  const Estimate estimate = *EstimateMemory(ModelOf("bert-base-uncased", "BertForSequenceClassification"), options);
  EXPECT_EQ(estimate.epoch_steps, 125);
  EXPECT_EQ(estimate.run.steps, kMostEpochSteps);
  EXPECT_EQ(estimate.run.tokens, 64);
  EXPECT_GT(estimate.lengths->cut, 500u);
  options.tokens.reset();
  const absl::Status status = EstimateMemory(ModelOf("tabformer-small"), options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("--lengths: a sample of tabformer has 130 tokens"));
}

}  // namespace
}  // namespace ashlar::estimate
