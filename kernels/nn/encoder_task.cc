#include "kernels/nn/encoder_task.h"

#include <vector>

#include "kernels/autograd/loss.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/pointwise.h"
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

}  // namespace ashlar::kernels
