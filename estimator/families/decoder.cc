#include "estimator/families/decoder.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "estimator/families/families.h"
#include "estimator/models/decoder.h"
#include "estimator/models/gpt.h"

namespace ashlar::estimate {

void AddDecoderHead(kernels::DecoderHead head, const char* embeddings, std::int64_t vocabulary, std::int64_t width,
                    bool is_tied, ConfigKeys& keys, ParameterList& list) {
  list.set_prefix("");
  if (head == kernels::DecoderHead::kClassifier) list.Linear("score", width, keys.Labels(), /*has_bias=*/false);
  if (head != kernels::DecoderHead::kLanguageModel) return;
  if (is_tied) {
    list.Tie("lm_head.weight", embeddings);
  } else {
    list.Linear("lm_head", width, vocabulary, /*has_bias=*/false);
  }
}

double WidestOfDecoder(std::int64_t heads, std::int64_t inner, std::int64_t vocabulary, const DryRunOptions& options) {
  return std::max(static_cast<double>(heads) * static_cast<double>(options.tokens),
                  static_cast<double>(std::max(inner, vocabulary)));
}

std::string WhyNoDecoder(const std::string& activation, const char* has, const DryRunOptions& options) {
  if (!activation.empty() && activation != has) {
    return absl::StrCat("no dry run with the activation '", activation, "' yet: this family has ", has);
  }
  return WhyNoFlash(options);
}

// gpt2.

namespace {

using kernels::Attention;

class Gpt2Maker final : public DecoderMaker<kernels::Gpt2, kernels::Gpt2Config> {
 public:
  using DecoderMaker::DecoderMaker;
  double WidestTensor(const DryRunOptions& options) const override {
    const std::int64_t inner = std::max(config().n_inner, 4 * config().n_embd);
    return WidestOfDecoder(config().n_head, inner, config().vocab_size, options);
  }
  std::optional<Attention> DefaultAttention(const kernels::Transformers& versions) const override {
    return versions.gpt2_has_sdpa ? Attention::kSdpa : Attention::kEager;
  }
  std::string WhyNot(const DryRunOptions& options) const override {
    const absl::StatusOr<kernels::Transformers> versions = VersionsFor(options);
    if (options.attention == Attention::kFlash && versions.ok() && versions->has_flash && !versions->gpt2_has_flash) {
      return absl::StrCat("transformers of torch ", options.torch_version,
                          " had no FlashAttention 2 for GPT-2: give --attention eager, or --torch 2.3 or later");
    }
    return WhyNotWith("gelu_new", options);
  }
};

}  // namespace

void DescribeGpt2(ConfigKeys& keys, Model& model) {
  static constexpr absl::string_view kKnown[] = {"GPT2Model", "GPT2LMHeadModel", "GPT2ForSequenceClassification"};
  const auto head = static_cast<kernels::DecoderHead>(ArchitectureOf(model, kKnown, keys));
  const std::int64_t vocabulary = keys.Count("vocab_size", 50'257), positions = keys.Count("n_positions", 1024);
  const std::int64_t width = keys.Count("n_embd", 768), layers = keys.Count("n_layer", 12);
  const std::int64_t heads = keys.Count("n_head", 12), inner = keys.CountOr("n_inner", 4 * width);
  if (width % heads != 0) keys.Fail(absl::StrCat("\"n_embd\" ", width, " is not a multiple of \"n_head\" ", heads));
  model.max_positions = positions;
  ParameterList list(model);
  list.set_prefix(head == kernels::DecoderHead::kNone ? "" : "transformer.");
  list.Embedding("wte", vocabulary, width);
  list.Embedding("wpe", positions, width);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = absl::StrCat("h.", i);
    list.LayerNorm(layer + ".ln_1", width);
    list.Conv1D(layer + ".attn.c_attn", width, 3 * width);
    list.Conv1D(layer + ".attn.c_proj", width, width);
    list.LayerNorm(layer + ".ln_2", width);
    list.Conv1D(layer + ".mlp.c_fc", width, inner);
    list.Conv1D(layer + ".mlp.c_proj", inner, width);
  }
  list.LayerNorm("ln_f", width);
  kernels::Gpt2Config config{vocabulary, positions, width, layers, heads, inner};
  config.tie_word_embeddings = keys.Flag("tie_word_embeddings", true);
  config.resid_pdrop = keys.Share("resid_pdrop", config.resid_pdrop);
  config.embd_pdrop = keys.Share("embd_pdrop", config.embd_pdrop);
  config.attn_pdrop = keys.Share("attn_pdrop", config.attn_pdrop);
  const std::int64_t labels = keys.Labels();
  model.program = std::make_shared<Gpt2Maker>(config, head, labels, keys.Text("activation_function", "gelu_new"));
  AddDecoderHead(head, "transformer.wte.weight", vocabulary, width, config.tie_word_embeddings, keys, list);
}

// gpt_neo.

namespace {

class GptNeoMaker final : public DecoderMaker<kernels::GptNeo, kernels::GptNeoConfig> {
 public:
  using DecoderMaker::DecoderMaker;
  double WidestTensor(const DryRunOptions& options) const override {
    return WidestOfDecoder(config().num_heads, config().intermediate_size, config().vocab_size, options);
  }
  std::optional<Attention> DefaultAttention(const kernels::Transformers&) const override { return Attention::kEager; }
  std::string WhyNot(const DryRunOptions& options) const override {
    if (options.attention == Attention::kSdpa) {
      return "GPT-Neo has no sdpa in the transformers followed here: --attention eager or flash";
    }
    return WhyNotWith("gelu_new", options);
  }
};

}  // namespace

void DescribeGptNeo(ConfigKeys& keys, Model& model) {
  static constexpr absl::string_view kKnown[] = {"GPTNeoModel", "GPTNeoForCausalLM", "GPTNeoForSequenceClassification"};
  const auto head = static_cast<kernels::DecoderHead>(ArchitectureOf(model, kKnown, keys));
  const std::int64_t vocabulary = keys.Count("vocab_size", 50'257);
  const std::int64_t positions = keys.Count("max_position_embeddings", 2048), width = keys.Count("hidden_size", 2048);
  const std::int64_t layers = keys.Count("num_layers", 24), heads = keys.Count("num_heads", 16);
  const std::int64_t inner = keys.CountOr("intermediate_size", 4 * width);
  if (width % heads != 0) {
    keys.Fail(absl::StrCat("\"hidden_size\" ", width, " is not a multiple of \"num_heads\" ", heads));
  }
  model.max_positions = positions;
  ParameterList list(model);
  list.set_prefix(head == kernels::DecoderHead::kNone ? "" : "transformer.");
  list.Embedding("wte", vocabulary, width);
  list.Embedding("wpe", positions, width);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = absl::StrCat("h.", i);
    list.LayerNorm(layer + ".ln_1", width);
    for (const absl::string_view part : {"k_proj", "v_proj", "q_proj"}) {
      list.Linear(absl::StrCat(layer, ".attn.attention.", part), width, width, /*has_bias=*/false);
    }
    list.Linear(layer + ".attn.attention.out_proj", width, width);
    list.LayerNorm(layer + ".ln_2", width);
    list.Linear(layer + ".mlp.c_fc", width, inner);
    list.Linear(layer + ".mlp.c_proj", inner, width);
  }
  list.LayerNorm("ln_f", width);
  kernels::GptNeoConfig config{vocabulary, positions, width, layers, heads, inner};
  config.tie_word_embeddings = keys.Flag("tie_word_embeddings", true);
  config.resid_dropout = keys.Share("resid_dropout", 0);
  config.embed_dropout = keys.Share("embed_dropout", 0);
  config.attention_dropout = keys.Share("attention_dropout", 0);
  const std::int64_t labels = keys.Labels();
  model.program = std::make_shared<GptNeoMaker>(config, head, labels, keys.Text("activation_function", "gelu_new"));
  AddDecoderHead(head, "transformer.wte.weight", vocabulary, width, config.tie_word_embeddings, keys, list);
}

// The llama-shaped: llama, qwen2, mistral, gemma.

namespace {

using Head = kernels::DecoderHead;

class LlamaMaker final : public DecoderMaker<kernels::DecoderModel, kernels::DecoderConfig> {
 public:
  using DecoderMaker::DecoderMaker;
  double WidestTensor(const DryRunOptions& options) const override {
    return WidestOfDecoder(config().num_attention_heads, config().intermediate_size, config().vocab_size, options);
  }
  std::optional<Attention> DefaultAttention(const kernels::Transformers& versions) const override {
    return versions.prefers_sdpa ? Attention::kSdpa : Attention::kEager;
  }
  std::string WhyNot(const DryRunOptions& options) const override {
    const bool is_gemma = config().family == kernels::DecoderFamily::kGemma;
    return WhyNotWith(is_gemma ? "gelu_pytorch_tanh" : "silu", options);
  }
};

struct LlamaConfig {
  kernels::DecoderConfig decoder;
  std::int64_t positions = 0;
};

using Kind = kernels::DecoderFamily;
LlamaConfig Defaults(kernels::DecoderConfig decoder, std::int64_t positions) {
  decoder.tie_word_embeddings = decoder.family == Kind::kGemma;
  return {decoder, positions};
}

// Tokens that a token sees; nullopt where there is no limit, or none is given.
std::optional<std::int64_t> Window(ConfigKeys& keys) {
  const std::int64_t window = keys.CountOr("sliding_window", 0);
  return window == 0 ? std::nullopt : std::optional(window);
}

// Defaults of `config` stand where a key is missing.
LlamaConfig ReadLlama(ConfigKeys& keys, LlamaConfig config) {
  kernels::DecoderConfig& out = config.decoder;
  const std::int64_t default_heads = out.num_attention_heads;
  out.vocab_size = keys.Count("vocab_size", out.vocab_size);
  out.hidden_size = keys.Count("hidden_size", out.hidden_size);
  out.intermediate_size = keys.Count("intermediate_size", out.intermediate_size);
  out.num_hidden_layers = keys.Count("num_hidden_layers", out.num_hidden_layers);
  out.num_attention_heads = keys.Count("num_attention_heads", default_heads);
  // Llama's missing key means as many as heads; the others have a number of their own.
  out.num_key_value_heads = out.num_key_value_heads == 0 ? keys.CountOr("num_key_value_heads", out.num_attention_heads)
                                                         : keys.Count("num_key_value_heads", out.num_key_value_heads);
  config.positions = keys.Count("max_position_embeddings", config.positions);
  if (out.head_dim != 0) {
    out.head_dim = keys.Count("head_dim", out.head_dim);
  } else {
    out.head_dim = keys.CountOr("head_dim", out.hidden_size / out.num_attention_heads);
  }
  if (out.head_dim == 0 || out.num_attention_heads % out.num_key_value_heads != 0) {
    keys.Fail(absl::StrCat("\"num_attention_heads\" ", out.num_attention_heads, " goes neither with \"hidden_size\" ",
                           out.hidden_size, " nor with \"num_key_value_heads\" ", out.num_key_value_heads));
  }
  out.tie_word_embeddings = keys.Flag("tie_word_embeddings", out.tie_word_embeddings);
  out.attention_dropout = keys.Share("attention_dropout", 0);
  return config;
}

void AddLlama(const LlamaConfig& of, Head head, std::string activation, ConfigKeys& keys, Model& model) {
  const kernels::DecoderConfig& config = of.decoder;
  model.max_positions = of.positions;
  model.program = std::make_shared<LlamaMaker>(config, head, keys.Labels(), std::move(activation));
  ParameterList list(model);
  list.set_prefix(head == Head::kNone ? "" : "model.");
  list.Embedding("embed_tokens", config.vocab_size, config.hidden_size);
  const std::int64_t queries = config.num_attention_heads * config.head_dim,
                     values = config.num_key_value_heads * config.head_dim;
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string layer = absl::StrCat("layers.", i);
    list.Linear(layer + ".self_attn.q_proj", config.hidden_size, queries, config.has_input_bias);
    list.Linear(layer + ".self_attn.k_proj", config.hidden_size, values, config.has_input_bias);
    list.Linear(layer + ".self_attn.v_proj", config.hidden_size, values, config.has_input_bias);
    list.Linear(layer + ".self_attn.o_proj", queries, config.hidden_size, config.has_output_bias);
    list.Linear(layer + ".mlp.gate_proj", config.hidden_size, config.intermediate_size, config.has_mlp_bias);
    list.Linear(layer + ".mlp.up_proj", config.hidden_size, config.intermediate_size, config.has_mlp_bias);
    list.Linear(layer + ".mlp.down_proj", config.intermediate_size, config.hidden_size, config.has_mlp_bias);
    list.RmsNorm(layer + ".input_layernorm", config.hidden_size);
    list.RmsNorm(layer + ".post_attention_layernorm", config.hidden_size);
  }
  list.RmsNorm("norm", config.hidden_size);
  AddDecoderHead(head, "model.embed_tokens.weight", config.vocab_size, config.hidden_size, config.tie_word_embeddings,
                 keys, list);
}

// A family's three architectures: "<name>Model", "<name>ForCausalLM", "<name>ForSequenceClassification".
Head DecoderHeadOf(const char* name, ConfigKeys& keys, const Model& model) {
  const std::string bare = absl::StrCat(name, "Model"), causal = absl::StrCat(name, "ForCausalLM"),
                    classifier = absl::StrCat(name, "ForSequenceClassification");
  const absl::string_view known[] = {bare, causal, classifier};
  return static_cast<Head>(ArchitectureOf(model, known, keys));
}

}  // namespace

void DescribeLlama(ConfigKeys& keys, Model& model) {
  const Head head = DecoderHeadOf("Llama", keys, model);
  LlamaConfig config = ReadLlama(keys, Defaults({Kind::kLlama, 32'000, 4096, 11'008, 32, 32, 0, 0}, 2048));
  config.decoder.has_input_bias = config.decoder.has_output_bias = keys.Flag("attention_bias", false);
  config.decoder.has_mlp_bias = keys.Flag("mlp_bias", false);
  AddLlama(config, head, keys.Text("hidden_act", "silu"), keys, model);
}

void DescribeQwen2(ConfigKeys& keys, Model& model) {
  const Head head = DecoderHeadOf("Qwen2", keys, model);
  LlamaConfig config = ReadLlama(keys, Defaults({Kind::kQwen2, 151'936, 4096, 22'016, 32, 32, 32, 0}, 32'768));
  config.decoder.has_input_bias = true;
  if (keys.Flag("use_sliding_window", false)) config.decoder.sliding_window = Window(keys);
  AddLlama(config, head, keys.Text("hidden_act", "silu"), keys, model);
}

void DescribeMistral(ConfigKeys& keys, Model& model) {
  const Head head = DecoderHeadOf("Mistral", keys, model);
  LlamaConfig config = ReadLlama(keys, Defaults({Kind::kMistral, 32'000, 4096, 14'336, 32, 32, 8, 0}, 131'072));
  config.decoder.sliding_window = Window(keys);
  AddLlama(config, head, keys.Text("hidden_act", "silu"), keys, model);
}

// "hidden_act" of its files is not what runs.
void DescribeGemma(ConfigKeys& keys, Model& model) {
  const Head head = DecoderHeadOf("Gemma", keys, model);
  LlamaConfig config = ReadLlama(keys, Defaults({Kind::kGemma, 256'000, 3072, 24'576, 28, 16, 16, 256}, 8192));
  config.decoder.has_input_bias = config.decoder.has_output_bias = keys.Flag("attention_bias", false);
  AddLlama(config, head, keys.Text("hidden_activation", "gelu_pytorch_tanh"), keys, model);
}

}  // namespace ashlar::estimate
