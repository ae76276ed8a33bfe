// distilbert.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "analyzer/estimate/families/encoder.h"
#include "analyzer/estimate/families/families.h"

namespace ashlar::estimate {
namespace {

class DistilBertMaker final : public ProgramMaker {
 public:
  DistilBertMaker(const kernels::DistilBertConfig& config, const kernels::EncoderHead& head)
      : config_(config), head_(head) {}

  std::unique_ptr<Program> Make(kernels::Parameters& parameters, const DryRunOptions& options) const override {
    return MakeEncoderProgram(
        parameters.context(), head_.task,
        kernels::MakeDistilBert(parameters, config_, head_,
                                {.is_checkpointed = options.is_checkpointed,
                                 .is_training = options.is_training,
                                 .attention = options.attention.value_or(kernels::Attention::kEager)}));
  }
  double WidestTensor(const DryRunOptions& options) const override {
    return WidestOfEncoder({config_.n_heads, config_.hidden_dim, config_.dim, config_.vocab_size}, head_.task, options);
  }
  std::string WhyNot(const DryRunOptions& options) const override { return WhyNoFlash(options); }
  std::optional<kernels::Attention> DefaultAttention(const kernels::Transformers& versions) const override {
    return versions.distilbert_has_sdpa ? kernels::Attention::kSdpa : kernels::Attention::kEager;
  }
  bool is_trained_by_mean() const override { return head_.task == kernels::EncoderTask::kNone; }

 private:
  kernels::DistilBertConfig config_;
  kernels::EncoderHead head_;
};

}  // namespace

void DescribeDistilBert(ConfigKeys& keys, Model& model) {
  static constexpr absl::string_view kKnown[] = {"DistilBertModel", "DistilBertForSequenceClassification",
                                                 "DistilBertForMaskedLM", "DistilBertForTokenClassification",
                                                 "DistilBertForQuestionAnswering"};
  const absl::string_view kind = kKnown[ArchitectureOf(model, kKnown, keys)];
  const std::int64_t vocabulary = keys.Count("vocab_size", 30'522), width = keys.Count("dim", 768);
  const std::int64_t layers = keys.Count("n_layers", 6), heads = keys.Count("n_heads", 12);
  const std::int64_t inner = keys.Count("hidden_dim", 3072), positions = keys.Count("max_position_embeddings", 512);
  if (width % heads != 0) keys.Fail(absl::StrCat("\"dim\" ", width, " is not a multiple of \"n_heads\" ", heads));
  model.max_positions = positions;
  kernels::DistilBertConfig config{vocabulary, width, layers, heads, inner, positions, keys.Share("dropout", 0.1)};
  config.attention_dropout = keys.Share("attention_dropout", 0.1);
  config.qa_dropout = keys.Share("qa_dropout", 0.1);
  config.seq_classif_dropout = keys.Share("seq_classif_dropout", 0.2);
  model.program = std::make_shared<DistilBertMaker>(config, EncoderHeadOf(kind, keys, model));
  ParameterList list(model);
  list.set_prefix(kind == "DistilBertModel" ? "" : "distilbert.");
  list.Embedding("embeddings.word_embeddings", vocabulary, width);
  list.Embedding("embeddings.position_embeddings", positions, width);
  list.LayerNorm("embeddings.LayerNorm", width);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = absl::StrCat("transformer.layer.", i);
    for (const absl::string_view part : {"q_lin", "k_lin", "v_lin", "out_lin"}) {
      list.Linear(absl::StrCat(layer, ".attention.", part), width, width);
    }
    list.LayerNorm(layer + ".sa_layer_norm", width);
    list.Linear(layer + ".ffn.lin1", width, inner);
    list.Linear(layer + ".ffn.lin2", inner, width);
    list.LayerNorm(layer + ".output_layer_norm", width);
  }
  list.set_prefix("");
  if (kind == "DistilBertForMaskedLM") {
    list.Linear("vocab_transform", width, width);
    list.LayerNorm("vocab_layer_norm", width);
    if (keys.Flag("tie_word_embeddings", true)) {
      list.Tie("vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight");
      list.Add("vocab_projector.bias", {vocabulary});
    } else {
      list.Linear("vocab_projector", width, vocabulary);
    }
  }
  if (kind == "DistilBertForSequenceClassification") {
    list.Linear("pre_classifier", width, width);
    list.Linear("classifier", width, keys.Labels());
  }
  if (kind == "DistilBertForTokenClassification") list.Linear("classifier", width, keys.Labels());
  if (kind == "DistilBertForQuestionAnswering") list.Linear("qa_outputs", width, 2);
}

}  // namespace ashlar::estimate
