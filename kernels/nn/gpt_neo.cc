#include "kernels/nn/gpt_neo.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/cast.h"
#include "kernels/autograd/checkpoint.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/causal_mask.h"
#include "kernels/nn/fill.h"
#include "kernels/nn/flash_forward.h"
#include "kernels/nn/gelu_new.h"
#include "kernels/nn/key_cache.h"
#include "kernels/nn/padding_mask.h"

namespace ashlar::kernels {

GptNeo::GptNeo(Parameters& parameters, const GptNeoConfig& config, const Options& options)
    : context_(parameters.context()), config_(config), options_(options) {
  const std::int64_t d = config.width;
  const double deviation = config.initializer_range;
  const std::string prefix = options.head == DecoderHead::kNone ? "" : "transformer.";
  tokens_ = EmbeddingLayer(parameters, prefix + "wte", config.vocabulary, d, deviation);
  positions_ = EmbeddingLayer(parameters, prefix + "wpe", config.positions, d, deviation);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string at = absl::StrCat(prefix, "h.", i, ".");
    const auto linear = [&](const char* name, std::int64_t in, std::int64_t out, bool has_bias) {
      return LinearLayer(parameters, absl::StrCat(at, name), in, out, deviation, has_bias);
    };
    const auto index = static_cast<std::size_t>(i);
    const bool is_local = index < config.is_local.size() && config.is_local[index];
    Layer layer;
    layer.name = context_.Named(absl::StrCat(prefix, "h.", i));
    layer.attention_name = context_.Named(at + "attn.attention");
    layer.mlp_name = context_.Named(at + "mlp");
    layer.norm_attention = LayerNormLayer(parameters, at + "ln_1", d, config.norm_epsilon);
    layer.key = linear("attn.attention.k_proj", d, d, false);
    layer.value = linear("attn.attention.v_proj", d, d, false);
    layer.query = linear("attn.attention.q_proj", d, d, false);
    layer.output = linear("attn.attention.out_proj", d, d, true);
    layer.mask = CausalBuffer(context_, config.positions,  // .to() moves a module's buffers behind its children
                              is_local ? std::optional(config.window) : std::optional<std::int64_t>());
    layer.masked_bias = Empty(context_, {}, DType::kFloat32, Part::kWeights);
    layer.norm_feed_forward = LayerNormLayer(parameters, at + "ln_2", d, config.norm_epsilon);
    layer.raise = linear("mlp.c_fc", d, config.inner, true);
    layer.lower = linear("mlp.c_proj", config.inner, d, true);
    layers_.push_back(std::move(layer));
  }
  final_norm_ = LayerNormLayer(parameters, prefix + "ln_f", d, config.norm_epsilon);
  top_ = DecoderTop(parameters,
                    {.head = options.head,
                     .vocabulary = config.vocabulary,
                     .width = d,
                     .labels = options.labels,
                     .is_tied = config.is_tied,
                     .deviation = deviation,
                     .own_loss = OwnLoss::kInFloat,
                     .transformers = options.transformers},
                    tokens_.weight());
}

// _attn: scores and softmax in float, the weights in the values' dtype.
Tensor GptNeo::AttendEagerly(const Layer& layer, const Tensor& query_in, const Tensor& key_in, const Tensor& value,
                             const Tensor& bias, Tensor& weights) const {
  const Tensor query = Cast(query_in, DType::kFloat32), key = Cast(key_in, DType::kFloat32);
  const std::int64_t length = query.size(2);
  weights = Matmul(query, Transpose(key, -1, -2));
  const Tensor mask = Slice(Slice(layer.mask, 2, 0, length), 3, 0, length);
  const Tensor lowest = ScalarOf(weights, std::numeric_limits<float>::lowest());  // a local of _attn
  weights = WhereOr(mask, weights, lowest);
  if (bias.defined()) weights = Add(weights, Slice(bias, 3, 0, length));
  weights = Softmax(weights);
  weights = Cast(weights, value.dtype());
  weights = Dropout(weights, dropout(config_.attention_dropout));
  return Matmul(weights, value);
}

Tensor GptNeo::Attend(const Layer& layer, const Tensor& hidden, const LayerMask& mask,
                      std::vector<Tensor>* cache) const {
  const InModule in(context_, layer.attention_name);
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const auto by_head = [&](const Tensor& projected) {
    return Permute(View(projected, {batch, length, config_.heads, width / config_.heads}), {0, 2, 1, 3});
  };
  Tensor query = layer.query(hidden);
  Tensor key = layer.key(hidden);
  Tensor value = layer.value(hidden);
  query = by_head(query);
  key = by_head(key);
  value = by_head(value);
  UpdateCache(cache, options_.transformers.cache_joins, key, value);
  Tensor weights, out;
  if (options_.attention == Attention::kFlash) {
    out = FlashForward(Transpose(query, 1, 2), Transpose(key, 1, 2), Transpose(value, 1, 2), mask,
                       {.dropout_p = dropout(config_.attention_dropout), .is_causal = length > 1, .scale = 1});
    out = Reshape(out, {batch, length, width});
  } else {
    out = AttendEagerly(layer, query, key, value, mask.tensor, weights);
    out = View(Contiguous(Permute(out, {0, 2, 1, 3})), {batch, length, width});
  }
  out = layer.output(out);
  out = Dropout(out, dropout(config_.residual_dropout));
  Release(query, key, value, weights);
  return out;
}

Tensor GptNeo::RunLayer(const Layer& layer, const Tensor& hidden, const LayerMask& mask,
                        std::vector<Tensor>* cache) const {
  const InModule in(context_, layer.name);
  Tensor states = layer.norm_attention(hidden);
  Tensor attended = Attend(layer, states, mask, cache);
  states = Add(attended, hidden);
  const Tensor residual = states;
  states = layer.norm_feed_forward(states);
  Tensor fed;
  {
    const InModule in_mlp(context_, layer.mlp_name);
    fed = layer.raise(states);
    fed = GeluNew(fed);
    fed = layer.lower(fed);
    fed = Dropout(fed, dropout(config_.residual_dropout));
  }
  Tensor out = Add(residual, fed);
  Release(attended, fed);
  return out;
}

DecoderOutput GptNeo::Run(const Tensor& ids, const Call& call) const {
  const bool is_checkpointed = options_.is_checkpointed && options_.is_training;
  const std::int64_t length = ids.size(1);
  DecoderOutput out;
  Tensor position_ids;
  if (!options_.transformers.gpt_neo_counts_late) position_ids = CountedPositions(context_, length);
  Tensor words = tokens_(ids);
  if (options_.transformers.gpt_neo_counts_late) position_ids = CountedPositions(context_, length);
  if (is_checkpointed) WantGradient(words);
  LayerMask mask;
  if (options_.attention == Attention::kFlash) {
    mask = FlashMask(call);
  } else if (call.mask.defined()) {
    mask.tensor = options_.transformers.gpt_neo_adds_mask ? CausalBiasOf(call.mask, words.dtype(), /*is_fused=*/false)
                                                          : RowBias(call.mask, words.dtype());
  } else if (options_.transformers.gpt_neo_adds_mask) {
    mask.tensor = CausalBias(context_, length, words.dtype());
  }
  Tensor places = positions_(position_ids);
  Tensor hidden = Add(words, places);
  hidden = Dropout(hidden, dropout(config_.embedding_dropout));
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

Tensor GptNeo::Loss(const Tensor& ids, const Tensor& labels, const Call& call) const {
  return top_.Loss(Run(ids, call), labels, call);
}

void GptNeo::Forward(const Tensor& ids, const Call& call) const { top_.Forward(Run(ids, call), call); }

}  // namespace ashlar::kernels
