#include "analyzer/estimate/families/encoder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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

}  // namespace ashlar::estimate
