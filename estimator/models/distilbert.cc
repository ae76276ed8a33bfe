#include "estimator/models/distilbert.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "estimator/models/attention.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/scaled_attention.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/parameters.h"

namespace ashlar::kernels {
namespace {

constexpr double kDistilBertEpsilon = 1e-12;

}  // namespace

DistilBertModel::DistilBertModel(Parameters& parameters, const std::string& prefix, const DistilBertConfig& config,
                                 Options options)
    : context_(parameters.context()), config_(config), options_(options), dtype_(parameters.dtype()) {
  const std::int64_t d = config.dim, f = config.hidden_dim;
  const double deviation = config.initializer_range;
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    return LinearLayer(parameters, absl::StrCat(prefix, name), in, out, deviation);
  };
  const auto norm = [&](const std::string& name) {
    return LayerNormLayer(parameters, absl::StrCat(prefix, name), d, kDistilBertEpsilon);
  };
  embeddings_name_ = context_.Named(prefix + "embeddings");
  word_ = EmbeddingLayer(parameters, prefix + "embeddings.word_embeddings", config.vocab_size, d, deviation);
  position_ = EmbeddingLayer(parameters, prefix + "embeddings.position_embeddings", config.max_position_embeddings, d,
                             deviation);
  embedding_norm_ = norm("embeddings.LayerNorm");
  position_ids_ = Empty(context_, {1, config.max_position_embeddings}, DType::kInt64, Part::kWeights);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(config.max_position_embeddings));
  std::iota(ids.begin(), ids.end(), 0);
  FillIds(position_ids_, ids);
  for (std::int64_t i = 0; i < config.n_layers; ++i) {
    const std::string at = absl::StrCat("transformer.layer.", i, ".");
    const auto named = [&](const char* part) {
      return context_.Named(absl::StrCat(prefix, "transformer.layer.", i, part));
    };
    Layer layer;
    layer.name = named("");
    layer.attention_name = named(".attention");
    layer.ffn_name = named(".ffn");
    layer.query = linear(at + "attention.q_lin", d, d);
    layer.key = linear(at + "attention.k_lin", d, d);
    layer.value = linear(at + "attention.v_lin", d, d);
    layer.out = linear(at + "attention.out_lin", d, d);
    layer.attention_norm = norm(at + "sa_layer_norm");
    layer.up_proj = linear(at + "ffn.lin1", d, f);
    layer.down_proj = linear(at + "ffn.lin2", f, d);
    layer.output_norm = norm(at + "output_layer_norm");
    layers_.push_back(std::move(layer));
  }
}

Tensor DistilBertModel::Embed(const Tensor& ids) const {
  const InModule in(context_, embeddings_name_);
  Tensor words = word_(ids);
  Tensor places = position_(Slice(position_ids_, 1, 0, ids.size(1)));
  Tensor sum = Add(words, places);
  Tensor normed = embedding_norm_(sum);
  sum = std::move(normed);
  Tensor out = Dropout(sum, dropout(config_.dropout));
  Release(sum, words, places);
  return out;
}

Tensor DistilBertModel::Forward(const Tensor& ids, const Call& call) const {
  LayerMask mask{call.mask};
  if (!call.mask.defined() && options_.attention != Attention::kFlash) {
    mask.tensor = Empty(context_, {ids.size(0), ids.size(1)}, DType::kFloat32);
    if (context_.computes()) context_.Do(ops::Fill{mask.tensor.view(), 1});
  }
  const Tensor embedded = Embed(ids);
  if (options_.attention == Attention::kFlash) {
    mask = FlashMask(call);
  } else if (options_.attention == Attention::kSdpa && call.mask.defined()) {
    mask = {ExpandedBias(call.mask, dtype_)};
  } else if (options_.attention == Attention::kSdpa) {  // full batches have none
    LookForPadding(context_, ids.sizes());
    mask = {};
  }
  Tensor hidden = embedded;
  for (const Layer& layer : layers_) {
    if (options_.is_checkpointed && options_.is_training) {
      hidden = Checkpoint({hidden, mask.tensor}, [this, &layer, tokens = mask.tokens](absl::Span<const Tensor> in) {
        return RunLayer(layer, in[0], {in[1], tokens});
      });
    } else {
      hidden = RunLayer(layer, hidden, mask);
    }
  }
  return hidden;
}

Tensor DistilBertModel::AttendSelf(const Layer& layer, const Tensor& x, const Tensor& mask) const {
  const InModule in(context_, layer.attention_name);
  const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2), heads = config_.n_heads;
  const auto by_head = [&](const Tensor& projected) {
    return Transpose(View(projected, {batch, length, heads, width / heads}), 1, 2);
  };
  Tensor query = by_head(layer.query(x));
  Tensor key = by_head(layer.key(x));
  Tensor value = by_head(layer.value(x));
  const std::int64_t head_width = width / heads;
  query = DivScalar(query, std::sqrt(static_cast<double>(head_width)));
  Tensor scores = Matmul(query, Transpose(key, 2, 3));
  Tensor hides = Empty(context_, mask.sizes(), DType::kBool);  // mask == 0
  if (context_.computes()) context_.Do(ops::Fill{hides.view(), 0});
  hides = Expand(View(hides, {batch, 1, 1, length}), scores.sizes());
  scores = MaskedFill(scores, hides, std::numeric_limits<float>::lowest());
  Tensor weights = Softmax(scores);
  weights = Dropout(weights, dropout(config_.attention_dropout));
  Tensor context = Matmul(weights, value);
  context = View(Contiguous(Transpose(context, 1, 2)), {batch, length, width});
  context = layer.out(context);
  Release(hides, query, key, value, scores, weights);
  return context;
}

// The kernels lay their output out by token: contiguous() after the transpose is a view.
Tensor DistilBertModel::AttendFused(const Layer& layer, const Tensor& x, const LayerMask& mask) const {
  const InModule in(context_, layer.attention_name);
  const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2), heads = config_.n_heads;
  const bool is_flash = options_.attention == Attention::kFlash;
  const ScaledAttention call{.dropout_p = dropout(config_.attention_dropout)};
  const auto split_heads = [&](const Tensor& projected) {
    const Tensor split = View(projected, {batch, length, heads, width / heads});
    return is_flash ? split : Transpose(split, 1, 2);
  };
  Tensor query = split_heads(layer.query(x));
  Tensor key = split_heads(layer.key(x));
  Tensor value = split_heads(layer.value(x));
  Tensor context;
  if (is_flash) {
    context = Reshape(FlashForward(query, key, value, mask, call), {batch, length, width});
  } else {
    context = ScaledDotProductAttention(query, key, value, mask.tensor, call);
    context = View(Contiguous(Transpose(context, 1, 2)), {batch, length, width});
  }
  context = layer.out(context);
  Release(query, key, value);
  return context;
}

Tensor DistilBertModel::RunLayer(const Layer& layer, const Tensor& x, const LayerMask& mask) const {
  const InModule in(context_, layer.name);
  Tensor attended =
      options_.attention == Attention::kEager ? AttendSelf(layer, x, mask.tensor) : AttendFused(layer, x, mask);
  Tensor sum = Add(attended, x);
  attended = layer.attention_norm(sum);
  sum.reset();
  Tensor fed;
  {
    const InModule in_ffn(context_, layer.ffn_name);
    fed = layer.up_proj(attended);
    fed = Unary(ops::UnaryKind::kGelu, fed);
    fed = layer.down_proj(fed);
    fed = Dropout(fed, dropout(config_.dropout));
  }
  sum = Add(fed, attended);
  fed = layer.output_norm(sum);
  sum.reset();
  attended.reset();
  return fed;
}

}  // namespace ashlar::kernels
