#include "estimator/models/bert.h"

#include <cmath>
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

Tensor BufferOfIds(Context& context, std::int64_t length, bool counts) {
  Tensor out = Empty(context, {1, length}, DType::kInt64, Part::kWeights);
  std::vector<std::int64_t> values(static_cast<std::size_t>(length), 0);
  if (counts) std::iota(values.begin(), values.end(), 0);
  FillIds(out, values);
  return out;
}

}  // namespace

BertConfig BertLarge() {
  BertConfig config;
  config.hidden_size = 1024;
  config.num_hidden_layers = 24;
  config.num_attention_heads = 16;
  config.intermediate_size = 4096;
  return config;
}

BertModel::BertModel(Parameters& parameters, const std::string& prefix, const BertConfig& config, Options options)
    : context_(parameters.context()), config_(config), options_(options), dtype_(parameters.dtype()) {
  const std::int64_t d = config.hidden_size, f = config.intermediate_size;
  const double deviation = config.initializer_range;
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    return LinearLayer(parameters, absl::StrCat(prefix, name), in, out, deviation);
  };
  const auto norm = [&](const std::string& name) {
    return LayerNormLayer(parameters, absl::StrCat(prefix, name), d, config.layer_norm_eps);
  };
  const auto embedding = [&](const std::string& name, std::int64_t rows) {
    return EmbeddingLayer(parameters, absl::StrCat(prefix, "embeddings.", name), rows, d, deviation);
  };
  embeddings_name_ = context_.Named(prefix + "embeddings");
  pooler_name_ = context_.Named(prefix + "pooler");
  word_ = embedding("word_embeddings", config.vocab_size);
  position_ = embedding("position_embeddings", config.max_position_embeddings);
  type_ = embedding("token_type_embeddings", config.type_vocab_size);
  embedding_norm_ = norm("embeddings.LayerNorm");
  position_ids_ = BufferOfIds(context_, config.max_position_embeddings, /*counts=*/true);
  type_ids_ = BufferOfIds(context_, config.max_position_embeddings, /*counts=*/false);
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string at = absl::StrCat("encoder.layer.", i, ".");
    const auto named = [&](const char* part) {
      return context_.Named(absl::StrCat(prefix, "encoder.layer.", i, part));
    };
    Layer layer;
    layer.name = named("");
    layer.self_name = named(".attention.self");
    layer.attention_name = named(".attention.output");
    layer.intermediate_name = named(".intermediate");
    layer.output_name = named(".output");
    layer.query = linear(at + "attention.self.query", d, d);
    layer.key = linear(at + "attention.self.key", d, d);
    layer.value = linear(at + "attention.self.value", d, d);
    layer.attention_dense = linear(at + "attention.output.dense", d, d);
    layer.attention_norm = norm(at + "attention.output.LayerNorm");
    layer.intermediate = linear(at + "intermediate.dense", d, f);
    layer.output = linear(at + "output.dense", f, d);
    layer.output_norm = norm(at + "output.LayerNorm");
    layers_.push_back(std::move(layer));
  }
  if (options.has_pooler) pooler_ = linear("pooler.dense", d, d);
}

BertModel::Output BertModel::Forward(const Tensor& ids, const Tensor& given) const {
  Tensor mask, ones;
  mask = Mask(given, ids.size(0), ids.size(1), ones);
  const Tensor position_ids = PositionIds(ids);
  Tensor words = word_(ids);
  if (options_.is_checkpointed && options_.is_training) WantGradient(words);
  Tensor hidden = Embed(words, position_ids);
  words.reset();
  return Encode(hidden, mask);
}

BertModel::Output BertModel::ForwardEmbedded(const Tensor& embedded) const {
  Tensor mask, ones;
  mask = Mask({}, embedded.size(0), embedded.size(1), ones);
  Tensor hidden = Embed(embedded, Slice(position_ids_, 1, 0, embedded.size(1)));
  return Encode(hidden, mask);
}

// create_position_ids_from_input_ids: cumsum(ids != padding) * (ids != padding) + padding.
Tensor BertModel::PositionIds(const Tensor& ids) const {
  const std::int64_t batch = ids.size(0), length = ids.size(1);
  if (!options_.padding_id.has_value()) return Slice(position_ids_, 1, 0, length);
  const InModule in(context_, embeddings_name_);
  const auto make = [&](DType dtype) { return Empty(context_, {batch, length}, dtype); };
  Tensor mask;
  {
    const Tensor differs = make(DType::kBool);
    mask = make(DType::kInt32);
  }
  Tensor sum = make(DType::kInt64);
  Tensor counts = make(DType::kInt32);  // type_as(mask)
  sum.reset();
  Tensor shifted = make(DType::kInt32);  // + past_key_values_length
  counts.reset();
  Tensor product = make(DType::kInt32);
  shifted.reset();
  Tensor wide = make(DType::kInt64);
  Tensor out = make(DType::kInt64);
  Release(wide, product, mask);
  if (context_.computes()) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(batch * length));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = *options_.padding_id + 1 + static_cast<std::int64_t>(i) % length;
    }
    FillIds(out, values);
  }
  return out;
}

Tensor BertModel::Embed(const Tensor& words, const Tensor& position_ids) const {
  const InModule in(context_, embeddings_name_);
  const std::int64_t batch = words.size(0), length = words.size(1);
  const Tensor type_ids = Expand(Slice(type_ids_, 1, 0, length), {batch, length});
  Tensor types = type_(type_ids);
  Tensor sum = Add(words, types);
  Tensor positions = position_(position_ids);
  sum = AddTo(sum, positions);
  Tensor normed = embedding_norm_(sum);
  sum = std::move(normed);
  Tensor out = Dropout(sum, dropout(config_.hidden_dropout_prob));
  Release(sum, types, positions);
  return out;
}

// (1 - mask) * -10000, (B, 1, 1, S).
Tensor BertModel::Mask(const Tensor& given, std::int64_t batch, std::int64_t length, Tensor& ones) const {
  if (given.defined()) return options_.has_sdpa ? ExpandedBias(given, dtype_) : RowBias(given, dtype_);
  ones = Empty(context_, {batch, length}, DType::kFloat32);
  if (context_.computes()) context_.Do(ops::Fill{ones.view(), 1});
  if (options_.has_sdpa) {  // torch.all(mask == 1): then there is none
    LookForPadding(context_, ones.sizes());
    return {};
  }
  return RowBias(ones, dtype_);
}

BertModel::Output BertModel::Encode(const Tensor& embedded, const Tensor& mask) const {
  Tensor hidden = embedded;
  for (const Layer& layer : layers_) {
    if (options_.is_checkpointed && options_.is_training) {
      hidden = Checkpoint({hidden, mask},
                          [this, &layer](absl::Span<const Tensor> in) { return RunLayer(layer, in[0], in[1]); });
    } else {
      hidden = RunLayer(layer, hidden, mask);
    }
  }
  Output out{hidden, {}};
  if (!options_.has_pooler) return out;
  const InModule in(context_, pooler_name_);
  const Tensor first = Select(Whole(hidden, 0), 1, 0);
  const Tensor projected = pooler_(first);
  out.pooled = Unary(ops::UnaryKind::kTanh, projected);
  return out;
}

Tensor BertModel::AttendSelf(const Layer& layer, const Tensor& hidden, const Tensor& mask) const {
  const InModule in(context_, layer.self_name);
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const std::int64_t heads = config_.num_attention_heads;
  const auto by_head = [&](const Tensor& projected) {
    return Permute(View(projected, {batch, length, heads, width / heads}), {0, 2, 1, 3});
  };
  Tensor mixed_query = layer.query(hidden);
  Tensor key = by_head(layer.key(hidden));
  Tensor value = by_head(layer.value(hidden));
  Tensor query = by_head(mixed_query);
  Tensor scores = Matmul(query, Transpose(key, -1, -2));
  const std::int64_t head_width = width / heads;
  scores = DivScalar(scores, std::sqrt(static_cast<double>(head_width)));
  scores = Add(scores, mask);
  Tensor probabilities = Softmax(scores);
  probabilities = Dropout(probabilities, dropout(config_.attention_probs_dropout_prob));
  Tensor context = Matmul(probabilities, value);
  context = Contiguous(Permute(context, {0, 2, 1, 3}));
  Tensor out = View(context, {batch, length, width});
  Release(mixed_query, key, value, query, scores, probabilities, context);
  return out;
}

// The kernels lay their output out by token: the reshape after them is a view.
Tensor BertModel::AttendFused(const Layer& layer, const Tensor& hidden, const Tensor& mask) const {
  const InModule in(context_, layer.self_name);
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const std::int64_t heads = config_.num_attention_heads;
  const auto by_head = [&](const Tensor& projected) {
    return Permute(View(projected, {batch, length, heads, width / heads}), {0, 2, 1, 3});
  };
  Tensor query = by_head(layer.query(hidden));
  Tensor key = by_head(layer.key(hidden));
  Tensor value = by_head(layer.value(hidden));
  Tensor context =
      ScaledDotProductAttention(query, key, value, mask, {.dropout_p = dropout(config_.attention_probs_dropout_prob)});
  context = Transpose(context, 1, 2);
  Tensor out = View(Contiguous(context), {batch, length, width});
  Release(query, key, value, context);
  return out;
}

Tensor BertModel::RunLayer(const Layer& layer, const Tensor& hidden, const Tensor& mask) const {
  const double p = dropout(config_.hidden_dropout_prob);
  const InModule in(context_, layer.name);
  const auto join = [this, p](absl::string_view name, const LinearLayer& dense, const LayerNormLayer& norm,
                              const Tensor& x, const Tensor& residual) {
    const InModule in_output(context_, name);
    Tensor states = dense(x);
    states = Dropout(states, p);
    Tensor sum = Add(states, residual);
    Tensor out = norm(sum);
    sum.reset();
    states.reset();
    return out;
  };
  Tensor context = options_.has_sdpa ? AttendFused(layer, hidden, mask) : AttendSelf(layer, hidden, mask);
  Tensor attended = join(layer.attention_name, layer.attention_dense, layer.attention_norm, context, hidden);
  context.reset();
  Tensor widened = layer.intermediate(attended);
  {
    const InModule in_intermediate(context_, layer.intermediate_name);
    widened = Unary(ops::UnaryKind::kGelu, widened);
  }
  Tensor out = join(layer.output_name, layer.output, layer.output_norm, widened, attended);
  Release(widened, attended);
  return out;
}

BertClassifier::BertClassifier(Parameters& parameters, const BertConfig& config, std::int64_t labels,
                               BertModel::Options options)
    : dropout_(options.is_training ? config.hidden_dropout_prob : 0),
      bert_(parameters, "bert.", config, options),
      classifier_(parameters, "classifier", config.hidden_size, labels, config.initializer_range) {}

Tensor BertClassifier::Logits(const Tensor& ids) const {
  const BertModel::Output out = bert_.Forward(ids);
  const Tensor pooled = Dropout(out.pooled, dropout_);
  return classifier_(pooled);
}

Tensor BertClassifier::Loss(const Tensor& ids, const Tensor& labels) const {
  const BertModel::Output out = bert_.Forward(ids);
  const Tensor pooled = Dropout(out.pooled, dropout_);
  const Tensor logits = classifier_(pooled);
  return CrossEntropy(logits, labels);
}

}  // namespace ashlar::kernels
