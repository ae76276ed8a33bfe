#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/estimate/families.h"
#include "analyzer/estimate/parameter_list.h"

namespace ashlar::estimate {
namespace {

struct Shape {
  std::int64_t vocabulary, width, head_width, heads, inner, buckets;
  bool is_gated;
};

void AddAttention(const Shape& config, const std::string& name, bool has_position_bias, ParameterList& list) {
  const std::int64_t all_heads = config.heads * config.head_width;
  for (const absl::string_view part : {".q", ".k", ".v"}) {
    list.Linear(absl::StrCat(name, part), config.width, all_heads, /*has_bias=*/false);
  }
  list.Linear(name + ".o", all_heads, config.width, /*has_bias=*/false);
  if (has_position_bias) list.Embedding(name + ".relative_attention_bias", config.buckets, config.heads);
}

void AddStack(const Shape& config, const std::string& name, std::int64_t layers, bool is_decoder, bool is_shared,
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
  Shape config{};
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
  T5ProgramConfig program;
  program.t5.vocab_size = config.vocabulary;
  program.t5.d_model = config.width;
  program.t5.d_kv = config.head_width;
  program.t5.d_ff = config.inner;
  program.t5.num_layers = layers;
  program.t5.num_decoder_layers = decoder_layers;
  program.t5.num_heads = config.heads;
  program.t5.relative_attention_num_buckets = config.buckets;
  program.t5.dropout_rate = keys.Share("dropout_rate", 0.1);
  program.t5.activation = *known;
  program.t5.is_gated = config.is_gated;
  program.t5.shares_embeddings = is_shared;
  program.t5.relative_attention_max_distance = keys.CountOr("relative_attention_max_distance", 128);
  program.t5.is_tied = keys.Flag("tie_word_embeddings", true);
  program.head = kind == "T5EncoderModel" ? kernels::T5Head::kEncoder
                 : kind == "T5Model"      ? kernels::T5Head::kNone
                                          : kernels::T5Head::kLanguage;
  model.program = program;
  if (program.head != kernels::T5Head::kLanguage) {
    model.notes.push_back({"loss", "a model without a head has no loss: trained by the mean of what it returns", 1});
  }
}

}  // namespace ashlar::estimate
