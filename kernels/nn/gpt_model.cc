#include "kernels/nn/gpt_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/checkpoint.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/causal_mask.h"
#include "kernels/nn/fill.h"
#include "kernels/nn/gelu_new.h"

namespace ashlar::kernels {
namespace {

DecoderTop::Config TopOf(const GptShape& shape, const GptOptions& options) {
  return {.head = options.head,
          .vocabulary = shape.vocabulary,
          .width = shape.width,
          .labels = options.labels,
          .is_tied = shape.is_tied,
          .deviation = shape.deviation,
          .own_loss = shape.own_loss,
          .transformers = options.transformers};
}

}  // namespace

GptBlock::GptBlock(Parameters& parameters, const GptShape& shape, const std::string& at, absl::string_view attention)
    : context_(parameters.context()),
      shape_(shape),
      at_(at),
      name_(context_.Named(at.substr(0, at.size() - 1))),
      attention_name_(context_.Named(absl::StrCat(at, attention))),
      mlp_name_(context_.Named(at + "mlp")),
      norm_attention_(parameters, at + "ln_1", shape.width, shape.norm_epsilon) {}

void GptBlock::MakeMask(std::optional<std::int64_t> window) {
  mask_ = CausalBuffer(context_, shape_.positions, window);  // .to() moves a module's buffers behind its children
  masked_bias_ = Empty(context_, {}, DType::kFloat32, Part::kWeights);
}

void GptBlock::MakeSecondNorm(Parameters& parameters) {
  norm_feed_forward_ = LayerNormLayer(parameters, at_ + "ln_2", shape_.width, shape_.norm_epsilon);
}

Tensor GptBlock::MaskOf(std::int64_t length) const { return Slice(Slice(mask_, 2, 0, length), 3, 0, length); }

Tensor GptBlock::operator()(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const {
  const InModule in(context_, name_);
  Tensor states = norm_attention_(hidden);
  Tensor attended = Attend(states, mask, cache);
  states = Add(attended, hidden);
  const Tensor residual = states;
  states = norm_feed_forward_(states);
  Tensor fed;
  {
    const InModule in_mlp(context_, mlp_name_);
    fed = UpProj(states);
    fed = GeluNew(fed);
    fed = DownProj(fed);
    fed = Dropout(fed, shape_.feed_forward_dropout);
  }
  states = Add(residual, fed);
  Release(attended, fed);
  return states;
}

GptModel::GptModel(Parameters& parameters, const GptShape& shape, const Options& options, const NewBlock& new_block)
    : context_(parameters.context()), shape_(shape), options_(options) {
  const std::string prefix = options.head == DecoderHead::kNone ? "" : "transformer.";
  tokens_ = EmbeddingLayer(parameters, prefix + "wte", shape.vocabulary, shape.width, shape.deviation);
  positions_ = EmbeddingLayer(parameters, prefix + "wpe", shape.positions, shape.width, shape.deviation);
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    blocks_.push_back(new_block(absl::StrCat(prefix, "h.", i, "."), i));
  }
  final_norm_ = LayerNormLayer(parameters, prefix + "ln_f", shape.width, shape.norm_epsilon);
  top_ = DecoderTop(parameters, TopOf(shape, options), tokens_.weight());
}

Tensor GptModel::PackedMask(const Tensor&) const { return {}; }

DecoderOutput GptModel::Run(const Tensor& ids, const Call& call) const {
  const std::int64_t length = ids.size(1);
  DecoderOutput out;
  Tensor position_ids;
  if (!shape_.counts_late) position_ids = CountedPositions(context_, length);
  Tensor words = tokens_(ids);
  if (shape_.counts_late) position_ids = CountedPositions(context_, length);
  if (is_checkpointed()) WantGradient(words);
  LayerMask mask = MaskOf(words, call);
  Tensor places = positions_(position_ids);
  Tensor hidden = Add(words, places);
  if (!call.mask.defined()) {
    if (Tensor packed = PackedMask(words); packed.defined()) mask.tensor = std::move(packed);
  }
  hidden = Dropout(hidden, shape_.embedding_dropout);
  hidden = RunBlocks(std::move(hidden), mask, out.cache);
  out.hidden = final_norm_(hidden);
  Release(words, position_ids, mask.tensor, places);
  return out;
}

Tensor GptModel::RunBlocks(Tensor hidden, const LayerMask& mask, std::vector<Tensor>& cache) const {
  for (const std::unique_ptr<GptBlock>& block : blocks_) {
    if (is_checkpointed()) {
      hidden =
          Checkpoint({hidden, mask.tensor}, [block = block.get(), tokens = mask.tokens](absl::Span<const Tensor> in) {
            return (*block)(in[0], {in[1], tokens}, nullptr);
          });
    } else {
      hidden = (*block)(hidden, mask, &cache);
    }
  }
  return hidden;
}

Tensor GptModel::Loss(const Tensor& ids, const Tensor& labels, const Call& call) const {
  return top_.Loss(Run(ids, call), labels, call);
}

void GptModel::Forward(const Tensor& ids, const Call& call) const { top_.Forward(Run(ids, call), call); }

}  // namespace ashlar::kernels
