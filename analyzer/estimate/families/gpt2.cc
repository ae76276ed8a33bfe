// gpt2.
#include "kernels/nn/gpt2.h"

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

}  // namespace ashlar::estimate
