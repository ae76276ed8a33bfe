// Changes to a model: what they take away by hand, and that the description and the run agree on it.
#include <cstdint>
#include <string>

#include "estimator/estimate.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kSwitchesClassifier[] = "BertForSequenceClassification";
constexpr std::int64_t kRows = 30'522, kWidth = 768;

std::int64_t CountWith(const Model& model, const ModelSwitches& switches) {
  const absl::StatusOr<Model> switched = SwitchedModel(model, switches);
  EXPECT_TRUE(switched.ok()) << switched.status();
  return switched.ok() ? switched->count() : 0;
}

std::string ErrorWith(const Model& model, const ModelSwitches& switches) {
  const absl::Status status = SwitchedModel(model, switches).status();
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TEST(ModelSwitchesTest, CountsByHand) {
  const Model bert = ModelOf("bert-base-uncased", "BertForMaskedLM");
  EXPECT_EQ(CountWith(bert, {}), bert.count());
  EXPECT_EQ(bert.count() - CountWith(bert, {.vocabulary = 5000}), (kRows - 5000) * (kWidth + 1));  // and its bias
  EXPECT_EQ(bert.count() - CountWith(bert, {.layers = 4}), 8 * 7'087'872);
  EXPECT_EQ(CountWith(bert, {.ties_embeddings = true}), bert.count());
  EXPECT_EQ(CountWith(bert, {.ties_embeddings = false}) - bert.count(), kRows * kWidth);
  // d x d four times and f x d twice a layer, and vectors.
  const std::int64_t d = 384, f = 3072;
  EXPECT_EQ(CountWith(ModelOf("bert-base-uncased"), {.width = d}),
            (kRows + 512 + 2) * d + 2 * d + 12 * (4 * (d * d + d) + 2 * f * d + f + d + 4 * d) + d * d + d);
  const Model t5 = ModelOf("t5-small");
  EXPECT_EQ(CountWith(t5, {.shares_embeddings = false}) - t5.count(), 32'128 * 512);
  EXPECT_EQ(CountWith(t5, {.layers = 5}), CountWith(SwitchedModel(t5, {.layers = 2}).value(), {.layers = 5}));
  const Model table = ModelOf("tabformer-small");
  EXPECT_LT(CountWith(table, {.layers = 6}), table.count());
}

Estimate EstimateWith(const ModelSwitches& switches, bool is_checkpointed = false) {
  EstimateOptions options;
  options.run.batch = 2;
  options.run.torch_version = "1.10";  // keeps gradients
  options.run.optimizer = "adamw-hf";
  options.run.switches = switches;
  options.run.is_checkpointed = is_checkpointed;
  options.tokens = 128;
  absl::StatusOr<Estimate> estimate = EstimateMemory(ModelOf("bert-base-uncased", kSwitchesClassifier), options);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.ok() ? *std::move(estimate) : Estimate();
}

// After the first step a run holds what the description says, to the byte.
void ExpectAgrees(const Estimate& of, std::int64_t on_device, std::int64_t trained) {
  const std::uint64_t buffers = 2 * 512 * 8;  // position and type ids, int64
  const ModelStates& states = of.states.front();
  EXPECT_EQ(states.weights_bytes, 4u * static_cast<std::uint64_t>(on_device));
  EXPECT_EQ(states.gradients_bytes, 4u * static_cast<std::uint64_t>(trained));
  EXPECT_EQ(states.optimizer_bytes, 8u * static_cast<std::uint64_t>(trained));
  EXPECT_GE(of.ascending->moment.step, 2);
  EXPECT_EQ(of.ascending->parts.weights, states.weights_bytes + buffers);
  EXPECT_EQ(of.ascending->parts.gradients, states.gradients_bytes);
  EXPECT_EQ(of.ascending->parts.optimizer, states.optimizer_bytes);
}

TEST(ModelSwitchesTest, FrozenPartsHaveNoGradientsAndStates) {
  const Estimate all = EstimateWith({}), frozen = EstimateWith({.frozen = {"bert.embeddings"}});
  const std::int64_t embeddings = (kRows + 512 + 2) * kWidth + 2 * kWidth;
  ExpectAgrees(all, all.model.count(), all.model.count());
  ExpectAgrees(frozen, all.model.count(), all.model.count() - embeddings);
  // The graph of the embeddings: the norm's input and statistics, the mask of dropout.
  const std::uint64_t n = 2 * 128, d = kWidth;
  EXPECT_EQ(all.ascending->parts.saved_activations - frozen.ascending->parts.saved_activations,
            n * d * 4 + n * 8 + n * d);
}

TEST(ModelSwitchesTest, LayersAboveFrozenEmbeddingsAreTrainedWhenCheckpointed) {
  const Estimate frozen = EstimateWith({.frozen = {"bert.embeddings"}}, /*is_checkpointed=*/true);
  const std::int64_t embeddings = (kRows + 512 + 2) * kWidth + 2 * kWidth;
  ExpectAgrees(frozen, frozen.model.count(), frozen.model.count() - embeddings);
}

TEST(ModelSwitchesTest, EmbeddingsOnTheHostTakeNothingOfTheDevice) {
  const Estimate host = EstimateWith({.has_host_embeddings = true});
  const std::int64_t rest = host.model.count() - kRows * kWidth;
  ExpectAgrees(host, rest, rest);
  EXPECT_EQ(host.ascending->parameters, rest);
}

TEST(ModelSwitchesTest, ErrorsNameTheFlag) {
  const Model bert = ModelOf("bert-base-uncased", kSwitchesClassifier);
  EXPECT_THAT(ErrorWith(bert, {.vocabulary = 0}), HasSubstr("--vocab: 0"));
  EXPECT_THAT(ErrorWith(bert, {.layers = 10'001}), HasSubstr("--layers"));
  EXPECT_THAT(ErrorWith(bert, {.width = 100}), HasSubstr("not a multiple"));
  EXPECT_THAT(ErrorWith(bert, {.ties_embeddings = true}), AllOf(HasSubstr("--tie"), HasSubstr(kSwitchesClassifier)));
  EXPECT_THAT(ErrorWith(bert, {.shares_embeddings = false}), HasSubstr("--separate-embeddings"));
  EXPECT_THAT(ErrorWith(bert, {.frozen = {"poetry"}}), AllOf(HasSubstr("--freeze: 'poetry'"), HasSubstr("classifier")));
  EXPECT_THAT(ErrorWith(bert, {.frozen = {"bert", "classifier"}}), HasSubstr("nothing is left to train"));
  EXPECT_THAT(ErrorWith(ModelOf("bert-base-uncased", "BertForMaskedLM"), {.has_host_embeddings = true}),
              AllOf(HasSubstr("--embeddings-cpu"), HasSubstr("--untie")));
  EXPECT_THAT(ErrorWith(ModelOf("tabformer-small"), {.vocabulary = 10}), HasSubstr("columns"));
  EXPECT_THAT(ErrorWith(*ModelOfCount(7), {.layers = 2}), HasSubstr("--parameters"));
}

}  // namespace
}  // namespace ashlar::estimate
