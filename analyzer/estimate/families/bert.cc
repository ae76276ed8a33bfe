// bert.
#include "analyzer/estimate/families/encoder.h"
#include "analyzer/estimate/families/families.h"

namespace ashlar::estimate {
namespace {

void AddBertPredictions(const BertBody& config, bool is_tied, ParameterList& list) {
  list.Add("cls.predictions.bias", {config.vocabulary});
  list.Linear("cls.predictions.transform.dense", config.width, config.width);
  list.LayerNorm("cls.predictions.transform.LayerNorm", config.width);
  if (is_tied) {
    list.Tie("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight");
  } else {
    list.Embedding("cls.predictions.decoder", config.vocabulary, config.width);
  }
  list.Tie("cls.predictions.decoder.bias", "cls.predictions.bias");
}

}  // namespace

void DescribeBert(ConfigKeys& keys, Model& model) {
  static constexpr absl::string_view kKnown[] = {"BertModel",
                                                 "BertForSequenceClassification",
                                                 "BertForMaskedLM",
                                                 "BertLMHeadModel",
                                                 "BertForPreTraining",
                                                 "BertForNextSentencePrediction",
                                                 "BertForMultipleChoice",
                                                 "BertForTokenClassification",
                                                 "BertForQuestionAnswering"};
  const absl::string_view kind = kKnown[ArchitectureOf(model, kKnown, keys)];
  const BertBody config = ReadBertBody(keys, 30'522);
  model.max_positions = config.positions;
  const bool has_pooler = kind == "BertModel" || kind == "BertForSequenceClassification" ||
                          kind == "BertForPreTraining" || kind == "BertForNextSentencePrediction" ||
                          kind == "BertForMultipleChoice";
  ParameterList list(model);
  list.set_prefix(kind == "BertModel" ? "" : "bert.");
  AddBertBody(config, has_pooler, list);
  list.set_prefix("");
  if (kind == "BertForMaskedLM" || kind == "BertLMHeadModel" || kind == "BertForPreTraining") {
    AddBertPredictions(config, keys.Flag("tie_word_embeddings", true), list);
  }
  if (kind == "BertForPreTraining" || kind == "BertForNextSentencePrediction") {
    list.Linear("cls.seq_relationship", config.width, 2);
  }
  if (!keys.Flag("is_decoder", false)) {
    model.program = MakeBertMaker(config, kind, /*padding_id=*/{}, keys, model);
  }
  if (kind == "BertForMultipleChoice") list.Linear("classifier", config.width, 1);
  if (kind == "BertForSequenceClassification" || kind == "BertForTokenClassification") {
    list.Linear("classifier", config.width, keys.Labels());
  }
  if (kind == "BertForQuestionAnswering") list.Linear("qa_outputs", config.width, 2);
}

}  // namespace ashlar::estimate
