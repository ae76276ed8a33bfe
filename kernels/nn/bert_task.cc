// The classes of modeling_bert.py and modeling_roberta.py.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/autograd/loss.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/encoder_task.h"

namespace ashlar::kernels {
namespace {

// What BERT's and RoBERTa's classes have in common.
class BertForTask : public EncoderForTask {
 public:
  BertForTask(Parameters& parameters, const std::string& prefix, const BertConfig& config, const EncoderHead& head,
              BertModel::Options options)
      : head_(head),
        dropout_(options.is_training ? config.hidden_dropout_prob : 0),
        bert_(parameters, head.task == EncoderTask::kNone ? "" : prefix, config, options) {}

  using EncoderForTask::Forward;
  using EncoderForTask::Loss;
  void Forward(const Tensor& ids, const Call& call) const override {
    const BertModel::Output out = bert_.Forward(ids, call.mask);
    Return(out, Logits(out), call);
  }

  Tensor Loss(const Tensor& ids, const TaskLabels& labels, const Call& call) const override {
    const BertModel::Output out = bert_.Forward(ids, call.mask);
    const std::pair<Tensor, Tensor> logits = Logits(out);
    Return(out, logits, call);
    switch (head_.task) {
      case EncoderTask::kNone: {
        const Tensor mean = MeanOfAll(out.hidden);
        return out.pooled.defined() ? Add(mean, MeanOfAll(out.pooled)) : mean;
      }
      case EncoderTask::kSpan:
        return SpanLoss(logits.first, labels);
      case EncoderTask::kCausalLanguage:
        return ShiftedLanguageLoss(logits.first, labels.first);
      case EncoderTask::kPreTraining: {
        const Tensor words = LanguageLoss(logits.first, labels.first);
        return Add(words, LanguageLoss(logits.second, labels.second));
      }
      default:
        return LanguageLoss(logits.first, labels.first);
    }
  }

 protected:
  // The second is the pre-training's next sentence.
  virtual std::pair<Tensor, Tensor> Logits(const BertModel::Output& out) const = 0;

  void Return(const BertModel::Output& out, const std::pair<Tensor, Tensor>& logits, const Call& call) const {
    if (is(EncoderTask::kNone)) {
      call.Return(out.hidden, out.pooled);
    } else {
      call.Return(logits.first, logits.second);
    }
  }
  Tensor Dropped(const Tensor& x) const { return Dropout(x, dropout_); }
  bool is(EncoderTask task) const { return head_.task == task; }

  EncoderHead head_;
  double dropout_;
  BertModel bert_;
  LanguageHead language_;
  LinearLayer classifier_;
};

LanguageHead MakeLanguageHead(Parameters& parameters, const std::string& prefix, const char* dense, const char* norm,
                              const BertConfig& config, const Tensor& tied) {
  const std::int64_t d = config.hidden_size, rows = config.vocab_size;
  const double deviation = config.initializer_range;
  LanguageHead out;
  out.name = parameters.context().Named(absl::StripSuffix(prefix, "."));
  out.decoder_name = parameters.context().Named(prefix + "decoder");
  out.bias = parameters.New(prefix + "bias", {rows}, Init::Zero());
  out.dense = LinearLayer(parameters, prefix + dense, d, d, deviation);
  out.norm = LayerNormLayer(parameters, prefix + norm, d, config.layer_norm_eps);
  out.decoder = tied.defined() ? tied : parameters.New(prefix + "decoder.weight", {rows, d}, Init::Normal(deviation));
  return out;
}

class Bert final : public BertForTask {
 public:
  Bert(Parameters& parameters, const BertConfig& config, const EncoderHead& head, BertModel::Options options)
      : BertForTask(parameters, "bert.", config, head, options) {
    const auto linear = [&](const char* name, std::int64_t out) {
      return LinearLayer(parameters, name, config.hidden_size, out, config.initializer_range);
    };
    if (is(EncoderTask::kMaskedLanguage) || is(EncoderTask::kCausalLanguage) || is(EncoderTask::kPreTraining)) {
      language_ = MakeLanguageHead(parameters, "cls.predictions.", "transform.dense", "transform.LayerNorm", config,
                                   head.ties_decoder ? bert_.word_embeddings() : Tensor());
    }
    if (is(EncoderTask::kPreTraining) || is(EncoderTask::kNextSentence))
      classifier_ = linear("cls.seq_relationship", 2);
    if (is(EncoderTask::kSequence) || is(EncoderTask::kTokens)) classifier_ = linear("classifier", head.labels);
    if (is(EncoderTask::kSpan)) classifier_ = linear("qa_outputs", 2);
    if (is(EncoderTask::kChoice)) classifier_ = linear("classifier", 1);
  }

 private:
  std::pair<Tensor, Tensor> Logits(const BertModel::Output& out) const override {
    switch (head_.task) {
      case EncoderTask::kNone:
        return {};
      case EncoderTask::kChoice: {
        const Tensor dropped = Dropped(out.pooled);
        return {View(classifier_(dropped), {1, -1}), {}};
      }
      case EncoderTask::kSequence:
      case EncoderTask::kTokens: {
        const Tensor dropped = Dropped(is(EncoderTask::kSequence) ? out.pooled : out.hidden);
        return {classifier_(dropped), {}};
      }
      case EncoderTask::kNextSentence:
        return {classifier_(out.pooled), {}};
      case EncoderTask::kSpan:
        return {classifier_(out.hidden), {}};
      case EncoderTask::kMaskedLanguage:
      case EncoderTask::kCausalLanguage:
        return {language_(out.hidden), {}};
      case EncoderTask::kPreTraining: {
        Tensor scores = language_(out.hidden);
        return {scores, classifier_(out.pooled)};
      }
    }
    return {};
  }
};

class Roberta final : public BertForTask {
 public:
  Roberta(Parameters& parameters, const BertConfig& config, const EncoderHead& head, BertModel::Options options)
      : BertForTask(parameters, "roberta.", config, head, options) {
    const auto linear = [&](const char* name, std::int64_t out) {
      return LinearLayer(parameters, name, config.hidden_size, out, config.initializer_range);
    };
    if (is(EncoderTask::kMaskedLanguage) || is(EncoderTask::kCausalLanguage)) {
      language_ = MakeLanguageHead(parameters, "lm_head.", "dense", "layer_norm", config,
                                   head.ties_decoder ? bert_.word_embeddings() : Tensor());
    }
    if (is(EncoderTask::kSequence)) {
      dense_ = linear("classifier.dense", config.hidden_size);
      classifier_ = linear("classifier.out_proj", head.labels);
    }
    if (is(EncoderTask::kTokens)) classifier_ = linear("classifier", head.labels);
    if (is(EncoderTask::kSpan)) classifier_ = linear("qa_outputs", 2);
  }

 private:
  std::pair<Tensor, Tensor> Logits(const BertModel::Output& out) const override {
    switch (head_.task) {
      case EncoderTask::kSequence: {
        Tensor x = Whole(Select(Whole(out.hidden, 0), 1, 0), 1);
        x = Dropped(x);
        x = dense_(x);
        x = Unary(ops::UnaryKind::kTanh, x);
        x = Dropped(x);
        return {classifier_(x), {}};
      }
      case EncoderTask::kTokens: {
        const Tensor dropped = Dropped(out.hidden);
        return {classifier_(dropped), {}};
      }
      case EncoderTask::kSpan:
        return {classifier_(out.hidden), {}};
      case EncoderTask::kMaskedLanguage:
      case EncoderTask::kCausalLanguage:
        return {language_(out.hidden), {}};
      default:
        return {};
    }
  }

  LinearLayer dense_;
};

}  // namespace

std::unique_ptr<EncoderForTask> MakeBert(Parameters& parameters, const BertConfig& config, const EncoderHead& head,
                                         BertModel::Options options) {
  options.has_pooler = head.task == EncoderTask::kNone || head.task == EncoderTask::kSequence ||
                       head.task == EncoderTask::kPreTraining || head.task == EncoderTask::kNextSentence ||
                       head.task == EncoderTask::kChoice;
  return std::make_unique<Bert>(parameters, config, head, options);
}

std::unique_ptr<EncoderForTask> MakeRoberta(Parameters& parameters, const BertConfig& config, const EncoderHead& head,
                                            BertModel::Options options) {
  options.has_pooler = head.task == EncoderTask::kNone;
  return std::make_unique<Roberta>(parameters, config, head, options);
}

}  // namespace ashlar::kernels
