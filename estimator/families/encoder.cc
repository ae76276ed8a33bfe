#include "estimator/families/encoder.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "estimator/families/families.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Empty;
using kernels::EncoderTask;
using kernels::Part;
using kernels::Tensor;

class EncoderProgram final : public Program {
 public:
  EncoderProgram(Context& context, EncoderTask task, std::unique_ptr<kernels::EncoderForTask> model)
      : context_(context), task_(task), model_(std::move(model)) {}
  Tensor Loss(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids(shape), mask = MaskOf(context_, shape);
    const kernels::TaskLabels labels = kernels::EmptyLabels(context_, task_, shape.batch, shape.tokens);
    batch_ = {ids, mask, labels.first, labels.second};
    return model_->Loss(ids, labels, {mask, outputs, shape.real_tokens});
  }
  void Forward(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids(shape);
    model_->Forward(ids, {MaskOf(context_, shape), outputs, shape.real_tokens});
  }

 private:
  Tensor Ids(const BatchShape& shape) {
    return Empty(context_, {shape.batch, shape.tokens}, DType::kInt64, Part::kBatch);
  }
  Context& context_;
  EncoderTask task_;
  std::unique_ptr<kernels::EncoderForTask> model_;
};

class BertMaker final : public ProgramMaker {
 public:
  BertMaker(const kernels::BertConfig& config, const kernels::EncoderHead& head, std::optional<std::int64_t> padding_id)
      : config_(config), head_(head), padding_id_(padding_id) {}

  std::unique_ptr<Program> Make(kernels::Parameters& parameters, const DryRunOptions& options) const override {
    const auto make = padding_id_.has_value() ? kernels::MakeRoberta : kernels::MakeBert;
    return MakeEncoderProgram(parameters.context(), head_.task,
                              make(parameters, config_, head_,
                                   {.is_checkpointed = options.is_checkpointed,
                                    .is_training = options.is_training,
                                    .has_sdpa = options.attention == kernels::Attention::kSdpa,
                                    .padding_id = padding_id_}));
  }
  double WidestTensor(const DryRunOptions& options) const override {
    return WidestOfEncoder(
        {config_.num_attention_heads, config_.intermediate_size, config_.hidden_size, config_.vocab_size}, head_.task,
        options);
  }
  std::string WhyNot(const DryRunOptions& options) const override {
    if (options.attention != kernels::Attention::kFlash) return {};
    return absl::StrCat(padding_id_.has_value() ? "RoBERTa" : "BERT",
                        " has no flash_attn in the transformers followed here: --attention sdpa");
  }
  std::optional<kernels::Attention> DefaultAttention(const kernels::Transformers& versions) const override {
    const bool has_sdpa = padding_id_.has_value() ? versions.roberta_has_sdpa : versions.bert_has_sdpa;
    return has_sdpa ? kernels::Attention::kSdpa : kernels::Attention::kEager;
  }
  bool is_trained_by_mean() const override { return head_.task == EncoderTask::kNone; }

 private:
  kernels::BertConfig config_;
  kernels::EncoderHead head_;
  std::optional<std::int64_t> padding_id_;
};

// The keys once more, as the kernels take them.
kernels::BertConfig ConfigOf(const BertBody& body, ConfigKeys& keys) {
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

}  // namespace

BertBody ReadBertBody(ConfigKeys& keys, std::int64_t vocabulary) {
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

std::shared_ptr<const ProgramMaker> MakeBertMaker(const BertBody& body, absl::string_view kind,
                                                  std::optional<std::int64_t> padding_id, ConfigKeys& keys,
                                                  Model& model) {
  const kernels::BertConfig config = ConfigOf(body, keys);
  return std::make_shared<BertMaker>(config, EncoderHeadOf(kind, keys, model), padding_id);
}

std::unique_ptr<Program> MakeEncoderProgram(Context& context, EncoderTask task,
                                            std::unique_ptr<kernels::EncoderForTask> model) {
  return std::make_unique<EncoderProgram>(context, task, std::move(model));
}

double WidestOfEncoder(const EncoderWidths& of, EncoderTask task, const DryRunOptions& options) {
  const bool has_logits =
      task == EncoderTask::kMaskedLanguage || task == EncoderTask::kCausalLanguage || task == EncoderTask::kPreTraining;
  return std::max(static_cast<double>(of.heads) * static_cast<double>(options.tokens),
                  static_cast<double>(std::max({of.inner, of.width, has_logits ? of.vocabulary : 0})));
}

// bert.

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

// roberta and xlm-roberta.

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

// distilbert.

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
