// Frozen parameters: how patterns name them, and bytes computed by hand of what the graph no longer saves, of gradients
// and of optimizer states.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/models/bert.h"
#include "estimator/models/gpt.h"
#include "estimator/models/tabformer.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/optim/optimizer.h"
#include "kernels/workloads/runtime.h"

namespace ashlar::kernels {
namespace {

using Patterns = std::vector<std::string>;

std::unique_ptr<Runtime> FrozenRuntimeOf(const char* torch = "2.6") {
  return *Runtime::Make({.framework = *FrameworkOf(torch), .gpu = *GpuNamed("A100")});
}

std::uint64_t FrozenLive(Context& context, Part part) {
  return context.memory().live_by_part()[static_cast<std::size_t>(part)];
}

TEST(IsNamedBy, WholePartsAnywhere) {
  const char* name = "bert.encoder.layer.10.output.dense.weight";
  for (const char* pattern : {"bert", "encoder", "layer.10", "layer.*.output", "encoder.layer.1*", "dense.weight",
                              "bert.*.l*r.10", "*", "bert.encoder.layer.10.output.dense.weight"}) {
    EXPECT_TRUE(IsNamedBy(name, pattern)) << pattern;
  }
  for (const char* pattern : {"layer.1", "enc", "ayer", "bert.layer", "", "encoder.layer.*.dense", "weight.x",
                              "x.bert.encoder.layer.10.output.dense.weight", "l*x"}) {
    EXPECT_FALSE(IsNamedBy(name, pattern)) << pattern;
  }
}

TEST(CheckFrozen, SaysWhatThereIs) {
  const auto status = [](Patterns frozen) {
    const std::unique_ptr<Runtime> runtime = FrozenRuntimeOf();
    Parameters parameters(runtime->context(), {.frozen = std::move(frozen)});
    (void)parameters.New("encoder.layer.0.weight", {2}, Init::Zero());
    (void)parameters.New("0.1.weight", {2}, Init::Zero());
    (void)parameters.New("encoder.layer.1.weight", {2}, Init::Zero());
    (void)parameters.New("bias", {2}, Init::Zero());
    return parameters.CheckFrozen();
  };
  EXPECT_TRUE(status({}).ok());
  EXPECT_TRUE(status({"encoder", "bias"}).ok());
  EXPECT_EQ(status({"encoder", "layers"}).message(),
            "'layers' is in no parameter's name; the model has encoder.layer, *.*, bias");
  EXPECT_EQ(status({"weight", "bias"}).message(), "'weight,bias' freezes every parameter: nothing is left to train");
}

constexpr std::uint64_t kFrozenSequences = 4, kFrozenLength = 128, kFrozenWidth = 64, kFrozenInner = 256,
                        kFrozenHeads = 4;
constexpr std::uint64_t kFrozenTokens = kFrozenSequences * kFrozenLength,
                        kFrozenScores = kFrozenSequences * kFrozenHeads * kFrozenLength * kFrozenLength;
constexpr std::uint64_t kFrozenNormStatistics = 2 * 4 * kFrozenTokens;  // mean and reciprocal deviation, float

struct Step {
  std::uint64_t saved = 0;      // by the graph, after forward
  std::uint64_t gradients = 0;  // after backward
  std::uint64_t trained = 0;    // elements of the parameters that are not frozen
};

template <typename Model, typename Make, typename Loss>
Step StepOf(Runtime& runtime, Patterns frozen, const Make& make, const Loss& loss_of,
            std::optional<DType> autocast = {}) {
  Context& context = runtime.context();
  Parameters parameters(context, {.frozen = std::move(frozen)});
  const std::unique_ptr<Model> model = make(parameters);
  EXPECT_TRUE(parameters.CheckFrozen().ok()) << parameters.CheckFrozen();
  const std::uint64_t before = FrozenLive(context, Part::kActivations);
  Step out;
  {
    Tensor loss;
    {
      const Autocast scope(context, autocast.has_value(), autocast.value_or(DType::kFloat16));
      loss = loss_of(*model);
    }
    out.saved = FrozenLive(context, Part::kActivations) - before;
    Backward(loss);
  }
  EXPECT_EQ(FrozenLive(context, Part::kActivations), before);
  out.gradients = FrozenLive(context, Part::kGradients);
  for (const Parameter& parameter : parameters.all()) {
    EXPECT_EQ(parameter.tensor.grad().defined(), parameter.tensor.requires_grad()) << parameter.name;
    if (parameter.tensor.requires_grad()) out.trained += static_cast<std::uint64_t>(parameter.tensor.elements());
  }
  return out;
}

Step Bert(Patterns frozen, const char* torch = "2.6", std::optional<DType> autocast = {},
          bool is_checkpointed = false) {
  const std::unique_ptr<Runtime> runtime = FrozenRuntimeOf(torch);
  Context& context = runtime->context();
  BertConfig config;
  config.hidden_size = kFrozenWidth;
  config.intermediate_size = kFrozenInner;
  config.num_attention_heads = kFrozenHeads;
  config.num_hidden_layers = 3;
  return StepOf<BertClassifier>(
      *runtime, std::move(frozen),
      [&](Parameters& parameters) {
        return std::make_unique<BertClassifier>(parameters, config, 2,
                                                BertModel::Options{.is_checkpointed = is_checkpointed});
      },
      [&](const BertClassifier& model) {
        return model.Loss(Empty(context, {kFrozenSequences, kFrozenLength}, DType::kInt64, Part::kBatch),
                          Empty(context, {kFrozenSequences}, DType::kInt64, Part::kBatch));
      },
      autocast);
}

std::uint64_t SpareInBert(Patterns frozen, Patterns also_frozen, const char* torch = "2.6",
                          std::optional<DType> autocast = {}) {
  const std::uint64_t before = Bert(frozen, torch, autocast).saved;
  frozen.insert(frozen.end(), also_frozen.begin(), also_frozen.end());
  return before - Bert(frozen, torch, autocast).saved;
}

// The norm's input and statistics, and the mask of the dropout behind it; the indices are the batch.
TEST(Frozen, EmbeddingsKeepNothing) {
  EXPECT_EQ(SpareInBert({}, {"embeddings"}), kFrozenTokens * kFrozenWidth * (4 + 1) + kFrozenNormStatistics);
}

TEST(Frozen, ALayerBelowTheLowestTrainedOneKeepsNothing) {
  const std::uint64_t float_layer = kFrozenTokens * kFrozenWidth * 34 + kFrozenTokens * kFrozenInner * 8 +
                                    kFrozenScores * 9 + 2 * kFrozenNormStatistics;
  EXPECT_EQ(SpareInBert({"embeddings"}, {"layer.0"}), float_layer);
  EXPECT_EQ(SpareInBert({"embeddings", "layer.0"}, {"layer.1"}), float_layer);
}

// Copies of frozen weights in half are not kept by autocast's cache, and nothing else holds them without a graph.
TEST(Frozen, ALayerBelowInHalfKeepsNoWeightsEither) {
  const std::uint64_t half_weights = (4 * kFrozenWidth * kFrozenWidth + 2 * kFrozenWidth * kFrozenInner) * 2;
  EXPECT_EQ(SpareInBert({"embeddings"}, {"layer.0"}, "1.10", DType::kFloat16),
            kFrozenTokens * kFrozenWidth * 26 + kFrozenTokens * kFrozenInner * 6 + kFrozenScores * 11 +
                2 * kFrozenNormStatistics + half_weights);
}

// A product keeps an operand for the other's gradient alone: a frozen weight between trained layers costs its input.
TEST(Frozen, AWeightBetweenTrainedLayersSparesItsInput) {
  EXPECT_EQ(SpareInBert({}, {"layer.1.attention.self.query"}), 0u);  // key and value keep the same tensor
  EXPECT_EQ(SpareInBert({}, {"layer.1.attention.self"}), kFrozenTokens * kFrozenWidth * 4);
  EXPECT_EQ(SpareInBert({}, {"layer.1.intermediate"}), kFrozenTokens * kFrozenWidth * 4);
  EXPECT_EQ(SpareInBert({}, {"encoder.layer.1.output.dense"}), kFrozenTokens * kFrozenInner * 4);
  EXPECT_EQ(SpareInBert({}, {"layer.1.*.dense.weight"}),
            kFrozenTokens * (kFrozenWidth + kFrozenInner) * 4);                                      // the last two
  EXPECT_EQ(SpareInBert({}, {"layer.1.attention.output.dense"}), kFrozenTokens * kFrozenWidth * 4);  // the context
  EXPECT_EQ(SpareInBert({}, {"bias"}), 0u);
  EXPECT_EQ(SpareInBert({}, {"LayerNorm"}), 0u);  // a norm keeps its input for its input's gradient
}

TEST(Frozen, HaveNoGradients) {
  const Step all = Bert({}), some = Bert({"embeddings", "layer.*.attention", "pooler.dense.bias"});
  EXPECT_EQ(all.gradients, all.trained * 4);
  EXPECT_EQ(some.gradients, some.trained * 4);
  const std::uint64_t embeddings = (30'522 + 512 + 2 + 2) * kFrozenWidth;
  const std::uint64_t attention = 3 * (4 * (kFrozenWidth * kFrozenWidth + kFrozenWidth) + 2 * kFrozenWidth);
  EXPECT_EQ(all.trained - some.trained, embeddings + attention + kFrozenWidth);
}

// Every layer is trained all the same: the embeddings' output is made to want a gradient. What is in front of it is no
// part of the graph.
TEST(Frozen, EmbeddingsBeforeCheckpointedLayers) {
  const Step all = Bert({}, "2.6", {}, true), some = Bert({"embeddings"}, "2.6", {}, true);
  EXPECT_EQ(some.gradients, some.trained * 4);
  EXPECT_EQ(some.saved,
            all.saved + kFrozenTokens * kFrozenWidth * 4);  // the words' embeddings, held for their gradient
}

// The output head is the word embeddings: without their gradient it does not keep the hidden states.
TEST(Frozen, TiedWordEmbeddingsOfGpt2) {
  constexpr std::int64_t kBatch = 2, kTokensOf = 16, kEmbedded = 32;
  const auto step = [&](Patterns frozen) {
    const std::unique_ptr<Runtime> runtime = FrozenRuntimeOf();
    Context& context = runtime->context();
    Gpt2Config config;
    config.vocab_size = 50;
    config.n_positions = 64;
    config.n_embd = kEmbedded;
    config.n_layer = 2;
    config.n_head = 4;
    return StepOf<Gpt2>(
        *runtime, std::move(frozen),
        [&](Parameters& parameters) { return std::make_unique<Gpt2>(parameters, config, Gpt2::Options{}); },
        [&](const Gpt2& model) {
          return model.Loss(Empty(context, {kBatch, kTokensOf}, DType::kInt64, Part::kBatch));
        });
  };
  const Step all = step({}), words = step({"wte"}), both = step({"transformer.w*"});
  constexpr std::uint64_t kHidden = kBatch * kTokensOf * kEmbedded;
  EXPECT_EQ(all.saved - words.saved, kHidden * 4);
  EXPECT_EQ(words.saved - both.saved, kHidden + kTokensOf * 8u);  // dropout's mask, indices of positions
  EXPECT_EQ(all.gradients - words.gradients, 50u * kEmbedded * 4);
  EXPECT_EQ(words.gradients - both.gradients, 64u * kEmbedded * 4);
}

TEST(Frozen, TiedDecoderOfTabFormer) {
  const auto step = [](Patterns frozen) {
    const std::unique_ptr<Runtime> runtime = FrozenRuntimeOf();
    Context& context = runtime->context();
    TabFormerConfig config;
    config.column_sizes = {3, 5, 4};
    config.rows = 2;
    config.field_width = 8;
    config.layers = 1;
    config.inner = 16;
    return StepOf<TabFormer>(
        *runtime, std::move(frozen),
        [&](Parameters& parameters) { return std::make_unique<TabFormer>(parameters, config); },
        [&](const TabFormer& model) {
          return model.Loss(Empty(context, {4, 2, 3}, DType::kInt64, Part::kBatch),
                            Empty(context, {4, 2, 3}, DType::kInt64, Part::kBatch));
        });
  };
  const Step all = step({}), some = step({"tb_model.bert.embeddings.word_embeddings"});
  EXPECT_EQ(all.saved - some.saved, 4u * 2 * 3 * (8 * 3) * 4);  // what goes into the decoder
  EXPECT_EQ(all.gradients - some.gradients, (3u + 5 + 4) * (8 * 3) * 4);
}

TEST(Frozen, AProductKeepsWhatTheOtherSideNeeds) {
  constexpr std::uint64_t kLeft = 10 * 20 * 4, kRight = 20 * 30 * 4, kOut = 10 * 30 * 4;
  const auto live = [](bool left_trains, bool right_trains) {
    const std::unique_ptr<Runtime> runtime = FrozenRuntimeOf("1.13");  // no workspace of its own
    Context& context = runtime->context();
    Tensor left = Empty(context, {10, 20}, DType::kFloat32), right = Empty(context, {20, 30}, DType::kFloat32);
    left.set_requires_grad(left_trains);
    right.set_requires_grad(right_trains);
    Tensor a = MulScalar(left, 1), b = MulScalar(right, 1);
    const Tensor out = Mm(a, b);
    Release(a, b);
    return FrozenLive(context, Part::kActivations) - kLeft - kRight - kOut;
  };
  EXPECT_EQ(live(true, true), kLeft + kRight);
  EXPECT_EQ(live(true, false), kRight);
  EXPECT_EQ(live(false, true), kLeft);
}

TEST(Frozen, HaveNoOptimizerState) {
  constexpr std::uint64_t kElements = 100 * 64 + 50;  // of the trained ones
  for (const auto& [optimizer, bytes] : std::vector<std::pair<const char*, std::uint64_t>>{
           {"adamw", kElements * 8},
           {"adamw-hf", kElements * 8},
           {"adamw-loop", kElements * 8},
           {"adamw-fused", kElements * 8 + 2 * 4},
           {"adamw-8bit", 100 * 64 * 2 + 2 * 25 * 4 + 2 * 256 * 4 + 50 * 8},
           {"adamw-teaching", kElements * 8},
           {"adafactor", (100 + 64 + 50) * 4},
           {"adafactor-torch", (100 + 64 + 50) * 4},
           {"sgd", 0}}) {
    const std::unique_ptr<Runtime> runtime = FrozenRuntimeOf();
    Context& context = runtime->context();
    Parameters parameters(context, {.frozen = {"frozen"}});
    for (const char* name : {"a.weight", "b.frozen.weight"}) {
      Tensor parameter = parameters.New(name, {100, 64}, Init::Zero());
      if (parameter.requires_grad()) parameter.set_grad(Empty(context, {100, 64}, DType::kFloat32, Part::kGradients));
    }
    for (const char* name : {"b.frozen.bias", "c.bias"}) {
      Tensor parameter = parameters.New(name, {50}, Init::Zero());
      if (parameter.requires_grad()) parameter.set_grad(Empty(context, {50}, DType::kFloat32, Part::kGradients));
    }
    const std::unique_ptr<Optimizer> made = *MakeOptimizer(optimizer, parameters, {});
    made->Step();
    made->Step();
    EXPECT_EQ(FrozenLive(context, Part::kOptimizer), bytes) << optimizer;
  }
}

}  // namespace
}  // namespace ashlar::kernels
