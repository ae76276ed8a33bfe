#include "estimator/models/gpt.h"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "estimator/models/attention.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/scaled_attention.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/layers.h"
#include "kernels/nn/parameters.h"

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

namespace {

struct Conv1D {  // transformers' linear layer: weight (in, out)
  absl::string_view name;
  Tensor weight, bias;
  Tensor operator()(const Tensor& x) const {
    const InModule in(x.context(), name);
    Dims sizes = x.sizes();
    sizes.back() = weight.size(1);
    return View(Addmm(bias, View(x, {-1, x.size(-1)}), weight), sizes);
  }
};

class Gpt2Block final : public GptBlock {
 public:
  Gpt2Block(Parameters& parameters, const Gpt2Config& config, const GptOptions& options, const GptShape& shape,
            const std::string& at)
      : GptBlock(parameters, shape, at, "attn"), config_(config), options_(options) {
    const std::int64_t d = config.n_embd, inner = config.n_inner == 0 ? 4 * d : config.n_inner;
    const auto projection = [&](absl::string_view name, std::int64_t in, std::int64_t out) {
      return Conv1D{
          context().Named(absl::StrCat(at, name)),
          parameters.New(absl::StrCat(at, name, ".weight"), {in, out}, Init::Normal(config.initializer_range)),
          parameters.New(absl::StrCat(at, name, ".bias"), {out}, Init::Zero())};
    };
    packed_ = projection("attn.c_attn", d, 3 * d);
    output_ = projection("attn.c_proj", d, d);
    MakeMask({});
    MakeSecondNorm(parameters);
    up_proj_ = projection("mlp.c_fc", d, inner);
    down_proj_ = projection("mlp.c_proj", inner, d);
  }

 private:
  Tensor Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const override;
  Tensor UpProj(const Tensor& x) const override { return up_proj_(x); }
  Tensor DownProj(const Tensor& x) const override { return down_proj_(x); }
  // query, key, value (B, H, S, D); the result (B, S, H, D).
  Tensor AttendEagerly(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                       Tensor& weights) const;
  Tensor AttendFused(const Tensor& query, const Tensor& key, const Tensor& value, const LayerMask& mask) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  Gpt2Config config_;
  GptOptions options_;
  Conv1D packed_, output_, up_proj_, down_proj_;
};

Tensor Gpt2Block::AttendEagerly(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                                Tensor& weights) const {
  const std::int64_t length = query.size(2);
  weights = Matmul(query, Transpose(key, -1, -2));
  {
    const Tensor divisor = Empty(context(), {}, weights.dtype());  // torch.full([], ...)
    if (context().computes()) context().Do(ops::Fill{divisor.view(), std::sqrt(static_cast<double>(value.size(-1)))});
    weights = Div(weights, divisor);
  }
  const Tensor mask = MaskOf(length);
  const Tensor lowest = ScalarOf(weights, std::numeric_limits<float>::lowest());  // a local of _attn
  weights = WhereOr(mask, weights, lowest);
  if (bias.defined()) weights = Add(weights, bias);
  weights = Softmax(weights);
  weights = Cast(weights, value.dtype());
  weights = Dropout(weights, dropout(config_.attn_pdrop));
  const Tensor out = Matmul(weights, value);
  return Contiguous(Permute(out, {0, 2, 1, 3}));
}

Tensor Gpt2Block::AttendFused(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
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

Tensor Gpt2Block::Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const {
  const InModule in(context(), attention_name());
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const std::int64_t heads = config_.n_head, depth = width / heads;
  std::vector<Tensor> parts;
  {
    const Tensor packed = packed_(hidden);
    parts = Chunk(packed, 3, 2);
  }
  for (Tensor& part : parts) part = Permute(View(part, {batch, length, heads, depth}), {0, 2, 1, 3});
  UpdateCache(cache, options_.transformers.cache_joins, parts[1], parts[2]);
  Tensor weights;
  Tensor out = options_.attention == Attention::kEager
                   ? AttendEagerly(parts[0], parts[1], parts[2], mask.tensor, weights)
                   : AttendFused(parts[0], parts[1], parts[2], mask);
  out = Reshape(out, {batch, length, width});
  out = output_(out);
  out = Dropout(out, dropout(config_.resid_pdrop));
  parts.clear();
  weights.reset();
  return out;
}

GptShape ShapeOf(const Gpt2Config& config, const GptOptions& options) {
  return {.vocabulary = config.vocab_size,
          .positions = config.n_positions,
          .width = config.n_embd,
          .layers = config.n_layer,
          .norm_epsilon = config.layer_norm_epsilon,
          .deviation = config.initializer_range,
          .embedding_dropout = options.is_training ? config.embd_pdrop : 0,
          .feed_forward_dropout = options.is_training ? config.resid_pdrop : 0,
          .is_tied = config.tie_word_embeddings,
          .own_loss = OwnLoss::kAsTheyAre,
          .counts_late = options.transformers.gpt2_counts_late};
}

}  // namespace

Gpt2::Gpt2(Parameters& parameters, const Gpt2Config& config, const Options& options)
    : GptModel(parameters, ShapeOf(config, options), options, [&](const std::string& at, std::int64_t) {
        return std::make_unique<Gpt2Block>(parameters, config, options, ShapeOf(config, options), at);
      }) {}

LayerMask Gpt2::MaskOf(const Tensor& words, const Call& call) const {
  if (options().attention == Attention::kFlash) return FlashMask(call);
  if (!call.mask.defined()) return {};
  if (options().attention == Attention::kEager) return {RowBias(call.mask, words.dtype())};
  return {CausalBiasOf(call.mask, words.dtype(), /*is_fused=*/true)};
}

Tensor Gpt2::PackedMask(const Tensor& words) const {
  if (!is_checkpointed() || !options().transformers.packs_sequences) return {};
  const std::int64_t batch = words.size(0), length = words.size(1);
  if (options().attention == Attention::kSdpa) return PackedCausalMask(context(), batch, length);
  if (options().attention == Attention::kEager) return PackedCausalBias(context(), batch, length, words.dtype());
  return {};
}

namespace {

class GptNeoBlock final : public GptBlock {
 public:
  GptNeoBlock(Parameters& parameters, const GptNeoConfig& config, const GptOptions& options, const GptShape& shape,
              const std::string& at, bool is_local)
      : GptBlock(parameters, shape, at, "attn.attention"), config_(config), options_(options) {
    const std::int64_t d = config.hidden_size;
    const auto linear = [&](const char* name, std::int64_t in, std::int64_t out, bool has_bias) {
      return LinearLayer(parameters, absl::StrCat(at, name), in, out, config.initializer_range, has_bias);
    };
    key_ = linear("attn.attention.k_proj", d, d, false);
    value_ = linear("attn.attention.v_proj", d, d, false);
    query_ = linear("attn.attention.q_proj", d, d, false);
    output_ = linear("attn.attention.out_proj", d, d, true);
    MakeMask(is_local ? std::optional(config.window_size) : std::nullopt);
    MakeSecondNorm(parameters);
    up_proj_ = linear("mlp.c_fc", d, config.intermediate_size, true);
    down_proj_ = linear("mlp.c_proj", config.intermediate_size, d, true);
  }

 private:
  Tensor Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const override;
  Tensor UpProj(const Tensor& x) const override { return up_proj_(x); }
  Tensor DownProj(const Tensor& x) const override { return down_proj_(x); }
  Tensor AttendEagerly(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                       Tensor& weights) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  GptNeoConfig config_;
  GptOptions options_;
  LinearLayer query_, key_, value_, output_, up_proj_, down_proj_;
};

// _attn: scores and softmax in float, the weights in the values' dtype.
Tensor GptNeoBlock::AttendEagerly(const Tensor& query_in, const Tensor& key_in, const Tensor& value, const Tensor& bias,
                                  Tensor& weights) const {
  const Tensor query = Cast(query_in, DType::kFloat32), key = Cast(key_in, DType::kFloat32);
  const std::int64_t length = query.size(2);
  weights = Matmul(query, Transpose(key, -1, -2));
  const Tensor mask = MaskOf(length);
  const Tensor lowest = ScalarOf(weights, std::numeric_limits<float>::lowest());  // a local of _attn
  weights = WhereOr(mask, weights, lowest);
  if (bias.defined()) weights = Add(weights, Slice(bias, 3, 0, length));
  weights = Softmax(weights);
  weights = Cast(weights, value.dtype());
  weights = Dropout(weights, dropout(config_.attention_dropout));
  return Matmul(weights, value);
}

Tensor GptNeoBlock::Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const {
  const InModule in(context(), attention_name());
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const auto by_head = [&](const Tensor& projected) {
    return Permute(View(projected, {batch, length, config_.num_heads, width / config_.num_heads}), {0, 2, 1, 3});
  };
  Tensor query = query_(hidden);
  Tensor key = key_(hidden);
  Tensor value = value_(hidden);
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
    out = AttendEagerly(query, key, value, mask.tensor, weights);
    out = View(Contiguous(Permute(out, {0, 2, 1, 3})), {batch, length, width});
  }
  out = output_(out);
  out = Dropout(out, dropout(config_.resid_dropout));
  Release(query, key, value, weights);
  return out;
}

GptShape ShapeOf(const GptNeoConfig& config, const GptOptions& options) {
  return {.vocabulary = config.vocab_size,
          .positions = config.max_position_embeddings,
          .width = config.hidden_size,
          .layers = config.num_layers,
          .norm_epsilon = config.layer_norm_epsilon,
          .deviation = config.initializer_range,
          .embedding_dropout = options.is_training ? config.embed_dropout : 0,
          .feed_forward_dropout = options.is_training ? config.resid_dropout : 0,
          .is_tied = config.tie_word_embeddings,
          .own_loss = OwnLoss::kInFloat,
          .counts_late = options.transformers.gpt_neo_counts_late};
}

}  // namespace

GptNeo::GptNeo(Parameters& parameters, const GptNeoConfig& config, const Options& options)
    : GptModel(parameters, ShapeOf(config, options), options, [&](const std::string& at, std::int64_t layer) {
        const auto index = static_cast<std::size_t>(layer);
        const bool is_local = index < config.is_local.size() && config.is_local[index];
        return std::make_unique<GptNeoBlock>(parameters, config, options, ShapeOf(config, options), at, is_local);
      }) {}

LayerMask GptNeo::MaskOf(const Tensor& words, const Call& call) const {
  if (options().attention == Attention::kFlash) return FlashMask(call);
  const bool adds_mask = options().transformers.gpt_neo_adds_mask;
  if (!call.mask.defined()) {
    if (!adds_mask) return {};
    return {CausalBias(context(), words.size(1), words.dtype())};
  }
  return {adds_mask ? CausalBiasOf(call.mask, words.dtype(), /*is_fused=*/false) : RowBias(call.mask, words.dtype())};
}

}  // namespace ashlar::kernels
