#include "estimator/models/decoder_head.h"

#include <vector>

#include "kernels/autograd/index.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/parameters.h"

namespace ashlar::kernels {
namespace {

// nn.functional.pad(labels, (0, 1), value=-100): the last token has nothing to say.
Tensor PaddedLabels(const Tensor& labels) {
  Context& context = labels.context();
  const std::int64_t batch = labels.size(0), length = labels.size(1);
  const Tensor padded = Empty(context, {batch, length + 1}, DType::kInt64);
  if (context.computes()) {
    context.Do(ops::Fill{padded.view(), static_cast<double>(ops::kIgnoreIndex)});
    context.Do(ops::Copy{labels.view(), Alias(padded, {labels.sizes(), padded.strides()}, 0).view()});
  }
  return padded;
}

// `logits` end with the function's frame, before its labels do.
Tensor NextTokenLoss(Tensor logits, const Tensor& labels, bool copies_logits) {
  if (!copies_logits) {
    const Tensor padded = PaddedLabels(labels), shifted = Contiguous(Slice(padded, 1, 1, padded.size(1)));
    Tensor loss = CrossEntropy(View(logits, {-1, logits.size(-1)}), View(shifted, {-1}));
    logits.reset();
    return loss;
  }
  const std::int64_t length = logits.size(1);
  const Tensor shifted = Contiguous(Whole(Slice(logits, 1, 0, length - 1), 2));
  const Tensor next = Contiguous(Slice(labels, 1, 1, length));
  return CrossEntropy(View(shifted, {-1, shifted.size(-1)}), View(next, {-1}));
}

// logits (B, S, C): those of each sequence's last token, (B, C).
Tensor LastOfEach(const Tensor& logits) {
  Context& context = logits.context();
  const std::int64_t batch = logits.size(0), length = logits.size(1);
  const Tensor rows = Empty(context, {batch}, DType::kInt64);
  std::vector<std::int64_t> last;
  for (std::int64_t i = 0; i < batch; ++i) last.push_back((i + 1) * length - 1);
  FillIds(rows, last);
  return IndexRows(View(logits, {batch * length, logits.size(-1)}), rows);
}

}  // namespace

DecoderTop::DecoderTop(Parameters& parameters, const Config& config, const Tensor& embedding) : config_(config) {
  const Init init = Init::Normal(config.deviation);
  if (config.head == DecoderHead::kClassifier) {
    name_ = "score";
    weight_ = parameters.New("score.weight", {config.labels, config.width}, init);
  } else if (config.head == DecoderHead::kLanguageModel) {
    name_ = "lm_head";
    weight_ = config.is_tied ? embedding : parameters.New("lm_head.weight", {config.vocabulary, config.width}, init);
  }
}

Tensor DecoderTop::Logits(const Tensor& hidden) const {
  const InModule in(hidden.context(), name_);
  const Tensor logits = Linear(hidden, weight_, {});
  const bool widens = config_.head == DecoderHead::kLanguageModel && config_.own_loss == OwnLoss::kFloat &&
                      config_.transformers.casts_logits_always;
  return widens ? Cast(logits, DType::kFloat32) : logits;
}

void DecoderTop::Forward(const DecoderOutput& output, const Call& call) const {
  if (config_.head == DecoderHead::kNone) {
    call.Return(output.hidden);
  } else {
    const Tensor logits = Logits(output.hidden);
    call.Return(config_.head == DecoderHead::kClassifier ? LastOfEach(logits) : logits);
  }
  call.ReturnTuple(output.cache);
}

// The hidden states end with the call, then what it returned: logits, and the layers' keys and values from the last on.
Tensor DecoderTop::Loss(DecoderOutput output, const Tensor& labels, const Call& call) const {
  Tensor returned;
  Tensor loss = LossOf(output.hidden, labels, call, returned);
  call.ReturnTuple(output.cache);
  Release(output.hidden, returned);
  for (std::size_t i = output.cache.size(); i >= 2; i -= 2) Release(output.cache[i - 2], output.cache[i - 1]);
  return loss;
}

Tensor DecoderTop::LossOf(const Tensor& hidden, const Tensor& labels, const Call& call, Tensor& returned) const {
  if (config_.head == DecoderHead::kNone) {
    call.Return(hidden);
    return MeanOfAll(hidden);
  }
  Tensor logits = Logits(hidden);
  if (config_.head == DecoderHead::kClassifier) {
    const Tensor pooled = LastOfEach(logits);
    call.Return(pooled);
    return CrossEntropy(pooled, labels);
  }
  call.Return(logits);
  if (config_.transformers.loss_is_function) {  // which casts for itself: its caller holds the narrow ones
    returned = logits;
    return NextTokenLoss(Cast(logits, DType::kFloat32), labels, config_.transformers.loss_copies_logits);
  }
  if (config_.own_loss != OwnLoss::kAsTheyAre) logits = Cast(logits, DType::kFloat32);
  return NextTokenLoss(logits, labels, config_.transformers.loss_copies_logits);
}

}  // namespace ashlar::kernels
