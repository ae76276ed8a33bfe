// The classes of modeling_distilbert.py.
#include "kernels/autograd/loss.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/encoder_task.h"

namespace ashlar::kernels {
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
