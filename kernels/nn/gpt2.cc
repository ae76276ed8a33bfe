#include "kernels/nn/gpt2.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/cast.h"
#include "kernels/autograd/checkpoint.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/scaled_attention.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/causal_mask.h"
#include "kernels/nn/fill.h"
#include "kernels/nn/flash_forward.h"
#include "kernels/nn/gelu_new.h"
#include "kernels/nn/key_cache.h"
#include "kernels/nn/padding_mask.h"

namespace ashlar::kernels {
Tensor Gpt2::Projection::operator()(const Tensor& x) const {
  const InModule in(x.context(), name);
  Dims sizes = x.sizes();
  sizes.back() = weight.size(1);
  return View(Addmm(bias, View(x, {-1, x.size(-1)}), weight), sizes);
}

Gpt2::Gpt2(Parameters& parameters, const Gpt2Config& config, Options options)
    : context_(parameters.context()), config_(config), options_(options) {
  const std::int64_t d = config.n_embd;
  const std::int64_t inner = config.n_inner == 0 ? 4 * d : config.n_inner;
  const double deviation = config.initializer_range;
  const std::string prefix = options.head == DecoderHead::kNone ? "" : "transformer.";
  tokens_ = EmbeddingLayer(parameters, prefix + "wte", config.vocab_size, d, deviation);
  positions_ = EmbeddingLayer(parameters, prefix + "wpe", config.n_positions, d, deviation);
  for (std::int64_t i = 0; i < config.n_layer; ++i) {
    const std::string at = absl::StrCat(prefix, "h.", i, ".");
    const auto projection = [&](absl::string_view name, std::int64_t in, std::int64_t out) {
      return Projection{context_.Named(absl::StrCat(at, name)),
                        parameters.New(absl::StrCat(at, name, ".weight"), {in, out}, Init::Normal(deviation)),
                        parameters.New(absl::StrCat(at, name, ".bias"), {out}, Init::Zero())};
    };
    Layer layer;
    layer.name = context_.Named(absl::StrCat(prefix, "h.", i));
    layer.attention_name = context_.Named(at + "attn");
    layer.mlp_name = context_.Named(at + "mlp");
    layer.norm_attention = LayerNormLayer(parameters, at + "ln_1", d, config.layer_norm_epsilon);
    layer.attention = projection("attn.c_attn", d, 3 * d);
    layer.attention_out = projection("attn.c_proj", d, d);
    layer.mask = CausalBuffer(context_, config.n_positions);  // .to() moves a module's buffers behind its children
    layer.masked_bias = Empty(context_, {}, DType::kFloat32, Part::kWeights);
    layer.norm_mlp = LayerNormLayer(parameters, at + "ln_2", d, config.layer_norm_epsilon);
    layer.mlp = projection("mlp.c_fc", d, inner);
    layer.mlp_out = projection("mlp.c_proj", inner, d);
    layers_.push_back(std::move(layer));
  }
  final_norm_ = LayerNormLayer(parameters, prefix + "ln_f", d, config.layer_norm_epsilon);
  top_ = DecoderTop(parameters,
                    {.head = options.head,
                     .vocabulary = config.vocab_size,
                     .width = d,
                     .labels = options.labels,
                     .is_tied = config.is_tied,
                     .deviation = deviation,
                     .own_loss = OwnLoss::kAsTheyAre,
                     .transformers = options.transformers},
                    tokens_.weight());
}

Tensor Gpt2::AttendEagerly(const Layer& layer, const Tensor& query, const Tensor& key, const Tensor& value,
                           const Tensor& bias, Tensor& weights) const {
  const std::int64_t length = query.size(2);
  weights = Matmul(query, Transpose(key, -1, -2));
  {
    const Tensor divisor = Empty(context_, {}, weights.dtype());  // torch.full([], ...)
    if (context_.computes()) context_.Do(ops::Fill{divisor.view(), std::sqrt(static_cast<double>(value.size(-1)))});
    weights = Div(weights, divisor);
  }
  const Tensor mask = Slice(Slice(layer.mask, 2, 0, length), 3, 0, length);
  const Tensor lowest = ScalarOf(weights, std::numeric_limits<float>::lowest());  // a local of _attn
  weights = WhereOr(mask, weights, lowest);
  if (bias.defined()) weights = Add(weights, bias);
  weights = Softmax(weights);
  weights = Cast(weights, value.dtype());
  weights = Dropout(weights, dropout(config_.attn_pdrop));
  const Tensor out = Matmul(weights, value);
  return Contiguous(Permute(out, {0, 2, 1, 3}));
}

Tensor Gpt2::AttendFused(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
                         const LayerMask& mask) const {
  const double p = dropout(config_.attn_pdrop);
  const bool is_causal = query_in.size(2) > 1;
  if (options_.attention == Attention::kFlash) {
    return FlashForward(Transpose(query_in, 1, 2), Transpose(key_in, 1, 2), Transpose(value_in, 1, 2), mask,
                        {.dropout_p = p, .is_causal = is_causal});
  }
  Tensor query = query_in, key = key_in, value = value_in;
  if (options_.transformers.sdpa_copies_inputs) {
    query = Contiguous(query);
    key = Contiguous(key);
    value = Contiguous(value);
  }
  const Tensor out = ScaledDotProductAttention(query, key, value, mask.tensor,
                                               {.dropout_p = p, .is_causal = is_causal && !mask.tensor.defined()});
  return Contiguous(Transpose(out, 1, 2));
}

Tensor Gpt2::Attend(const Layer& layer, const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const {
  const InModule in(context_, layer.attention_name);
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const std::int64_t heads = config_.n_head, depth = width / heads;
  std::vector<Tensor> parts;
  {
    const Tensor packed = layer.attention(hidden);
    parts = Chunk(packed, 3, 2);
  }
  for (Tensor& part : parts) part = Permute(View(part, {batch, length, heads, depth}), {0, 2, 1, 3});
  UpdateCache(cache, options_.transformers.cache_joins, parts[1], parts[2]);
  Tensor weights;
  Tensor out = options_.attention == Attention::kEager
                   ? AttendEagerly(layer, parts[0], parts[1], parts[2], mask.tensor, weights)
                   : AttendFused(parts[0], parts[1], parts[2], mask);
  out = Reshape(out, {batch, length, width});
  out = layer.attention_out(out);
  out = Dropout(out, dropout(config_.resid_pdrop));
  parts.clear();
  weights.reset();
  return out;
}

Tensor Gpt2::RunLayer(const Layer& layer, const Tensor& hidden, const LayerMask& mask,
                      std::vector<Tensor>* cache) const {
  const InModule in(context_, layer.name);
  Tensor states = layer.norm_attention(hidden);
  Tensor attended = Attend(layer, states, mask, cache);
  states = Add(attended, hidden);
  const Tensor residual = states;
  states = layer.norm_mlp(states);
  Tensor fed;
  {
    const InModule in_mlp(context_, layer.mlp_name);
    fed = layer.mlp(states);
    fed = GeluNew(fed);
    fed = layer.mlp_out(fed);
    fed = Dropout(fed, dropout(config_.resid_pdrop));
  }
  states = Add(residual, fed);
  Release(attended, fed);
  return states;
}

DecoderOutput Gpt2::Run(const Tensor& ids, const Call& call) const {
  const bool is_checkpointed = options_.is_checkpointed && options_.is_training;
  const std::int64_t length = ids.size(1);
  DecoderOutput out;
  Tensor position_ids;
  if (!options_.transformers.gpt2_counts_late) position_ids = CountedPositions(context_, length);
  Tensor words = tokens_(ids);
  if (options_.transformers.gpt2_counts_late) position_ids = CountedPositions(context_, length);
  if (options_.is_checkpointed && options_.is_training) WantGradient(words);
  LayerMask mask;
  if (options_.attention == Attention::kFlash) {
    mask = FlashMask(call);
  } else if (call.mask.defined()) {
    mask.tensor = options_.attention == Attention::kEager ? RowBias(call.mask, words.dtype())
                                                          : CausalBiasOf(call.mask, words.dtype(), /*is_fused=*/true);
  }
  Tensor places = positions_(position_ids);
  Tensor hidden = Add(words, places);
  if (is_checkpointed && options_.transformers.packs_sequences && !call.mask.defined()) {
    if (options_.attention == Attention::kSdpa) mask.tensor = PackedCausalMask(context_, ids.size(0), length);
    if (options_.attention == Attention::kEager) {
      mask.tensor = PackedCausalBias(context_, ids.size(0), length, words.dtype());
    }
  }
  hidden = Dropout(hidden, dropout(config_.embd_pdrop));
  for (const Layer& layer : layers_) {
    if (is_checkpointed) {
      hidden = Checkpoint({hidden, mask.tensor}, [this, &layer, tokens = mask.tokens](absl::Span<const Tensor> in) {
        return RunLayer(layer, in[0], {in[1], tokens}, nullptr);
      });
    } else {
      hidden = RunLayer(layer, hidden, mask, &out.cache);
    }
  }
  out.hidden = final_norm_(hidden);
  Release(words, position_ids, mask.tensor, places);
  return out;
}

Tensor Gpt2::Loss(const Tensor& ids, const Tensor& labels, const Call& call) const {
  return top_.Loss(Run(ids, call), labels, call);
}

void Gpt2::Forward(const Tensor& ids, const Call& call) const { top_.Forward(Run(ids, call), call); }

}  // namespace ashlar::kernels
