// bert, roberta (and xlm-roberta), distilbert.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/estimate/families.h"
#include "analyzer/estimate/parameter_list.h"

namespace ashlar::estimate {
namespace {

using kernels::EncoderTask;

// Keys that bert and roberta share.
BertBody ReadBody(ConfigKeys& keys, std::int64_t vocabulary) {
  BertBody out;
  out.vocabulary = keys.Count("vocab_size", vocabulary);
  out.width = keys.Count("hidden_size", 768);
  out.layers = keys.Count("num_hidden_layers", 12);
  const std::int64_t heads = keys.Count("num_attention_heads", 12);
  out.inner = keys.Count("intermediate_size", 3072);
  out.positions = keys.Count("max_position_embeddings", 512);
  out.types = keys.Count("type_vocab_size", 2);
  if (out.width % heads != 0) {
    keys.Fail(absl::StrCat("\"hidden_size\" ", out.width, " is not a multiple of \"num_attention_heads\" ", heads));
  }
  return out;
}

// The keys once more, as the workload program takes them.
kernels::BertConfig ProgramOf(const BertBody& body, ConfigKeys& keys) {
  kernels::BertConfig out;
  out.vocab_size = body.vocabulary;
  out.hidden_size = body.width;
  out.num_hidden_layers = body.layers;
  out.num_attention_heads = keys.CountOr("num_attention_heads", 12);
  out.intermediate_size = body.inner;
  out.max_position_embeddings = body.positions;
  out.type_vocab_size = body.types;
  out.hidden_dropout_prob = keys.Share("hidden_dropout_prob", 0.1);
  out.attention_probs_dropout_prob = keys.Share("attention_probs_dropout_prob", 0.1);
  return out;
}

// By the class's name behind the family's: "ForMaskedLM".
EncoderTask TaskOf(absl::string_view kind) {
  static constexpr std::pair<absl::string_view, EncoderTask> kTasks[] = {
      {"ForSequenceClassification", EncoderTask::kSequence},
      {"ForTokenClassification", EncoderTask::kTokens},
      {"ForQuestionAnswering", EncoderTask::kSpan},
      {"ForMaskedLM", EncoderTask::kMaskedLanguage},
      {"ForCausalLM", EncoderTask::kCausalLanguage},
      {"LMHeadModel", EncoderTask::kCausalLanguage},
      {"ForPreTraining", EncoderTask::kPreTraining},
      {"ForNextSentencePrediction", EncoderTask::kNextSentence},
      {"ForMultipleChoice", EncoderTask::kChoice}};
  for (const auto& [ending, task] : kTasks) {
    if (absl::EndsWith(kind, ending)) return task;
  }
  return EncoderTask::kNone;
}

kernels::EncoderHead EncoderHeadOf(absl::string_view kind, ConfigKeys& keys, Model& model) {
  kernels::EncoderHead out;
  out.task = TaskOf(kind);
  if (out.task == EncoderTask::kSequence || out.task == EncoderTask::kTokens) out.labels = keys.Labels();
  out.ties_decoder = keys.Flag("tie_word_embeddings", true);
  if (out.task == EncoderTask::kNone) {
    model.notes.push_back({"loss", "a model without a head has no loss: trained by the mean of what it returns", 1});
  }
  if (out.task == EncoderTask::kChoice) {
    model.notes.push_back({"choices", "the batch counts sequences: samples times choices", 1});
  }
  return out;
}

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

void AddBertBody(const BertBody& body, bool has_pooler, ParameterList& list) {
  list.Embedding("embeddings.word_embeddings", body.vocabulary, body.width);
  list.Embedding("embeddings.position_embeddings", body.positions, body.width);
  list.Embedding("embeddings.token_type_embeddings", body.types, body.width);
  list.LayerNorm("embeddings.LayerNorm", body.width);
  for (std::int64_t i = 0; i < body.layers; ++i) {
    const std::string layer = absl::StrCat("encoder.layer.", i);
    for (const absl::string_view part : {"query", "key", "value"}) {
      list.Linear(absl::StrCat(layer, ".attention.self.", part), body.width, body.width);
    }
    list.Linear(layer + ".attention.output.dense", body.width, body.width);
    list.LayerNorm(layer + ".attention.output.LayerNorm", body.width);
    list.Linear(layer + ".intermediate.dense", body.width, body.inner);
    list.Linear(layer + ".output.dense", body.inner, body.width);
    list.LayerNorm(layer + ".output.LayerNorm", body.width);
  }
  if (has_pooler) list.Linear("pooler.dense", body.width, body.width);
}

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
  const BertBody config = ReadBody(keys, 30'522);
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
    model.program = BertProgramConfig{ProgramOf(config, keys), EncoderHeadOf(kind, keys, model)};
  }
  if (kind == "BertForMultipleChoice") list.Linear("classifier", config.width, 1);
  if (kind == "BertForSequenceClassification" || kind == "BertForTokenClassification") {
    list.Linear("classifier", config.width, keys.Labels());
  }
  if (kind == "BertForQuestionAnswering") list.Linear("qa_outputs", config.width, 2);
}

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
  const BertBody config = ReadBody(keys, is_xlm ? 30'522 : 50'265);
  model.max_positions = config.positions > 2 ? config.positions - 2 : config.positions;  // counted from padding_idx + 1
  if (!keys.Flag("is_decoder", false)) {
    model.program = BertProgramConfig{ProgramOf(config, keys), EncoderHeadOf(kind, keys, model), 1};
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
  DistilBertProgramConfig program;
  program.bert = {vocabulary, width, layers, heads, inner, positions, keys.Share("dropout", 0.1)};
  program.bert.attention_dropout = keys.Share("attention_dropout", 0.1);
  program.bert.qa_dropout = keys.Share("qa_dropout", 0.1);
  program.bert.seq_classif_dropout = keys.Share("seq_classif_dropout", 0.2);
  program.head = EncoderHeadOf(kind, keys, model);
  model.program = program;
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
