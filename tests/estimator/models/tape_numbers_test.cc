// The tape with arithmetic, on host memory: gradients of whole models against finite differences, training that learns,
// and the same allocations as without arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "allocator/base/rng.h"
#include "estimator/models/bert.h"
#include "estimator/models/decoder.h"
#include "estimator/models/gpt.h"
#include "estimator/models/t5.h"
#include "estimator/models/tabformer.h"
#include "kernels/autograd/engine.h"
#include "kernels/nn/parameters.h"
#include "kernels/workloads/runtime.h"
#include "kernels/workloads/training.h"
#include "tests/kernels/step_recorder.h"
#include "tests/kernels/teaching_transformer.h"

namespace ashlar::kernels {
namespace {

std::unique_ptr<Runtime> MakeRuntime(DeviceKind kind, std::uint64_t seed = 1, const char* torch = "2.6") {
  return *Runtime::Make({.kind = kind,
                         .capacity_bytes = 512 * kMiB,
                         .framework = *FrameworkOf(torch),
                         .gpu = *GpuNamed("A100"),
                         .seed = seed});
}

Tensor Ids(Context& context, Dims sizes, std::int64_t below, std::uint64_t seed) {
  Tensor out = Empty(context, sizes, DType::kInt64, Part::kBatch);
  std::vector<std::int64_t> values(static_cast<std::size_t>(ops::ElementCount(sizes)));
  Rng rng(seed);
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(below)));
  FillIds(out, values);
  return out;
}

absl::Span<float> Values(const Tensor& tensor) {
  return {static_cast<float*>(tensor.view().data), static_cast<std::size_t>(tensor.elements())};
}

// A small model of each kind: its parameters are made in the given list, and the loss of one fixed batch is returned.
using LossOf = std::function<Tensor()>;
struct TapeNumbersModel {
  const char* name;
  std::function<LossOf(Parameters&)> make;
  const char* frozen;  // names some of its parameters, at the bottom, in the middle and at the top
};

LossOf Teaching(Parameters& parameters) {
  const TeachingConfig config{.vocabulary = 11, .context_length = 6, .width = 8, .layers = 2, .heads = 2, .inner = 12};
  const auto model = std::make_shared<TeachingTransformer>(parameters, config);
  Context& context = parameters.context();
  return [model, &context] {
    const Tensor ids = Ids(context, {2, 6}, 11, 3), targets = Ids(context, {2, 6}, 11, 4);
    const Tensor logits = model->Forward(ids);
    return TeachingCrossEntropy(logits, targets);
  };
}

LossOf TapeNumbersBert(Parameters& parameters) {
  BertConfig config;
  config.vocab_size = 17;
  config.hidden_size = 8;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 12;
  config.max_position_embeddings = 7;
  config.initializer_range = 0.3;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  const auto model = std::make_shared<BertClassifier>(parameters, config, 3, BertModel::Options{});
  Context& context = parameters.context();
  return [model, &context] {
    const Tensor ids = Ids(context, {2, 5}, 17, 3), labels = Ids(context, {2}, 3, 4);
    return model->Loss(ids, labels);
  };
}

LossOf CheckpointedGpt2(Parameters& parameters, bool is_checkpointed) {
  Gpt2Config config;
  config.vocab_size = 13;
  config.n_positions = 8;
  config.n_embd = 8;
  config.n_layer = 2;
  config.n_head = 2;
  config.initializer_range = 0.3;
  config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0;
  const auto model = std::make_shared<Gpt2>(parameters, config, Gpt2::Options{.is_checkpointed = is_checkpointed});
  Context& context = parameters.context();
  return [model, &context] {
    const Tensor ids = Ids(context, {2, 6}, 13, 3);
    return model->Loss(ids);
  };
}
LossOf Gpt(Parameters& parameters) { return CheckpointedGpt2(parameters, false); }
LossOf GptCheckpointed(Parameters& parameters) { return CheckpointedGpt2(parameters, true); }

template <typename Module>
LossOf NextToken(std::shared_ptr<Module> model, Context& context) {
  return [model, &context] {
    const Tensor ids = Ids(context, {2, 6}, 13, 3), labels = Ids(context, {2, 6}, 13, 4);
    return model->Loss(ids, labels);
  };
}

LossOf FusedGpt2(Parameters& parameters) {
  Gpt2Config config{13, 8, 8, 2, 2};
  config.initializer_range = 0.3;
  config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0;
  const Gpt2::Options options{.attention = Attention::kSdpa};
  return NextToken(std::make_shared<Gpt2>(parameters, config, options), parameters.context());
}

LossOf Neo(Parameters& parameters) {
  GptNeoConfig config{13, 8, 8, 2, 2, 16, 3, {false, true}};
  config.initializer_range = 0.3;
  return NextToken(std::make_shared<GptNeo>(parameters, config, GptNeo::Options{}), parameters.context());
}

LossOf DecoderOf(Parameters& parameters, DecoderFamily family, const DecoderModel::Options& options) {
  DecoderConfig config{family, 13, 8, 12, 2, 4, 2, 4};  // four heads of 4 share the keys of two
  if (family == DecoderFamily::kMistral) config.sliding_window = 3;
  config.has_input_bias = family == DecoderFamily::kQwen2;
  config.tie_word_embeddings = family == DecoderFamily::kGemma;
  config.initializer_range = 0.3;
  return NextToken(std::make_shared<DecoderModel>(parameters, config, options), parameters.context());
}
LossOf EagerLlama(Parameters& parameters) {
  return DecoderOf(parameters, DecoderFamily::kLlama, {.attention = Attention::kEager});
}
LossOf OlderQwen(Parameters& parameters) {  // which rotates in each layer
  return DecoderOf(parameters, DecoderFamily::kQwen2,
                   {.attention = Attention::kSdpa, .transformers = *TransformersFor("2.3"), .is_checkpointed = true});
}
LossOf WindowedMistral(Parameters& parameters) {  // the fused kernel with a mask
  return DecoderOf(parameters, DecoderFamily::kMistral,
                   {.attention = Attention::kSdpa, .transformers = *TransformersFor("2.7")});
}
LossOf FusedGemma(Parameters& parameters) {
  return DecoderOf(parameters, DecoderFamily::kGemma, {.attention = Attention::kSdpa});
}
LossOf LlamaOfClasses(Parameters& parameters) {
  DecoderConfig config{DecoderFamily::kLlama, 13, 8, 12, 2, 2, 2, 4};
  config.initializer_range = 0.3;
  const DecoderModel::Options options{.head = DecoderHead::kClassifier, .labels = 3, .attention = Attention::kSdpa};
  const auto model = std::make_shared<DecoderModel>(parameters, config, options);
  Context& context = parameters.context();
  return [model, &context] {
    const Tensor ids = Ids(context, {2, 6}, 13, 3), labels = Ids(context, {2}, 3, 4);
    return model->Loss(ids, labels);
  };
}

LossOf Tab(Parameters& parameters) {
  TabFormerConfig config;
  config.column_sizes = {3, 5, 4};
  config.rows = 2;
  config.field_width = 4;
  config.field_heads = 2;
  config.layers = 1;
  config.inner = 6;
  config.dropout = 0;
  config.initializer_range = 0.5;
  const auto model = std::make_shared<TabFormer>(parameters, config);
  Context& context = parameters.context();
  return [model, &context] {
    const Tensor ids = Ids(context, {2, 2, 3}, 12, 3), labels = Ids(context, {2, 2, 3}, 3, 4);
    return model->Loss(ids, labels);
  };
}

LossOf CheckpointedT5(Parameters& parameters, bool is_checkpointed) {
  T5Config config;
  config.vocab_size = 13;
  config.d_model = 8;
  config.d_kv = 4;
  config.d_ff = 16;
  config.num_layers = config.num_decoder_layers = 3;
  config.num_heads = 2;
  config.is_gated = true;
  config.activation = T5Config::Activation::kGeluNew;  // relu has kinks
  config.is_tied = false;
  const T5::Options options{.is_checkpointed = is_checkpointed};
  const auto model = std::make_shared<T5>(parameters, config, options);
  Context& context = parameters.context();
  return [model, &context] {
    context.set_random({});  // the same places are dropped each time
    return model->Loss(Ids(context, {2, 5}, 13, 3), Ids(context, {2, 4}, 13, 4));
  };
}
LossOf PlainT5(Parameters& parameters) { return CheckpointedT5(parameters, false); }
LossOf T5Checkpointed(Parameters& parameters) { return CheckpointedT5(parameters, true); }

const TapeNumbersModel kModels[] = {
    {"Teaching", Teaching, "*embedding*,layers.0,layers.1.*.*.weight"},
    {"Bert", TapeNumbersBert, "embeddings,layer.0,layer.1.attention.self,LayerNorm,classifier.weight"},
    {"Gpt", Gpt, "wte,wpe,h.0.attn,h.1.mlp.c_fc"},
    {"GptCheckpointed", GptCheckpointed, "wte,wpe,h.0,h.1.mlp.c_fc"},
    {"Tab", Tab, "tab_embeddings.word_embeddings,word_embeddings,layers.0.linear1,layer.0.*.*.query,transform"},
    {"FusedGpt2", FusedGpt2, "wte,wpe,h.0,h.1.mlp.c_fc"},
    {"Neo", Neo, "wte,wpe,h.0.attn,h.1.mlp.c_fc"},
    {"EagerLlama", EagerLlama, "embed_tokens,layers.0,layers.1.self_attn.k_proj"},
    {"OlderQwen", OlderQwen, "embed_tokens,layers.0,layers.1.self_attn.k_proj"},
    {"WindowedMistral", WindowedMistral, "embed_tokens,layers.0,layers.1.self_attn.v_proj"},
    {"FusedGemma", FusedGemma, "layers.0,layers.1.self_attn.q_proj"},
    {"T5", PlainT5, "shared,encoder.*.0,decoder.*.*.*.1.EncDecAttention,final_layer_norm"},
    {"T5Checkpointed", T5Checkpointed, "shared,encoder.*.0,decoder.*.*.*.1.EncDecAttention,final_layer_norm"},
    {"LlamaOfClasses", LlamaOfClasses, "embed_tokens,layers.0,layers.1.mlp"}};

std::ostream& operator<<(std::ostream& out, const TapeNumbersModel& model) { return out << model.name; }

// A segment that is run again, with its random numbers, gives the bits that it gave.
TEST(Checkpointing, OfT5ChangesNoGradient) {
  std::vector<std::vector<float>> gradients[2];
  float losses[2];
  for (const bool is_checkpointed : {false, true}) {
    const std::unique_ptr<Runtime> runtime = MakeRuntime(DeviceKind::kHost);
    Parameters parameters(runtime->context());
    const LossOf loss_of = CheckpointedT5(parameters, is_checkpointed);
    const Tensor loss = loss_of();
    losses[is_checkpointed] = Values(loss)[0];
    Backward(loss);
    ASSERT_TRUE(runtime->context().memory().ok()) << runtime->context().memory().status();
    for (const Parameter& parameter : parameters.all()) {
      const absl::Span<const float> values = Values(parameter.tensor.grad());
      gradients[is_checkpointed].emplace_back(values.begin(), values.end());
    }
  }
  EXPECT_EQ(losses[0], losses[1]);
  ASSERT_EQ(gradients[0].size(), gradients[1].size());
  for (std::size_t i = 0; i < gradients[0].size(); ++i) {
    ASSERT_EQ(gradients[0][i].size(), gradients[1][i].size());
    for (std::size_t j = 0; j < gradients[0][i].size(); ++j) {
      EXPECT_NEAR(gradients[0][i][j], gradients[1][i][j], 1e-6f) << i << ' ' << j;
    }
  }
}

class TapeNumbers : public testing::TestWithParam<TapeNumbersModel> {};
std::string TapeNumbersNameOf(const testing::TestParamInfo<TapeNumbersModel>& model) { return model.param.name; }

// Along a random direction v in each parameter: a central difference of L(p + e v) against the gradient's product with
// v. Norms of small activations bend too much for one of the second order.
TEST_P(TapeNumbers, GradientsAgreeWithFiniteDifferences) {
  const std::unique_ptr<Runtime> runtime = MakeRuntime(DeviceKind::kHost);
  Context& context = runtime->context();
  Parameters parameters(context);
  const LossOf loss_of = GetParam().make(parameters);
  const auto value = [&] {
    const NoGrad no_grad(context);
    const Tensor loss = loss_of();
    return static_cast<double>(Values(loss)[0]);
  };
  {
    const Tensor loss = loss_of();
    Backward(loss);
  }
  ASSERT_TRUE(context.memory().ok()) << context.memory().status();
  Rng rng(7);
  for (const Parameter& parameter : parameters.all()) {
    const absl::Span<float> values = Values(parameter.tensor);
    const std::vector<float> before(values.begin(), values.end());
    std::vector<double> direction(values.size());
    double product = 0;
    const Tensor grad = parameter.tensor.grad();
    for (std::size_t i = 0; i < values.size(); ++i) {
      direction[i] = 2 * rng.Unit() - 1;
      if (grad.defined()) product += direction[i] * static_cast<double>(Values(grad)[i]);
    }
    constexpr double kStep = 5e-3;
    const auto at = [&](double step) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(static_cast<double>(before[i]) + step * direction[i]);
      }
      return value();
    };
    const double difference =
        (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);  // of the fourth order
    std::copy(before.begin(), before.end(), values.begin());
    EXPECT_NEAR(product, difference, 3e-4 + 0.01 * std::abs(difference)) << parameter.name;
  }
}

// What is left to train gets the same bits as when all is trained, and the rest stays as it was.
TEST_P(TapeNumbers, FrozenParametersChangeNoOtherGradient) {
  using Bits = std::vector<float>;
  struct Run {
    std::vector<std::string> names;
    std::vector<std::optional<Bits>> gradients;
    std::vector<Bits> before, after;
  };
  const auto run = [](std::vector<std::string> frozen) {
    const std::unique_ptr<Runtime> runtime = MakeRuntime(DeviceKind::kHost);
    Context& context = runtime->context();
    Parameters parameters(context, {.frozen = std::move(frozen)});
    const LossOf loss_of = GetParam().make(parameters);
    EXPECT_TRUE(parameters.CheckFrozen().ok()) << parameters.CheckFrozen();
    const auto bits = [](const Tensor& tensor) { return Bits(Values(tensor).begin(), Values(tensor).end()); };
    Run out;
    for (const Parameter& parameter : parameters.all()) out.before.push_back(bits(parameter.tensor));
    {
      const Tensor loss = loss_of();
      Backward(loss);
    }
    for (const Parameter& parameter : parameters.all()) {
      const Tensor grad = parameter.tensor.grad();
      out.names.push_back(parameter.name);
      out.gradients.push_back(grad.defined() ? std::optional(bits(grad)) : std::nullopt);
    }
    Training training(parameters, {.optimizer = "adamw"});
    EXPECT_TRUE(training.Run(2, loss_of).ok());
    for (const Parameter& parameter : parameters.all()) out.after.push_back(bits(parameter.tensor));
    return out;
  };
  const std::vector<std::string> frozen = absl::StrSplit(GetParam().frozen, ',');
  const Run all = run({}), some = run(frozen);
  std::size_t frozen_count = 0, trained_count = 0;
  for (std::size_t i = 0; i < all.names.size(); ++i) {
    SCOPED_TRACE(all.names[i]);
    const bool is_frozen = std::any_of(frozen.begin(), frozen.end(),
                                       [&](const std::string& pattern) { return IsNamedBy(all.names[i], pattern); });
    ++(is_frozen ? frozen_count : trained_count);
    EXPECT_EQ(some.gradients[i], is_frozen ? std::nullopt : all.gradients[i]);
    EXPECT_EQ(some.before[i] == some.after[i], is_frozen || !all.gradients[i]);
  }
  EXPECT_GT(frozen_count, 3u);
  EXPECT_GT(trained_count, 3u);
}

struct Trained {
  std::vector<double> losses;
  std::vector<StepEvent> events;
};

Trained Train(const TapeNumbersModel& model, DeviceKind kind, std::optional<DType> autocast, const char* optimizer) {
  const std::unique_ptr<Runtime> runtime = MakeRuntime(kind);
  StepEvents events;
  runtime->allocator().SetSink(&events);
  Parameters parameters(runtime->context());
  const LossOf loss_of = model.make(parameters);
  Training training(
      parameters,
      {.accumulation = 2, .autocast = autocast, .optimizer = optimizer, .optimizer_options = {.learning_rate = 0.02}});
  Trained out;
  const absl::Status status = training.Run(8, loss_of, [&](std::int64_t, std::optional<double> loss) {
    if (loss) out.losses.push_back(*loss);
  });
  EXPECT_TRUE(status.ok()) << status;
  runtime->allocator().SetSink(nullptr);
  out.events = events.list();
  return out;
}

TEST_P(TapeNumbers, TrainingLearnsTheSameEachTime) {
  const Trained once = Train(GetParam(), DeviceKind::kHost, {}, "adamw");
  const Trained again = Train(GetParam(), DeviceKind::kHost, {}, "adamw");
  ASSERT_EQ(once.losses.size(), 8u);
  EXPECT_LT(once.losses.back(), 0.9 * once.losses.front());
  EXPECT_EQ(once.losses, again.losses);  // to the bit
}

TEST_P(TapeNumbers, HalfPrecisionLearns) {
  const Trained half = Train(GetParam(), DeviceKind::kHost, DType::kBFloat16, "adamw-fused");
  EXPECT_LT(half.losses.back(), 0.95 * half.losses.front());
}

TEST_P(TapeNumbers, TheAllocatorSeesTheSameWithoutArithmetic) {
  for (const std::optional<DType> autocast : {std::optional<DType>(), std::optional(DType::kBFloat16)}) {
    const Trained host = Train(GetParam(), DeviceKind::kHost, autocast, "adamw-hf");
    const Trained sim = Train(GetParam(), DeviceKind::kSim, autocast, "adamw-hf");
    ASSERT_GT(sim.events.size(), 1000u);
    EXPECT_EQ(host.events, sim.events);
  }
}

INSTANTIATE_TEST_SUITE_P(, TapeNumbers, testing::ValuesIn(kModels), TapeNumbersNameOf);

TEST(Optimizers, EachLearns) {
  for (const char* optimizer : {"adamw", "adamw-hf", "adamw-loop", "adamw-fused", "adamw-8bit", "adamw-teaching",
                                "adafactor", "adafactor-torch", "sgd"}) {
    const Trained trained = Train(kModels[2], DeviceKind::kHost, {}, optimizer);
    EXPECT_LT(trained.losses.back(), trained.losses.front()) << optimizer;
  }
}

}  // namespace
}  // namespace ashlar::kernels
