// The training tasks of BERT and its kin, by the class of transformers 4.1x for each (..ForSequenceClassification and
// so on): the head behind the encoder, its loss, and the outputs that live until the model's call returns.
//
//   std::unique_ptr<EncoderForTask> model = MakeBert(parameters, config, {.task = EncoderTask::kMaskedLanguage}, {});
//   Tensor loss = model->Loss(ids, EmptyLabels(context, EncoderTask::kMaskedLanguage, batch, tokens));
#ifndef ASHLAR_ESTIMATOR_MODELS_ENCODER_TASK_H_
#define ASHLAR_ESTIMATOR_MODELS_ENCODER_TASK_H_

#include <cstdint>
#include <memory>

#include "estimator/models/attention.h"
#include "estimator/models/bert.h"
#include "estimator/models/distilbert.h"

namespace ashlar::kernels {

enum class EncoderTask : std::uint8_t {
  kNone,  // the bare model; its loss is the mean of all that it returns
  kSequence,
  kTokens,
  kSpan,  // question answering
  kMaskedLanguage,
  kCausalLanguage,
  kPreTraining,
  kNextSentence,
  kChoice,  // one of several; a sequence each
};

struct EncoderHead {
  EncoderTask task = EncoderTask::kNone;
  std::int64_t labels = 2;
  bool ties_decoder = true;  // the language head's weight is the word embeddings'
};

// int64; the second of the span's end, or of the next sentence.
struct TaskLabels {
  Tensor first, second;
};
TaskLabels EmptyLabels(Context& context, EncoderTask task, std::int64_t batch, std::int64_t tokens);

class EncoderForTask {
 public:
  virtual ~EncoderForTask() = default;
  // ids (B, S) int64.
  virtual Tensor Loss(const Tensor& ids, const TaskLabels& labels, const Call& call) const = 0;
  virtual void Forward(const Tensor& ids, const Call& call) const = 0;
  Tensor Loss(const Tensor& ids, const TaskLabels& labels) const { return Loss(ids, labels, {}); }
  void Forward(const Tensor& ids) const { Forward(ids, {}); }
};

std::unique_ptr<EncoderForTask> MakeBert(Parameters& parameters, const BertConfig& config, const EncoderHead& head,
                                         BertModel::Options options);
// RoBERTa and XLM-RoBERTa; options.padding_id is theirs.
std::unique_ptr<EncoderForTask> MakeRoberta(Parameters& parameters, const BertConfig& config, const EncoderHead& head,
                                            BertModel::Options options);
std::unique_ptr<EncoderForTask> MakeDistilBert(Parameters& parameters, const DistilBertConfig& config,
                                               const EncoderHead& head, DistilBertModel::Options options);

// dense, gelu, norm, and the product with a table of the vocabulary.
struct LanguageHead {
  absl::string_view name, decoder_name;
  LinearLayer dense;
  LayerNormLayer norm;
  Tensor decoder, bias;
  Tensor operator()(const Tensor& hidden) const;
};

// Losses over logits, as the classes compute them.
Tensor LanguageLoss(const Tensor& logits, const Tensor& labels);         // (B, S, V), (B, S)
Tensor ShiftedLanguageLoss(const Tensor& logits, const Tensor& labels);  // each next token
Tensor SpanLoss(const Tensor& logits, const TaskLabels& labels);         // (B, S, 2); (B) each

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_ENCODER_TASK_H_
