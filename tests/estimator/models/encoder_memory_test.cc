// What encoders of other families than BERT save, counted by hand from their modules: bytes that live after a forward
// pass, by the difference that one more layer makes, and what each head adds.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "estimator/models/encoder_task.h"
#include "kernels/autograd/engine.h"
#include "kernels/workloads/runtime.h"

namespace ashlar::kernels {
namespace {

constexpr std::uint64_t kEncoderBatch = 4, kEncoderLength = 128, kEncoderWidth = 64, kEncoderInner = 256,
                        kEncoderHeads = 4, kEncoderRows = 1000;
constexpr std::uint64_t kEncoderTokens = kEncoderBatch * kEncoderLength;

struct Case {
  const char* torch = "2.6";
  std::uint64_t batch = kEncoderBatch;
  std::optional<DType> autocast = {};
};

std::unique_ptr<Runtime> EncoderRuntimeOf(const Case& of) {
  return *Runtime::Make({.capacity_bytes = 16 * kGiB, .framework = *FrameworkOf(of.torch), .gpu = *GpuNamed("V100")});
}

BertConfig TinyBert(std::int64_t layers) {
  BertConfig config;
  config.vocab_size = kEncoderRows;
  config.hidden_size = kEncoderWidth;
  config.intermediate_size = kEncoderInner;
  config.num_attention_heads = kEncoderHeads;
  config.num_hidden_layers = layers;
  return config;
}

DistilBertConfig TinyDistilBert(std::int64_t layers) {
  return {.vocab_size = kEncoderRows,
          .dim = kEncoderWidth,
          .n_layers = layers,
          .n_heads = kEncoderHeads,
          .hidden_dim = kEncoderInner};
}

// Live bytes of a part after forward, and after backward.
struct Live {
  std::uint64_t saved, activations, gradients, weights;
};

template <typename Make>
Live EncoderLiveOf(const Case& of, EncoderTask task, const Make& make) {
  const std::unique_ptr<Runtime> runtime = EncoderRuntimeOf(of);
  Context& context = runtime->context();
  Parameters parameters(context);
  const std::unique_ptr<EncoderForTask> model = make(parameters);
  const auto batch = static_cast<std::int64_t>(of.batch), length = static_cast<std::int64_t>(kEncoderLength);
  const Tensor ids = Empty(context, {batch, length}, DType::kInt64, Part::kBatch);
  const TaskLabels labels = EmptyLabels(context, task, batch, length);
  const auto live = [&](Part part) { return context.memory().live_by_part()[static_cast<std::size_t>(part)]; };
  Live out{};
  Tensor loss;
  {
    const Autocast scope(context, of.autocast.has_value(), of.autocast.value_or(DType::kFloat16));
    loss = model->Loss(ids, labels);
  }
  out.saved = live(Part::kActivations);
  Backward(loss);
  loss.reset();
  out.activations = live(Part::kActivations);
  out.gradients = live(Part::kGradients);
  out.weights = live(Part::kWeights);
  return out;
}

Live DistilBert(const Case& of, std::int64_t layers, EncoderHead head = {EncoderTask::kSequence}) {
  return EncoderLiveOf(of, head.task, [&](Parameters& parameters) {
    return MakeDistilBert(parameters, TinyDistilBert(layers), head, {});
  });
}

std::uint64_t SavedByADistilBertLayer(const Case& of) { return DistilBert(of, 3).saved - DistilBert(of, 2).saved; }

constexpr std::uint64_t Scores(std::uint64_t batch) { return batch * kEncoderHeads * kEncoderLength * kEncoderLength; }
// Of two norms: mean and reciprocal deviation of each token, float.
constexpr std::uint64_t kStatistics = 16;

// By token and unit: query, key, value and context (4 x 4), two norms' inputs and outputs (16), a dropout mask. By
// inner unit: gelu's input and output. By score: the softmax, what dropout left of it and its mask; a byte a token of
// the attention mask's comparison.
TEST(EncoderClosedForms, ADistilBertLayerInFloat) {
  EXPECT_EQ(SavedByADistilBertLayer({}),
            kEncoderTokens * (kEncoderWidth * 33 + kEncoderInner * 8 + kStatistics + 1) + Scores(kEncoderBatch) * 9);
  // Softmax keeps its input too.
  EXPECT_EQ(SavedByADistilBertLayer({.torch = "1.10"}),
            kEncoderTokens * (kEncoderWidth * 33 + kEncoderInner * 8 + kStatistics + 1) + Scores(kEncoderBatch) * 13);
}

// With one sequence nothing is copied for the products: the projections themselves are kept, and of the query the
// scaled one. As many bytes.
TEST(EncoderClosedForms, OneSequenceOfDistilBert) {
  EXPECT_EQ(SavedByADistilBertLayer({.batch = 1}),
            kEncoderLength * (kEncoderWidth * 33 + kEncoderInner * 8 + kStatistics + 1) + Scores(1) * 9);
}

// In half: the input of the projections is cast three times, that of the first inner one once (2 x 4), so that the
// norms' outputs are not kept; the context and what the products keep are half (2 x 4), gelu is (2 + 2); the norms'
// inputs stay float (8). The softmax is float, its dropped copy for the product half: 4 + 1 + 2. Half weights: 4 d^2 +
// 2 d f.
TEST(EncoderClosedForms, ADistilBertLayerInHalf) {
  const std::uint64_t weights = (4 * kEncoderWidth * kEncoderWidth + 2 * kEncoderWidth * kEncoderInner) * 2;
  EXPECT_EQ(SavedByADistilBertLayer({.autocast = DType::kFloat16}),
            kEncoderTokens * (kEncoderWidth * (8 + 8 + 8 + 1) + kEncoderInner * 4 + kStatistics + 1) +
                Scores(kEncoderBatch) * 7 + weights);
}

// The kernel keeps a float a row of each head in place of the scores (128 tokens need no padding), and its output is
// what the next product keeps; query, key and value are kept as projected. BERT has one dropout mask more than
// DistilBERT.
TEST(EncoderClosedForms, FusedAttentionKeepsNoScores) {
  const auto by_a_layer = [](const Case& of, const auto& saved) { return saved(of, 3) - saved(of, 2); };
  const auto distilbert = [](const Case& of, std::int64_t layers) {
    return EncoderLiveOf(of, EncoderTask::kSequence,
                         [&](Parameters& parameters) {
                           return MakeDistilBert(parameters, TinyDistilBert(layers), {EncoderTask::kSequence},
                                                 {.attention = Attention::kSdpa});
                         })
        .saved;
  };
  const auto bert = [](const Case& of, std::int64_t layers) {
    return EncoderLiveOf(of, EncoderTask::kSequence,
                         [&](Parameters& parameters) {
                           return MakeBert(parameters, TinyBert(layers), {EncoderTask::kSequence}, {.has_sdpa = true});
                         })
        .saved;
  };
  constexpr std::uint64_t kRowSums = 4 * kEncoderHeads;
  EXPECT_EQ(by_a_layer({}, distilbert),
            kEncoderTokens * (kEncoderWidth * 33 + kEncoderInner * 8 + kStatistics + kRowSums));
  EXPECT_EQ(by_a_layer({}, bert), kEncoderTokens * (kEncoderWidth * 34 + kEncoderInner * 8 + kStatistics + kRowSums));
  EXPECT_EQ(by_a_layer({.batch = 1}, bert),
            kEncoderLength * (kEncoderWidth * 34 + kEncoderInner * 8 + kStatistics + kRowSums));
  const std::uint64_t weights = (4 * kEncoderWidth * kEncoderWidth + 2 * kEncoderWidth * kEncoderInner) * 2;
  EXPECT_EQ(by_a_layer({.autocast = DType::kFloat16}, distilbert),
            kEncoderTokens * (kEncoderWidth * 25 + kEncoderInner * 4 + kStatistics + kRowSums) + weights);
}

TEST(EncoderClosedForms, AfterBackwardOnlyGradientsAreLeft) {
  for (const EncoderTask task : {EncoderTask::kNone, EncoderTask::kSequence, EncoderTask::kTokens, EncoderTask::kSpan,
                                 EncoderTask::kMaskedLanguage}) {
    const Live live = DistilBert({}, 2, {task});
    EXPECT_EQ(live.activations, 0u);
    EXPECT_EQ(live.gradients, live.weights - 512 * 8);  // position ids
    const Live roberta = EncoderLiveOf({}, task, [&](Parameters& parameters) {
      return MakeRoberta(parameters, TinyBert(2), {task}, {.has_sdpa = true, .padding_id = 1});
    });
    EXPECT_EQ(roberta.activations, 0u);
    EXPECT_EQ(roberta.gradients, roberta.weights - 2 * 512 * 8);  // and token types
  }
}

// A language head on BERT saves the dense layer's output, gelu's, the norm's and its statistics, log-probabilities, and
// the pooler's and classifier's tensors are not there.
TEST(EncoderClosedForms, ALanguageHead) {
  const auto saved = [](EncoderHead head) {
    return EncoderLiveOf({}, head.task,
                         [&](Parameters& parameters) { return MakeBert(parameters, TinyBert(1), head, {}); })
        .saved;
  };
  // The loss without a head is a mean of all hidden states and of the pooled ones, tanh of a row a sequence; a mean
  // saves nothing. What both return is 4 bytes, and the loss of a language head has its total weight beside it.
  EXPECT_EQ(saved({EncoderTask::kMaskedLanguage}) - (saved({EncoderTask::kNone}) - kEncoderBatch * kEncoderWidth * 4),
            kEncoderTokens * (kEncoderWidth * 12 + 8) + kEncoderTokens * kEncoderRows * 4 + 4);
  // Token labels take one product alone: the dropped hidden states and their mask, in place of the hidden states.
  EXPECT_EQ(saved({EncoderTask::kTokens, 3}) - (saved({EncoderTask::kNone}) - kEncoderBatch * kEncoderWidth * 4),
            kEncoderTokens * kEncoderWidth * 1 + kEncoderTokens * 3 * 4 + 4);
}

// RoBERTa's position ids are made of the ids: int64, kept for the gradient of the position embeddings.
TEST(EncoderClosedForms, RobertaKeepsItsPositionIds) {
  const EncoderHead head{EncoderTask::kTokens};
  const auto bert = [&](Parameters& parameters) { return MakeBert(parameters, TinyBert(1), head, {}); };
  const auto roberta = [&](Parameters& parameters) {
    return MakeRoberta(parameters, TinyBert(1), head, {.padding_id = 1});
  };
  EXPECT_EQ(EncoderLiveOf({}, head.task, roberta).saved - EncoderLiveOf({}, head.task, bert).saved, kEncoderTokens * 8);
}

}  // namespace
}  // namespace ashlar::kernels
