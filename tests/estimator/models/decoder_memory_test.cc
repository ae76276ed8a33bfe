// What decoders keep for backward, counted by hand from transformers' code, and what is left after backward.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "estimator/models/decoder.h"
#include "estimator/models/gpt.h"
#include "kernels/autograd/engine.h"
#include "kernels/workloads/runtime.h"
#include "tests/kernels/step_recorder.h"

namespace ashlar::kernels {
namespace {

constexpr std::uint64_t kDecoderSequences = 3, kDecoderLength = 96, kWidth = 64, kInner = 160, kHeads = 4;
constexpr std::uint64_t kTokens = kDecoderSequences * kDecoderLength,
                        kScores = kDecoderSequences * kHeads * kDecoderLength * kDecoderLength;
constexpr std::uint64_t kHalfWeights = (4 * kWidth * kWidth + 3 * kWidth * kInner) * 2;  // of a llama layer

struct Setting {
  const char* torch = "2.6";
  Attention attention = Attention::kEager;
  std::optional<DType> autocast = {};
  DType weights = DType::kFloat32;
  std::int64_t sequences = static_cast<std::int64_t>(kDecoderSequences);
  std::int64_t key_heads = static_cast<std::int64_t>(kHeads);
  std::int64_t real_tokens = 0;  // of a padded batch
};

std::unique_ptr<Runtime> DecoderRuntimeOf(const Setting& setting) {
  return *Runtime::Make(
      {.capacity_bytes = 16 * kGiB, .framework = *FrameworkOf(setting.torch), .gpu = *GpuNamed("A100")});
}

DecoderConfig LlamaOf(std::int64_t layers, std::int64_t key_heads) {
  DecoderConfig out;
  out.vocab_size = 100;
  out.hidden_size = kWidth;
  out.intermediate_size = kInner;
  out.num_hidden_layers = layers;
  out.num_attention_heads = kHeads;
  out.num_key_value_heads = key_heads;
  out.head_dim = kWidth / kHeads;
  return out;
}

Tensor LlamaLoss(const DecoderModel& model, Context& context, const Setting& setting) {
  const Autocast scope(context, setting.autocast.has_value(), setting.autocast.value_or(DType::kFloat16));
  const Dims sizes = {setting.sequences, static_cast<std::int64_t>(kDecoderLength)};
  const Tensor ids = Empty(context, sizes, DType::kInt64, Part::kBatch);
  Call call;
  call.tokens = setting.real_tokens;
  if (call.tokens > 0) call.mask = Empty(context, sizes, DType::kInt64, Part::kBatch);
  return model.Loss(ids, Empty(context, sizes, DType::kInt64, Part::kBatch), call);
}

struct Kept {
  std::uint64_t bytes = 0;
  std::int64_t allocations = 0;
};

Kept KeptByLlama(const Setting& setting, std::int64_t layers) {
  const std::unique_ptr<Runtime> runtime = DecoderRuntimeOf(setting);
  Context& context = runtime->context();
  Parameters parameters(context, {.dtype = setting.weights});
  const DecoderModel model(parameters, LlamaOf(layers, setting.key_heads),
                           {.attention = setting.attention, .transformers = *TransformersFor(setting.torch)});
  StepEvents events;
  runtime->allocator().SetSink(&events);
  const Tensor loss = LlamaLoss(model, context, setting);
  runtime->allocator().SetSink(nullptr);
  Kept out;
  out.bytes = context.memory().live_by_part()[static_cast<std::size_t>(Part::kActivations)];
  for (const StepEvent& event : events.list()) out.allocations += event.is_free ? 0 : 1;
  return out;
}

std::uint64_t BytesOfALayer(const Setting& setting) {
  return KeptByLlama(setting, 3).bytes - KeptByLlama(setting, 2).bytes;
}

// Two norms: input, normalised, output, the scale of each token. Copies of query, key and value; the context. Gate,
// its activation, the other half, their product. One tensor of scores.
TEST(DecoderMemory, EagerLlamaInFloat) {
  EXPECT_EQ(BytesOfALayer({}), kTokens * kWidth * 40 + kTokens * 8 + kTokens * kInner * 16 + kScores * 4);
  // What is copied for a batch of more than one is kept as it is else.
  Setting one;
  one.sequences = 1;
  EXPECT_EQ(BytesOfALayer(one) * kDecoderSequences, BytesOfALayer({}));
}

TEST(DecoderMemory, OneSequenceNeedsNoCopies) {
  const auto of_a_layer = [](std::int64_t sequences, std::int64_t key_heads) {
    Setting setting;
    setting.sequences = sequences;
    setting.key_heads = key_heads;
    return KeptByLlama(setting, 3).allocations - KeptByLlama(setting, 2).allocations;
  };
  EXPECT_EQ(of_a_layer(2, 4), of_a_layer(1, 4) + 3);  // query, key, value
  EXPECT_EQ(of_a_layer(2, 2), of_a_layer(1, 2) + 1);  // shared keys and values were copied to all heads before
  EXPECT_EQ(of_a_layer(1, 2), of_a_layer(1, 4) + 2);
}

// A copy of the hidden state for each linear; scores in float by the mask, and their half copy for the product.
TEST(DecoderMemory, EagerLlamaUnderAutocast) {
  Setting setting;
  setting.autocast = DType::kBFloat16;
  EXPECT_EQ(BytesOfALayer(setting),
            kTokens * kWidth * 34 + kTokens * 8 + kTokens * kInner * 8 + kScores * 6 + kHalfWeights);
}

// No scores: query, key, value, output, its transposed copy, and a sum a row.
TEST(DecoderMemory, FlashLlamaUnderAutocast) {
  Setting setting;
  setting.attention = Attention::kSdpa;
  setting.autocast = DType::kBFloat16;
  EXPECT_EQ(BytesOfALayer(setting),
            kTokens * kWidth * 36 + kTokens * 8 + kTokens * kInner * 8 + kTokens * kHeads * 4 + kHalfWeights);
  // Up to 4.47 operands are not copied, so that the output is laid out as the next product wants it. The rotated ones
  // are of the projections' dtype, since layers rotate for themselves.
  setting.torch = "2.3";
  EXPECT_EQ(BytesOfALayer(setting),
            kTokens * kWidth * 34 + kTokens * 8 + kTokens * kInner * 8 + kTokens * kHeads * 4 + kHalfWeights +
                2 * kDecoderLength * kWidth / kHeads * 2);  // cosines and sines of the layer
}

// The norms' input alone is kept in float.
TEST(DecoderMemory, FlashLlamaInPureHalf) {
  Setting setting;
  setting.attention = Attention::kSdpa;
  setting.weights = DType::kBFloat16;
  EXPECT_EQ(BytesOfALayer(setting), kTokens * kWidth * 26 + kTokens * 8 + kTokens * kInner * 8 + kTokens * kHeads * 4);
  setting.attention = Attention::kFlash;  // of the package: by token, no copies; two seeds of 16 and 8 bytes
  EXPECT_EQ(BytesOfALayer(setting),
            kTokens * kWidth * 24 + kTokens * 8 + kTokens * kInner * 8 + kTokens * kHeads * 4 + 24);
}

// What the kernel keeps is of the real tokens alone: query, key, value and output, a sum a row of each head, where the
// tokens are (int64), where samples start (int32, one more than samples), a seed. Of the whole batch is the output with
// its padding put back, which the next product keeps.
TEST(DecoderMemory, FlashKeepsRealTokensOfAPaddedBatch) {
  constexpr std::uint64_t kReal = 200;  // of 288
  Setting setting;
  setting.attention = Attention::kFlash;
  setting.weights = DType::kBFloat16;
  setting.real_tokens = kReal;
  const std::uint64_t whole = kTokens * kWidth * 18 + kTokens * 8 + kTokens * kInner * 8;
  const std::uint64_t beside = kReal * kHeads * 4 + kReal * 8 + (kDecoderSequences + 1) * 4 + 16;
  EXPECT_EQ(BytesOfALayer(setting), whole + kReal * kWidth * 8 + beside);
  setting.key_heads = 2;  // keys and values of half the heads
  EXPECT_EQ(BytesOfALayer(setting), whole + kReal * kWidth * 6 + beside);
}

// GPT-2's gelu keeps five tensors of inner width; scores, dropped ones and their mask; a divisor.
TEST(DecoderMemory, EagerGpt2InFloat) {
  const auto bytes = [](std::int64_t layers) {
    const std::unique_ptr<Runtime> runtime = DecoderRuntimeOf({});
    Context& context = runtime->context();
    Parameters parameters(context);
    Gpt2Config config{100, 128, kWidth, layers, kHeads, kInner};
    const Gpt2 model(parameters, config, {});
    const Tensor loss = model.Loss(Empty(context, {kDecoderSequences, kDecoderLength}, DType::kInt64, Part::kBatch));
    return context.memory().live_by_part()[static_cast<std::size_t>(Part::kActivations)];
  };
  EXPECT_EQ(bytes(3) - bytes(2), kTokens * kWidth * 34 + kTokens * 16 + kTokens * kInner * 20 + kScores * 9 + 4);
}

// Whatever the attention: gradients as large as the weights, and nothing else.
TEST(DecoderMemory, BackwardLeavesGradientsAlone) {
  for (const auto& [attention, real_tokens] :
       {std::pair(Attention::kEager, 0), std::pair(Attention::kSdpa, 0), std::pair(Attention::kFlash, 0),
        std::pair(Attention::kSdpa, 200), std::pair(Attention::kFlash, 200)}) {
    for (const bool is_checkpointed : {false, true}) {
      Setting setting;
      setting.real_tokens = real_tokens;
      setting.weights = DType::kBFloat16;
      const std::unique_ptr<Runtime> runtime = DecoderRuntimeOf(setting);
      Context& context = runtime->context();
      Parameters parameters(context, {.dtype = setting.weights});
      const DecoderModel model(parameters, LlamaOf(2, 2), {.attention = attention, .is_checkpointed = is_checkpointed});
      Tensor loss = LlamaLoss(model, context, setting);
      Backward(loss);
      loss.reset();
      const auto live = [&](Part part) { return context.memory().live_by_part()[static_cast<std::size_t>(part)]; };
      EXPECT_EQ(live(Part::kGradients), 2 * static_cast<std::uint64_t>(parameters.count()));
      EXPECT_EQ(live(Part::kWeights), live(Part::kGradients) + kWidth / kHeads / 2 * 4);  // and the rotary buffer
      EXPECT_EQ(live(Part::kActivations), 0u);
      EXPECT_EQ(live(Part::kLibraries), 2u * 8'519'680);
    }
  }
}

// Heads are of one size and shape whatever runs: GPT-Neo's scores are float in pure half precision too.
TEST(DecoderMemory, GptNeoScoresAreFloat) {
  const auto bytes = [](DType weights) {
    const auto of = [&](std::int64_t layers) {
      Setting setting;
      setting.weights = weights;
      const std::unique_ptr<Runtime> runtime = DecoderRuntimeOf(setting);
      Context& context = runtime->context();
      Parameters parameters(context, {.dtype = weights});
      const GptNeoConfig config{100, 128, kWidth, layers, kHeads, kInner};
      const GptNeo model(parameters, config, {});
      const Tensor ids = Empty(context, {kDecoderSequences, kDecoderLength}, DType::kInt64, Part::kBatch);
      const Tensor loss = model.Loss(ids, ids);
      return context.memory().live_by_part()[static_cast<std::size_t>(Part::kActivations)];
    };
    return of(3) - of(2);
  };
  // As GPT-2 without dropout: one tensor of scores.
  EXPECT_EQ(bytes(DType::kFloat32), kTokens * kWidth * 32 + kTokens * 16 + kTokens * kInner * 20 + kScores * 4);
  // Half of it but the float query and key (copies for the product), the scores, and a half copy of these.
  EXPECT_EQ(bytes(DType::kBFloat16), kTokens * kWidth * 20 + kTokens * 16 + kTokens * kInner * 10 + kScores * (4 + 2));
}

}  // namespace
}  // namespace ashlar::kernels
