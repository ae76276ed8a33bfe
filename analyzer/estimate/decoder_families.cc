// gpt2, gpt_neo, and the llama-shaped: llama, qwen2, mistral, gemma.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/estimate/families.h"
#include "analyzer/estimate/parameter_list.h"

namespace ashlar::estimate {
namespace {

using Head = kernels::DecoderHead;  // a classifier's has no bias

void AddHead(Head head, const char* embeddings, std::int64_t vocabulary, std::int64_t width, bool is_tied,
             ConfigKeys& keys, ParameterList& list) {
  list.set_prefix("");
  if (head == Head::kClassifier) list.Linear("score", width, keys.Labels(), /*has_bias=*/false);
  if (head != Head::kLanguageModel) return;
  if (is_tied) {
    list.Tie("lm_head.weight", embeddings);
  } else {
    list.Linear("lm_head", width, vocabulary, /*has_bias=*/false);
  }
}

struct LlamaConfig {
  kernels::DecoderConfig decoder;
  std::int64_t positions = 0;
};

using Kind = kernels::DecoderFamily;
LlamaConfig Defaults(kernels::DecoderConfig decoder, std::int64_t positions) {
  decoder.is_tied = decoder.family == Kind::kGemma;
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
  const std::int64_t default_heads = out.heads;
  out.vocabulary = keys.Count("vocab_size", out.vocabulary);
  out.width = keys.Count("hidden_size", out.width);
  out.inner = keys.Count("intermediate_size", out.inner);
  out.layers = keys.Count("num_hidden_layers", out.layers);
  out.heads = keys.Count("num_attention_heads", default_heads);
  // Llama's missing key means as many as heads; the others have a number of their own.
  out.key_heads = out.key_heads == 0 ? keys.CountOr("num_key_value_heads", out.heads)
                                     : keys.Count("num_key_value_heads", out.key_heads);
  config.positions = keys.Count("max_position_embeddings", config.positions);
  if (out.head_width != 0) {
    out.head_width = keys.Count("head_dim", out.head_width);
  } else {
    out.head_width = keys.CountOr("head_dim", out.width / out.heads);
  }
  if (out.head_width == 0 || out.heads % out.key_heads != 0) {
    keys.Fail(absl::StrCat("\"num_attention_heads\" ", out.heads, " goes neither with \"hidden_size\" ", out.width,
                           " nor with \"num_key_value_heads\" ", out.key_heads));
  }
  out.is_tied = keys.Flag("tie_word_embeddings", out.is_tied);
  out.dropout = keys.Share("attention_dropout", 0);
  return config;
}

void AddLlama(const LlamaConfig& of, Head head, std::string activation, ConfigKeys& keys, Model& model) {
  const kernels::DecoderConfig& config = of.decoder;
  model.max_positions = of.positions;
  model.program = LlamaProgramConfig{config, head, keys.Labels(), std::move(activation)};
  ParameterList list(model);
  list.set_prefix(head == Head::kNone ? "" : "model.");
  list.Embedding("embed_tokens", config.vocabulary, config.width);
  const std::int64_t queries = config.heads * config.head_width, values = config.key_heads * config.head_width;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = absl::StrCat("layers.", i);
    list.Linear(layer + ".self_attn.q_proj", config.width, queries, config.has_input_bias);
    list.Linear(layer + ".self_attn.k_proj", config.width, values, config.has_input_bias);
    list.Linear(layer + ".self_attn.v_proj", config.width, values, config.has_input_bias);
    list.Linear(layer + ".self_attn.o_proj", queries, config.width, config.has_output_bias);
    list.Linear(layer + ".mlp.gate_proj", config.width, config.inner, config.has_mlp_bias);
    list.Linear(layer + ".mlp.up_proj", config.width, config.inner, config.has_mlp_bias);
    list.Linear(layer + ".mlp.down_proj", config.inner, config.width, config.has_mlp_bias);
    list.RmsNorm(layer + ".input_layernorm", config.width);
    list.RmsNorm(layer + ".post_attention_layernorm", config.width);
  }
  list.RmsNorm("norm", config.width);
  AddHead(head, "model.embed_tokens.weight", config.vocabulary, config.width, config.is_tied, keys, list);
}

// A family's three architectures: "<name>Model", "<name>ForCausalLM", "<name>ForSequenceClassification".
Head DecoderHeadOf(const char* name, ConfigKeys& keys, const Model& model) {
  const std::string bare = absl::StrCat(name, "Model"), causal = absl::StrCat(name, "ForCausalLM"),
                    classifier = absl::StrCat(name, "ForSequenceClassification");
  const absl::string_view known[] = {bare, causal, classifier};
  return static_cast<Head>(ArchitectureOf(model, known, keys));
}

}  // namespace

void DescribeGpt2(ConfigKeys& keys, Model& model) {
  static constexpr absl::string_view kKnown[] = {"GPT2Model", "GPT2LMHeadModel", "GPT2ForSequenceClassification"};
  const auto head = static_cast<Head>(ArchitectureOf(model, kKnown, keys));
  const std::int64_t vocabulary = keys.Count("vocab_size", 50'257), positions = keys.Count("n_positions", 1024);
  const std::int64_t width = keys.Count("n_embd", 768), layers = keys.Count("n_layer", 12);
  const std::int64_t heads = keys.Count("n_head", 12), inner = keys.CountOr("n_inner", 4 * width);
  if (width % heads != 0) keys.Fail(absl::StrCat("\"n_embd\" ", width, " is not a multiple of \"n_head\" ", heads));
  model.max_positions = positions;
  ParameterList list(model);
  list.set_prefix(head == Head::kNone ? "" : "transformer.");
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
  config.is_tied = keys.Flag("tie_word_embeddings", true);
  config.resid_pdrop = keys.Share("resid_pdrop", config.resid_pdrop);
  config.embd_pdrop = keys.Share("embd_pdrop", config.embd_pdrop);
  config.attn_pdrop = keys.Share("attn_pdrop", config.attn_pdrop);
  model.program = Gpt2ProgramConfig{config, head, keys.Labels(), keys.Text("activation_function", "gelu_new")};
  AddHead(head, "transformer.wte.weight", vocabulary, width, config.is_tied, keys, list);
}

void DescribeGptNeo(ConfigKeys& keys, Model& model) {
  static constexpr absl::string_view kKnown[] = {"GPTNeoModel", "GPTNeoForCausalLM", "GPTNeoForSequenceClassification"};
  const auto head = static_cast<Head>(ArchitectureOf(model, kKnown, keys));
  const std::int64_t vocabulary = keys.Count("vocab_size", 50'257);
  const std::int64_t positions = keys.Count("max_position_embeddings", 2048), width = keys.Count("hidden_size", 2048);
  const std::int64_t layers = keys.Count("num_layers", 24), heads = keys.Count("num_heads", 16);
  const std::int64_t inner = keys.CountOr("intermediate_size", 4 * width);
  if (width % heads != 0) {
    keys.Fail(absl::StrCat("\"hidden_size\" ", width, " is not a multiple of \"num_heads\" ", heads));
  }
  model.max_positions = positions;
  ParameterList list(model);
  list.set_prefix(head == Head::kNone ? "" : "transformer.");
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
  config.is_tied = keys.Flag("tie_word_embeddings", true);
  config.residual_dropout = keys.Share("resid_dropout", 0);
  config.embedding_dropout = keys.Share("embed_dropout", 0);
  config.attention_dropout = keys.Share("attention_dropout", 0);
  model.program = GptNeoProgramConfig{config, head, keys.Labels(), keys.Text("activation_function", "gelu_new")};
  AddHead(head, "transformer.wte.weight", vocabulary, width, config.is_tied, keys, list);
}

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
  if (keys.Flag("use_sliding_window", false)) config.decoder.window = Window(keys);
  AddLlama(config, head, keys.Text("hidden_act", "silu"), keys, model);
}

void DescribeMistral(ConfigKeys& keys, Model& model) {
  const Head head = DecoderHeadOf("Mistral", keys, model);
  LlamaConfig config = ReadLlama(keys, Defaults({Kind::kMistral, 32'000, 4096, 14'336, 32, 32, 8, 0}, 131'072));
  config.decoder.window = Window(keys);
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
