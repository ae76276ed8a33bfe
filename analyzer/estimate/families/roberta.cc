// roberta and xlm-roberta.
#include "analyzer/estimate/families/encoder.h"
#include "analyzer/estimate/families/families.h"

namespace ashlar::estimate {

void DescribeRoberta(ConfigKeys& keys, Model& model) {
  static constexpr absl::string_view kRoberta[] = {
      "RobertaModel",       "RobertaForSequenceClassification", "RobertaForMaskedLM",
      "RobertaForCausalLM", "RobertaForTokenClassification",    "RobertaForQuestionAnswering"};
  static constexpr absl::string_view kXlm[] = {
      "XLMRobertaModel",       "XLMRobertaForSequenceClassification", "XLMRobertaForMaskedLM",
      "XLMRobertaForCausalLM", "XLMRobertaForTokenClassification",    "XLMRobertaForQuestionAnswering"};
  const bool is_xlm = model.family == "xlm-roberta";
  const absl::string_view kind =
      kRoberta[ArchitectureOf(model, is_xlm ? absl::MakeConstSpan(kXlm) : absl::MakeConstSpan(kRoberta), keys)];
  const BertBody config = ReadBertBody(keys, is_xlm ? 30'522 : 50'265);
  model.max_positions = config.positions > 2 ? config.positions - 2 : config.positions;  // counted from padding_idx + 1
  if (!keys.Flag("is_decoder", false)) {
    model.program = MakeBertMaker(config, kind, /*padding_id=*/1, keys, model);
  }
  ParameterList list(model);
  list.set_prefix(kind == "RobertaModel" ? "" : "roberta.");
  AddBertBody(config, kind == "RobertaModel", list);
  list.set_prefix("");
  if (kind == "RobertaForMaskedLM" || kind == "RobertaForCausalLM") {
    list.Add("lm_head.bias", {config.vocabulary});
    list.Linear("lm_head.dense", config.width, config.width);
    list.LayerNorm("lm_head.layer_norm", config.width);
    if (keys.Flag("tie_word_embeddings", true)) {
      list.Tie("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight");
    } else {
      list.Embedding("lm_head.decoder", config.vocabulary, config.width);
    }
    list.Tie("lm_head.decoder.bias", "lm_head.bias");
  }
  if (kind == "RobertaForSequenceClassification") {
    list.Linear("classifier.dense", config.width, config.width);
    list.Linear("classifier.out_proj", config.width, keys.Labels());
  }
  if (kind == "RobertaForTokenClassification") list.Linear("classifier", config.width, keys.Labels());
  if (kind == "RobertaForQuestionAnswering") list.Linear("qa_outputs", config.width, 2);
}

}  // namespace ashlar::estimate
