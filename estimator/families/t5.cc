// t5.
#include "estimator/models/t5.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "estimator/families/families.h"
#include "estimator/program.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Empty;
using kernels::Part;
using kernels::T5Head;
using kernels::Tensor;

class T5Program final : public Program {
 public:
  T5Program(kernels::Parameters& parameters, const kernels::T5Config& config, T5Head head, const DryRunOptions& options)
      : context_(parameters.context()),
        head_(head),
        model_(parameters, config,
               {.head = head,
                .is_training = options.is_training,
                .is_checkpointed = options.is_checkpointed,
                .transformers = VersionsFor(options).value_or(kernels::Transformers())}) {}
  Tensor Loss(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids(shape.batch, shape.tokens), mask = MaskOf(context_, shape);
    const Tensor targets = Targets(shape);
    batch_ = {ids, mask, targets};
    return model_.Loss(ids, targets, {mask, outputs});
  }
  void Forward(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids(shape.batch, shape.tokens), mask = MaskOf(context_, shape);
    model_.Forward(ids, Targets(shape), {mask, outputs});
  }

 private:
  Tensor Ids(std::int64_t batch, std::int64_t tokens) {
    return Empty(context_, {batch, tokens}, DType::kInt64, Part::kBatch);
  }
  Tensor Targets(const BatchShape& shape) {
    if (head_ == T5Head::kEncoder) return {};
    return Ids(shape.batch, shape.target_tokens > 0 ? shape.target_tokens : shape.tokens);
  }
  Context& context_;
  T5Head head_;
  kernels::T5 model_;
};

class T5Maker final : public ProgramMaker {
 public:
  T5Maker(const kernels::T5Config& config, T5Head head) : config_(config), head_(head) {}

  std::unique_ptr<Program> Make(kernels::Parameters& parameters, const DryRunOptions& options) const override {
    return std::make_unique<T5Program>(parameters, config_, head_, options);
  }
  // By the longer of both sides.
  double WidestTensor(const DryRunOptions& options) const override {
    const std::int64_t target = head_ == T5Head::kEncoder ? 0 : options.target_tokens;
    const double tokens = static_cast<double>(std::max<std::int64_t>(options.tokens, 1));
    const double longest = std::max(tokens, static_cast<double>(target));
    const std::int64_t logits = head_ == T5Head::kLanguage ? config_.vocab_size : 0;
    const double widest = std::max(static_cast<double>(config_.num_heads) * longest,
                                   static_cast<double>(std::max({config_.d_ff, config_.d_model, logits})));
    return widest * longest / tokens;
  }
  std::string WhyNot(const DryRunOptions& options) const override {
    if (options.attention.value_or(kernels::Attention::kEager) == kernels::Attention::kEager) return {};
    return "T5 has no fused attention in the transformers followed here, up to 4.57: --attention eager";
  }
  std::optional<kernels::Attention> DefaultAttention(const kernels::Transformers&) const override {
    return std::nullopt;
  }
  bool is_trained_by_mean() const override { return head_ != T5Head::kLanguage; }
  bool runs_in_pure_half() const override { return false; }

 private:
  kernels::T5Config config_;
  T5Head head_;
};

struct T5Shape {
  std::int64_t vocabulary, width, head_width, heads, inner, buckets;
  bool is_gated;
};

void AddAttention(const T5Shape& config, const std::string& name, bool has_position_bias, ParameterList& list) {
  const std::int64_t all_heads = config.heads * config.head_width;
  for (const absl::string_view part : {".q", ".k", ".v"}) {
    list.Linear(absl::StrCat(name, part), config.width, all_heads, /*has_bias=*/false);
  }
  list.Linear(name + ".o", all_heads, config.width, /*has_bias=*/false);
  if (has_position_bias) list.Embedding(name + ".relative_attention_bias", config.buckets, config.heads);
}

void AddStack(const T5Shape& config, const std::string& name, std::int64_t layers, bool is_decoder, bool is_shared,
              ParameterList& list) {
  if (is_shared) {
    list.Tie(name + ".embed_tokens.weight", "shared.weight");
  } else {
    list.Embedding(name + ".embed_tokens", config.vocabulary, config.width);
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string block = absl::StrCat(name, ".block.", i, ".layer.");
    AddAttention(config, block + "0.SelfAttention", i == 0, list);
    list.RmsNorm(block + "0.layer_norm", config.width);
    if (is_decoder) {
      AddAttention(config, block + "1.EncDecAttention", false, list);
      list.RmsNorm(block + "1.layer_norm", config.width);
    }
    const std::string feed = absl::StrCat(block, is_decoder ? 2 : 1);
    list.Linear(feed + (config.is_gated ? ".DenseReluDense.wi_0" : ".DenseReluDense.wi"), config.width, config.inner,
                /*has_bias=*/false);
    if (config.is_gated) list.Linear(feed + ".DenseReluDense.wi_1", config.width, config.inner, /*has_bias=*/false);
    list.Linear(feed + ".DenseReluDense.wo", config.inner, config.width, /*has_bias=*/false);
    list.RmsNorm(feed + ".layer_norm", config.width);
  }
  list.RmsNorm(name + ".final_layer_norm", config.width);
}

using Activation = kernels::T5Config::Activation;

// dense_act_fn: behind "gated-", and a gated gelu is the tanh one in Python.
std::optional<Activation> ActivationOf(absl::string_view feed_forward) {
  if (feed_forward == "relu" || feed_forward == "gated-relu") return Activation::kRelu;
  if (feed_forward == "gelu") return Activation::kGelu;
  if (feed_forward == "gated-gelu" || feed_forward == "gelu_new" || feed_forward == "gated-gelu_new") {
    return Activation::kGeluNew;
  }
  if (feed_forward == "silu" || feed_forward == "gated-silu") return Activation::kSilu;
  return std::nullopt;
}

}  // namespace

void DescribeT5(ConfigKeys& keys, Model& model) {
  static constexpr absl::string_view kKnown[] = {"T5Model", "T5ForConditionalGeneration", "T5EncoderModel",
                                                 "T5WithLMHeadModel"};
  const absl::string_view kind = kKnown[ArchitectureOf(model, kKnown, keys)];
  T5Shape config{};
  config.vocabulary = keys.Count("vocab_size", 32'128);
  config.width = keys.Count("d_model", 512);
  config.head_width = keys.Count("d_kv", 64);
  config.inner = keys.Count("d_ff", 2048);
  const std::int64_t layers = keys.Count("num_layers", 6);
  const std::int64_t decoder_layers = keys.CountOr("num_decoder_layers", layers);
  config.heads = keys.Count("num_heads", 8);
  config.buckets = keys.Count("relative_attention_num_buckets", 32);
  const std::string activation = keys.Text("feed_forward_proj", "relu");
  config.is_gated = absl::StartsWith(activation, "gated-");
  ParameterList list(model);
  const bool is_shared = model.switches.shares_embeddings.value_or(true);
  if (is_shared) list.Embedding("shared", config.vocabulary, config.width);
  AddStack(config, "encoder", layers, /*is_decoder=*/false, is_shared, list);
  if (kind != "T5EncoderModel") AddStack(config, "decoder", decoder_layers, /*is_decoder=*/true, is_shared, list);
  if (kind == "T5ForConditionalGeneration" || kind == "T5WithLMHeadModel") {
    if (keys.Flag("tie_word_embeddings", true)) {
      list.Tie("lm_head.weight", is_shared ? "shared.weight" : "decoder.embed_tokens.weight");
    } else {
      list.Linear("lm_head", config.width, config.vocabulary, /*has_bias=*/false);
    }
  }
  const std::optional<Activation> known = ActivationOf(activation);
  if (!known.has_value()) return;
  kernels::T5Config program;
  program.vocab_size = config.vocabulary;
  program.d_model = config.width;
  program.d_kv = config.head_width;
  program.d_ff = config.inner;
  program.num_layers = layers;
  program.num_decoder_layers = decoder_layers;
  program.num_heads = config.heads;
  program.relative_attention_num_buckets = config.buckets;
  program.dropout_rate = keys.Share("dropout_rate", 0.1);
  program.activation = *known;
  program.is_gated = config.is_gated;
  program.shares_embeddings = is_shared;
  program.relative_attention_max_distance = keys.CountOr("relative_attention_max_distance", 128);
  program.is_tied = keys.Flag("tie_word_embeddings", true);
  const T5Head head = kind == "T5EncoderModel" ? T5Head::kEncoder
                      : kind == "T5Model"      ? T5Head::kNone
                                               : T5Head::kLanguage;
  model.program = std::make_shared<T5Maker>(program, head);
  if (head != T5Head::kLanguage) {
    model.notes.push_back({"loss", "a model without a head has no loss: trained by the mean of what it returns", 1});
  }
}

}  // namespace ashlar::estimate
