#include "estimator/models/encoder_task.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

// positions.clamp(0, length): a copy; those that are made up lie within.
Tensor Clamped(const Tensor& positions) {
  Tensor out = EmptyLike(positions);
  if (positions.context().computes()) positions.context().Do(ops::Copy{positions.view(), out.view()});
  return out;
}

}  // namespace

TaskLabels EmptyLabels(Context& context, EncoderTask task, std::int64_t batch, std::int64_t tokens) {
  const auto of_samples = [&] { return Empty(context, {batch}, DType::kInt64, Part::kBatch); };
  const auto of_tokens = [&] { return Empty(context, {batch, tokens}, DType::kInt64, Part::kBatch); };
  switch (task) {
    case EncoderTask::kNone:
      return {};
    case EncoderTask::kSequence:
    case EncoderTask::kNextSentence:
      return {of_samples(), {}};
    case EncoderTask::kChoice:
      return {Empty(context, {1}, DType::kInt64, Part::kBatch), {}};
    case EncoderTask::kSpan: {
      const Tensor begin = of_samples();
      return {begin, of_samples()};
    }
    case EncoderTask::kPreTraining: {
      const Tensor words = of_tokens();
      return {words, of_samples()};
    }
    case EncoderTask::kTokens:
    case EncoderTask::kMaskedLanguage:
    case EncoderTask::kCausalLanguage:
      return {of_tokens(), {}};
  }
  return {};
}

Tensor LanguageHead::operator()(const Tensor& hidden) const {
  const InModule in(hidden.context(), name);
  Tensor states = dense(hidden);
  states = Unary(ops::UnaryKind::kGelu, states);
  states = norm(states);
  const InModule in_decoder(hidden.context(), decoder_name);
  return Linear(states, decoder, bias);
}

Tensor LanguageLoss(const Tensor& logits, const Tensor& labels) {
  return CrossEntropy(View(logits, {-1, logits.size(-1)}), View(labels, {-1}));
}

Tensor ShiftedLanguageLoss(const Tensor& logits, const Tensor& labels) {
  const std::int64_t length = labels.size(1);
  const Tensor shifted = Contiguous(Whole(Slice(Whole(logits, 0), 1, 0, length - 1), 2));
  return LanguageLoss(shifted, Contiguous(Slice(labels, 1, 1, length)));
}

Tensor SpanLoss(const Tensor& logits, const TaskLabels& labels) {
  const std::vector<Tensor> parts = Chunk(logits, 2, -1);
  const Tensor begin = Contiguous(Squeeze(parts[0], -1)), end = Contiguous(Squeeze(parts[1], -1));
  const Tensor first = Clamped(labels.first), last = Clamped(labels.second);
  const Tensor begin_loss = CrossEntropy(begin, first), end_loss = CrossEntropy(end, last);
  const Tensor sum = Add(begin_loss, end_loss);
  return DivScalar(sum, 2);
}

// The classes of modeling_bert.py and modeling_roberta.py.

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

// The classes of modeling_distilbert.py.

namespace {

class DistilBert final : public EncoderForTask {
 public:
  DistilBert(Parameters& parameters, const DistilBertConfig& config, const EncoderHead& head,
             DistilBertModel::Options options)
      : head_(head),
        config_(config),
        is_training_(options.is_training),
        model_(parameters, head.task == EncoderTask::kNone ? "" : "distilbert.", config, options) {
    const std::int64_t d = config.dim;
    const auto linear = [&](const char* name, std::int64_t out) {
      return LinearLayer(parameters, name, d, out, config.initializer_range);
    };
    if (head.task == EncoderTask::kMaskedLanguage) {
      language_.decoder_name = parameters.context().Named("vocab_projector");
      language_.dense = linear("vocab_transform", d);
      language_.norm = LayerNormLayer(parameters, "vocab_layer_norm", d, 1e-12);
      language_.decoder = head.ties_decoder ? model_.word_embeddings()
                                            : parameters.New("vocab_projector.weight", {config.vocab_size, d},
                                                             Init::Normal(config.initializer_range));
      language_.bias = parameters.New("vocab_projector.bias", {config.vocab_size}, Init::Zero());
    }
    if (head.task == EncoderTask::kSequence) pre_classifier_ = linear("pre_classifier", d);
    if (head.task == EncoderTask::kSequence || head.task == EncoderTask::kTokens) {
      classifier_ = linear("classifier", head.labels);
    }
    if (head.task == EncoderTask::kSpan) classifier_ = linear("qa_outputs", 2);
  }

  using EncoderForTask::Forward;
  using EncoderForTask::Loss;
  void Forward(const Tensor& ids, const Call& call) const override {
    const Tensor hidden = model_.Forward(ids, call);
    call.Return(head_.task == EncoderTask::kNone ? hidden : Logits(hidden));
  }

  Tensor Loss(const Tensor& ids, const TaskLabels& labels, const Call& call) const override {
    const Tensor hidden = model_.Forward(ids, call);
    if (head_.task == EncoderTask::kNone) {
      call.Return(hidden);
      return MeanOfAll(hidden);
    }
    const Tensor logits = Logits(hidden);
    call.Return(logits);
    return head_.task == EncoderTask::kSpan ? SpanLoss(logits, labels) : LanguageLoss(logits, labels.first);
  }

 private:
  Tensor Logits(const Tensor& hidden) const {
    switch (head_.task) {
      case EncoderTask::kSequence: {
        Tensor pooled = Select(Whole(hidden, 0), 1, 0);
        pooled = pre_classifier_(pooled);
        pooled = Unary(ops::UnaryKind::kRelu, pooled);
        pooled = Dropped(pooled, config_.seq_classif_dropout);
        return classifier_(pooled);
      }
      case EncoderTask::kTokens: {
        const Tensor dropped = Dropped(hidden, config_.dropout);
        return classifier_(dropped);
      }
      case EncoderTask::kSpan: {
        const Tensor dropped = Dropped(hidden, config_.qa_dropout);
        return classifier_(dropped);
      }
      case EncoderTask::kMaskedLanguage:
        return language_(hidden);
      default:
        return {};
    }
  }
  Tensor Dropped(const Tensor& x, double p) const { return Dropout(x, is_training_ ? p : 0); }

  EncoderHead head_;
  DistilBertConfig config_;
  bool is_training_;
  DistilBertModel model_;
  LanguageHead language_;
  LinearLayer pre_classifier_, classifier_;
};

}  // namespace

std::unique_ptr<EncoderForTask> MakeDistilBert(Parameters& parameters, const DistilBertConfig& config,
                                               const EncoderHead& head, DistilBertModel::Options options) {
  return std::make_unique<DistilBert>(parameters, config, head, options);
}

}  // namespace ashlar::kernels
