#include "estimator/models/decoder.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "estimator/models/attention.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/scaled_attention.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

// Position s turns pair i by s theta^(-2i / D).
void FillTables(const Tensor& cosines, const Tensor& sines, double theta) {
  Context& context = cosines.context();
  if (!context.computes()) return;
  const std::int64_t length = cosines.size(1), width = cosines.size(2), half = width / 2;
  std::vector<float> of_cosines, of_sines;
  for (std::int64_t s = 0; s < length; ++s) {
    for (std::int64_t i = 0; i < width; ++i) {
      const double turn = std::pow(theta, -static_cast<double>(i % half) / static_cast<double>(half));
      of_cosines.push_back(static_cast<float>(std::cos(static_cast<double>(s) * turn)));
      of_sines.push_back(static_cast<float>(std::sin(static_cast<double>(s) * turn)));
    }
  }
  context.CopyBytes(cosines.view().data, of_cosines.data(), of_cosines.size() * sizeof(float));
  context.CopyBytes(sines.view().data, of_sines.data(), of_sines.size() * sizeof(float));
}

// cat((-x2, x1)) of the halves.
Tensor RotateHalf(const Tensor& x) {
  const std::int64_t width = x.size(-1);
  Tensor first = Slice(x, -1, 0, width / 2);
  Tensor second = Slice(x, -1, width / 2, width);
  const std::array<Tensor, 2> parts = {Neg(second), first};
  return Cat(parts, -1);
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(Context& context, std::int64_t head_width, double theta, bool scales)
    : theta_(theta), scales_(scales), frequencies_(Empty(context, {head_width / 2}, DType::kFloat32, Part::kWeights)) {
  if (context.computes()) context.Do(ops::Fill{frequencies_.view(), 1});  // the tables are filled by themselves
}

RotaryTables RotaryEmbedding::operator()(const Tensor& positions, DType dtype) const {
  Context& context = positions.context();
  const NoGrad no_grad(context);
  const Autocast none(context, false, DType::kFloat16);
  const std::int64_t half = frequencies_.elements();
  Tensor by_position = Cast(View(positions, {1, 1, -1}), DType::kFloat32);
  Tensor turns = Matmul(View(frequencies_, {1, half, 1}), by_position);
  Tensor both;
  {
    const std::array<Tensor, 2> twice = {Transpose(turns, 1, 2), Transpose(turns, 1, 2)};
    both = Cat(twice, -1);
  }
  const auto table_of = [&](const Tensor& of_turns) {
    const Tensor table = EmptyLike(of_turns);
    return scales_ ? EmptyLike(table) : table;  // filled at once
  };
  const Tensor cosines = table_of(both), sines = table_of(both);
  FillTables(cosines, sines, theta_);
  RotaryTables out;
  out.cosines = Cast(cosines, dtype);
  out.sines = Cast(sines, dtype);
  Release(by_position, turns, both);
  return out;
}

Tensor ApplyRotary(const Tensor& x, const RotaryTables& tables) {
  const Tensor cosines = Unsqueeze(tables.cosines, 1), sines = Unsqueeze(tables.sines, 1);
  Tensor straight = Mul(x, cosines);
  Tensor turned;
  {
    const Tensor half = RotateHalf(x);
    turned = Mul(half, sines);
  }
  Tensor out = Add(straight, turned);
  Release(straight, turned);
  return out;
}

namespace {

using ops::UnaryKind;

Tensor MeanOfSquares(const Tensor& x) {
  const Tensor square = Square(x);
  return Mean(square, -1, /*keeps_dim=*/true);
}

}  // namespace

Tensor DecoderModel::Norm::operator()(const Tensor& x) const {
  const InModule in(x.context(), name);
  Tensor wide = Cast(x, DType::kFloat32);
  Tensor variance = MeanOfSquares(wide);
  Tensor shifted = AddScalar(variance, epsilon);
  if (adds_one) variance.reset();  // no name of gemma's
  Tensor scale = Unary(UnaryKind::kRsqrt, shifted);
  shifted.reset();
  Tensor normalized = Mul(wide, scale);
  Release(scale, wide);
  if (!adds_one) {
    Tensor narrow = Cast(normalized, x.dtype());
    Tensor out = Mul(weight, narrow);
    Release(narrow, normalized, variance);
    return out;
  }
  const Tensor factor = AddScalar(Cast(weight, DType::kFloat32), 1);
  normalized = Mul(normalized, factor);
  return Cast(normalized, x.dtype());
}

DecoderModel::Norm DecoderModel::NewNorm(Parameters& parameters, const std::string& name) const {
  const bool adds_one = config_.family == DecoderFamily::kGemma;
  return {context_.Named(name),
          parameters.New(name + ".weight", {config_.hidden_size}, adds_one ? Init::Zero() : Init::One()),
          config_.rms_norm_eps, adds_one};
}

DecoderModel::Layer DecoderModel::NewLayer(Parameters& parameters, const std::string& name) const {
  const std::int64_t width = config_.hidden_size, queries = config_.num_attention_heads * config_.head_dim;
  const std::int64_t keys = config_.num_key_value_heads * config_.head_dim;
  const auto linear = [&](const char* part, std::int64_t in, std::int64_t out, bool has_bias) {
    return LinearLayer(parameters, absl::StrCat(name, part), in, out, config_.initializer_range, has_bias);
  };
  Layer out;
  out.name = context_.Named(name);
  out.attention_name = context_.Named(name + ".self_attn");
  out.mlp_name = context_.Named(name + ".mlp");
  out.query = linear(".self_attn.q_proj", width, queries, config_.has_input_bias);
  out.key = linear(".self_attn.k_proj", width, keys, config_.has_input_bias);
  out.value = linear(".self_attn.v_proj", width, keys, config_.has_input_bias);
  out.output = linear(".self_attn.o_proj", queries, width, config_.has_output_bias);
  if (!rotates_once())
    out.rotary = RotaryEmbedding(context_, config_.head_dim, config_.rope_theta, options_.transformers.rotary_scales);
  out.gate = linear(".mlp.gate_proj", width, config_.intermediate_size, config_.has_mlp_bias);
  out.up = linear(".mlp.up_proj", width, config_.intermediate_size, config_.has_mlp_bias);
  out.down = linear(".mlp.down_proj", config_.intermediate_size, width, config_.has_mlp_bias);
  out.norm_attention = NewNorm(parameters, name + ".input_layernorm");
  out.norm_feed_forward = NewNorm(parameters, name + ".post_attention_layernorm");
  return out;
}

DecoderModel::DecoderModel(Parameters& parameters, const DecoderConfig& config, const Options& options)
    : context_(parameters.context()), config_(config), options_(options) {
  const std::string prefix = options.head == DecoderHead::kNone ? "" : "model.";
  tokens_ = EmbeddingLayer(parameters, prefix + "embed_tokens", config.vocab_size, config.hidden_size,
                           config.initializer_range);
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    layers_.push_back(NewLayer(parameters, absl::StrCat(prefix, "layers.", i)));
  }
  final_norm_ = NewNorm(parameters, prefix + "norm");
  if (rotates_once())
    rotary_ = RotaryEmbedding(context_, config.head_dim, config.rope_theta, options.transformers.rotary_scales);
  top_ = DecoderTop(parameters,
                    {.head = options.head,
                     .vocabulary = config.vocab_size,
                     .width = config.hidden_size,
                     .labels = options.labels,
                     .is_tied = config.tie_word_embeddings,
                     .deviation = config.initializer_range,
                     .own_loss = OwnLoss::kFloat,
                     .transformers = options.transformers},
                    tokens_.weight());
}

bool DecoderModel::rotates_once() const {
  return config_.family == DecoderFamily::kLlama ? options_.transformers.llama_rotates_once
                                                 : options_.transformers.all_rotate_once;
}

Tensor DecoderModel::RepeatKeys(const Tensor& x) const {
  const std::int64_t groups = config_.num_attention_heads / config_.num_key_value_heads;
  if (groups == 1) return x;
  const std::int64_t batch = x.size(0), length = x.size(2), width = x.size(3);
  const Tensor indexed = Whole(Whole(Unsqueeze(Whole(Whole(x, 0), 1), 2), 3), 4);  // x[:, :, None, :, :]
  const Tensor expanded = Expand(indexed, {batch, config_.num_key_value_heads, groups, length, width});
  return Reshape(expanded, {batch, config_.num_attention_heads, length, width});
}

// (B, H, S, D) to (B, S, H, D).
Tensor DecoderModel::AttendEagerly(const Tensor& query, Tensor& key_in, Tensor& value_in, const Tensor& mask,
                                   Tensor& held) const {
  const Tensor key = RepeatKeys(key_in), value = RepeatKeys(value_in);
  if (!options_.transformers.attention_is_function) {
    key_in = key;
    value_in = value;
  }
  Tensor weights = Matmul(query, Transpose(key, 2, 3));
  weights = MulScalar(weights, 1 / std::sqrt(static_cast<double>(config_.head_dim)));
  weights = Add(weights, Slice(mask, 3, 0, key.size(2)));
  weights = SoftmaxInFloat(weights);
  weights = Cast(weights, query.dtype());
  weights = Dropout(weights, dropout());
  Tensor out = Matmul(weights, value);
  out = Contiguous(Transpose(out, 1, 2));
  held = weights;
  return out;
}

Tensor DecoderModel::AttendFused(Tensor& query_in, Tensor& key_in, Tensor& value_in, const Tensor& mask_in) const {
  const bool shares_keys = options_.transformers.sdpa_shares_keys && !mask_in.defined();
  Tensor query = query_in, key = shares_keys ? key_in : RepeatKeys(key_in);
  Tensor value = shares_keys ? value_in : RepeatKeys(value_in);
  const Tensor mask = mask_in.defined() ? Slice(mask_in, 3, 0, key.size(2)) : mask_in;
  const bool is_function = options_.transformers.attention_is_function;
  if (options_.transformers.sdpa_copies_inputs || (!is_function && mask.defined())) {
    query = Contiguous(query);
    key = Contiguous(key);
    value = Contiguous(value);
  }
  if (!is_function) {
    query_in = query;
    key_in = key;
    value_in = value;
  }
  const bool is_causal = !mask.defined() && query.size(2) > 1;
  const Tensor out =
      ScaledDotProductAttention(query, key, value, mask, {.dropout_p = dropout(), .is_causal = is_causal});
  return Contiguous(Transpose(out, 1, 2));
}

Tensor DecoderModel::AttendFlash(const Tensor& query, const Tensor& key, const Tensor& value,
                                 const LayerMask& mask) const {
  return FlashForward(Transpose(query, 1, 2), Transpose(key, 1, 2), Transpose(value, 1, 2), mask,
                      {.dropout_p = dropout(), .is_causal = query.size(2) > 1});
}

Tensor DecoderModel::Attend(const Layer& layer, const Tensor& hidden, const Pass& pass, Tensor& held) const {
  const InModule in(context_, layer.attention_name);
  const std::int64_t batch = hidden.size(0), length = hidden.size(1);
  const auto by_head = [&](const Tensor& projected) {
    return Transpose(View(projected, {batch, length, -1, config_.head_dim}), 1, 2);
  };
  Tensor query, key, value;
  if (options_.transformers.attention_is_function) {  // each is split as soon as it is there
    query = by_head(layer.query(hidden));
    key = by_head(layer.key(hidden));
    value = by_head(layer.value(hidden));
  } else {
    query = layer.query(hidden);
    key = layer.key(hidden);
    value = layer.value(hidden);
    query = by_head(query);
    key = by_head(key);
    value = by_head(value);
  }
  const RotaryTables rotary = rotates_once() ? pass.rotary : layer.rotary(pass.positions, value.dtype());
  {
    Tensor turned_query = ApplyRotary(query, rotary), turned_key = ApplyRotary(key, rotary);
    query = std::move(turned_query);
    key = std::move(turned_key);
  }
  UpdateCache(pass.cache, options_.transformers.cache_joins, key, value);
  Tensor out;
  switch (options_.attention) {
    case Attention::kEager:
      out = AttendEagerly(query, key, value, pass.mask.tensor, held);
      break;
    case Attention::kSdpa:
      out = AttendFused(query, key, value, pass.mask.tensor);
      break;
    case Attention::kFlash:
      out = AttendFlash(query, key, value, pass.mask);
      break;
  }
  out = Contiguous(Reshape(out, {batch, length, -1}));
  out = layer.output(out);
  if (!options_.transformers.attention_is_function) held.reset();  // attn_weights = None
  Release(query, key, value);
  return out;
}

Tensor DecoderModel::FeedForward(const Layer& layer, const Tensor& x) const {
  const InModule in(context_, layer.mlp_name);
  Tensor active;
  {
    const Tensor gated = layer.gate(x);
    active = Unary(config_.family == DecoderFamily::kGemma ? UnaryKind::kGeluTanh : UnaryKind::kSilu, gated);
  }
  Tensor widened = layer.up(x);
  Tensor product = Mul(active, widened);
  Release(active, widened);
  return layer.down(product);
}

Tensor DecoderModel::RunLayer(const Layer& layer, const Tensor& hidden, const Pass& pass) const {
  const InModule in(context_, layer.name);
  Tensor weights;  // of eager attention, from 4.48
  Tensor states = layer.norm_attention(hidden);
  states = Attend(layer, states, pass, weights);
  states = Add(hidden, states);
  const Tensor residual = states;
  states = layer.norm_feed_forward(states);
  states = FeedForward(layer, states);
  return Add(residual, states);
}

DecoderOutput DecoderModel::Run(const Tensor& ids, const Call& call) const {
  const Tensor& mask = call.mask;
  const std::int64_t length = ids.size(1);
  DecoderOutput out;
  Tensor embedded = tokens_(ids);
  if (options_.is_checkpointed && options_.is_training) WantGradient(embedded);
  Pass pass;
  pass.cache = options_.is_checkpointed && options_.is_training ? nullptr : &out.cache;
  Tensor positions = Empty(context_, {length}, DType::kInt64);
  if (context_.computes()) context_.Do(ops::Arange{positions.view(), 0, 1});
  pass.positions = View(positions, {1, length});
  // The fused kernels know a causal mask by a flag, but none of a window.
  const bool is_windowed = config_.sliding_window.has_value() && length >= *config_.sliding_window;
  const bool needs_mask = is_windowed || mask.defined();
  const bool is_packed = options_.transformers.packs_sequences && pass.cache == nullptr && !mask.defined();
  if (is_packed && options_.attention == Attention::kSdpa) {
    pass.mask.tensor = PackedCausalMask(context_, ids.size(0), length);
  } else if (is_packed && options_.attention == Attention::kEager) {
    pass.mask.tensor = PackedCausalBias(context_, ids.size(0), length, embedded.dtype());
  } else if (options_.attention == Attention::kEager || (options_.attention == Attention::kSdpa && needs_mask)) {
    pass.mask.tensor = mask.defined()
                           ? UpdatedCausalBias(mask, embedded.dtype(), options_.attention == Attention::kSdpa)
                           : CausalBias(context_, length, embedded.dtype(), config_.sliding_window);
  } else if (options_.attention == Attention::kFlash) {
    pass.mask = FlashMask(call);
  }
  Tensor hidden = embedded;
  if (rotates_once()) pass.rotary = rotary_(pass.positions, hidden.dtype());
  if (config_.family == DecoderFamily::kGemma) {
    hidden = MulScalar(hidden, std::sqrt(static_cast<double>(config_.hidden_size)));
  }
  for (const Layer& layer : layers_) {
    if (options_.is_checkpointed && options_.is_training) {
      hidden = Checkpoint({hidden, pass.mask.tensor, pass.positions},
                          [this, &layer, rotary = pass.rotary, tokens = pass.mask.tokens](absl::Span<const Tensor> in) {
                            return RunLayer(
                                layer, in[0],
                                {.positions = in[2], .mask = {in[1], tokens}, .rotary = rotary, .cache = nullptr});
                          });
    } else {
      hidden = RunLayer(layer, hidden, pass);
    }
  }
  out.hidden = final_norm_(hidden);
  Release(hidden, embedded, pass.positions, positions, pass.mask.tensor, pass.rotary.cosines, pass.rotary.sines);
  return out;
}

Tensor DecoderModel::Loss(const Tensor& ids, const Tensor& labels, const Call& call) const {
  return top_.Loss(Run(ids, call), labels, call);
}

void DecoderModel::Forward(const Tensor& ids, const Call& call) const { top_.Forward(Run(ids, call), call); }

}  // namespace ashlar::kernels
