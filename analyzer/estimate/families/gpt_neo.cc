// gpt_neo.
#include "kernels/nn/gpt_neo.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/estimate/families/decoder.h"
#include "analyzer/estimate/families/families.h"

namespace ashlar::estimate {
namespace {

using kernels::Attention;

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

}  // namespace ashlar::estimate
