#include "estimator/models/t5.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "estimator/models/attention.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/layers.h"
#include "kernels/nn/parameters.h"
#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {
namespace {

std::vector<std::int64_t> AllBuckets(const BucketRule& rule) {
  std::vector<std::int64_t> out;
  for (std::int64_t query = 0; query < rule.queries; ++query) {
    for (std::int64_t key = 0; key < rule.keys; ++key) out.push_back(BucketOf(key - query, rule));
  }
  return out;
}

}  // namespace

std::int64_t BucketOf(std::int64_t relative, const BucketRule& rule) {
  const std::int64_t count = rule.is_bidirectional ? rule.buckets / 2 : rule.buckets;
  const std::int64_t first = rule.is_bidirectional && relative > 0 ? count : 0;
  const std::int64_t distance = rule.is_bidirectional ? std::abs(relative) : std::max<std::int64_t>(-relative, 0);
  const std::int64_t exact = count / 2;
  if (distance < exact) return first + distance;
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(rule.max_distance) / static_cast<double>(exact));
  const auto large = exact + static_cast<std::int64_t>(share * static_cast<double>(count - exact));
  return first + std::min(large, count - 1);
}

Buckets RelativeBuckets(Context& context, const BucketRule& rule) {
  const auto make = [&](DType dtype) { return Empty(context, {rule.queries, rule.keys}, dtype); };
  Buckets out;
  if (!rule.has_positions) out.held.push_back(Empty(context, {rule.queries}, DType::kInt64));
  out.held.push_back(Empty(context, {rule.keys}, DType::kInt64));
  out.held.push_back(make(DType::kInt64));  // memory - context
  Tensor position;
  if (rule.is_bidirectional) {
    Tensor is_after = make(DType::kBool);
    Tensor wide = make(DType::kInt64);
    is_after.reset();
    Tensor product = make(DType::kInt64);
    wide.reset();
    out.index = make(DType::kInt64);  // 0 + product
    product.reset();
    position = make(DType::kInt64);  // abs
  } else {
    Tensor zeros = make(DType::kInt64);
    const Tensor least = make(DType::kInt64);
    zeros.reset();
    position = make(DType::kInt64);  // -least
  }
  const Tensor is_small = make(DType::kBool);
  Tensor large = make(DType::kFloat32);
  for (int i = 0; i < 4; ++i) large = make(DType::kFloat32);  // / exact, log, / log, * rest
  large = make(DType::kInt64);
  large = make(DType::kInt64);  // exact + large
  {
    const Tensor most = make(DType::kInt64);
    large = make(DType::kInt64);  // min
  }
  const Tensor chosen = make(DType::kInt64);
  if (!out.index.defined()) out.index = make(DType::kInt64);  // 0 + chosen; else in place
  if (context.computes()) FillIds(out.index, AllBuckets(rule));
  return out;
}

namespace {

using ops::UnaryKind;

constexpr double kDeviation = 0.05;

Tensor Activated(T5Config::Activation activation, const Tensor& x) {
  switch (activation) {
    case T5Config::Activation::kRelu:
      return Unary(UnaryKind::kRelu, x);
    case T5Config::Activation::kGelu:
      return Unary(UnaryKind::kGelu, x);
    case T5Config::Activation::kGeluNew:
      return GeluNew(x);
    case T5Config::Activation::kSilu:
      return Unary(UnaryKind::kSilu, x);
  }
  return x;
}

}  // namespace

T5::Norm T5::NewNorm(Parameters& parameters, const std::string& name) const {
  return {context_.Named(name), parameters.New(name + ".weight", {config_.d_model}, Init::One())};
}

T5::Attention T5::NewAttention(Parameters& parameters, const std::string& name, const char* attention,
                               bool has_bias) const {
  const std::int64_t d = config_.d_model, inner = config_.num_heads * config_.d_kv;
  const std::string at = absl::StrCat(name, ".", attention, ".");
  const auto linear = [&](const char* part, std::int64_t in, std::int64_t out) {
    return LinearLayer(parameters, at + part, in, out, kDeviation, /*has_bias=*/false);
  };
  Attention out;
  out.layer_name = context_.Named(name);
  out.name = context_.Named(absl::StrCat(name, ".", attention));
  out.query = linear("q", d, inner);
  out.key = linear("k", d, inner);
  out.value = linear("v", d, inner);
  out.out = linear("o", inner, d);
  out.has_bias = has_bias;
  if (has_bias) {
    out.bias = EmbeddingLayer(parameters, at + "relative_attention_bias", config_.relative_attention_num_buckets,
                              config_.num_heads, kDeviation);
  }
  out.norm = NewNorm(parameters, name + ".layer_norm");
  return out;
}

T5::Stack T5::NewStack(Parameters& parameters, const std::string& name, std::int64_t layers,
                       const EmbeddingLayer* tokens) const {
  const std::int64_t d = config_.d_model, f = config_.d_ff;
  Stack out;
  out.name = context_.Named(name);
  out.is_decoder = name == "decoder";
  out.tokens = tokens != nullptr
                   ? *tokens
                   : EmbeddingLayer(parameters, name + ".embed_tokens", config_.vocab_size, d, kDeviation);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string at = absl::StrCat(name, ".block.", i, ".layer.");
    Block block;
    block.self = NewAttention(parameters, at + "0", "SelfAttention", /*has_bias=*/i == 0);
    if (out.is_decoder) block.cross = NewAttention(parameters, at + "1", "EncDecAttention", /*has_bias=*/false);
    const std::string feed = absl::StrCat(at, out.is_decoder ? 2 : 1);
    const auto linear = [&](const char* part, std::int64_t in, std::int64_t width) {
      return LinearLayer(parameters, absl::StrCat(feed, ".DenseReluDense.", part), in, width, kDeviation,
                         /*has_bias=*/false);
    };
    block.feed_name = context_.Named(feed);
    block.up_proj = linear(config_.is_gated ? "wi_0" : "wi", d, f);
    if (config_.is_gated) block.gate = linear("wi_1", d, f);
    block.down_proj = linear("wo", f, d);
    block.norm = NewNorm(parameters, feed + ".layer_norm");
    out.blocks.push_back(std::move(block));
  }
  out.final_norm = NewNorm(parameters, name + ".final_layer_norm");
  return out;
}

T5::T5(Parameters& parameters, const T5Config& config, Options options)
    : context_(parameters.context()), config_(config), options_(options) {
  if (config.shares_embeddings) {
    shared_ = EmbeddingLayer(parameters, "shared", config.vocab_size, config.d_model, 1);
  }
  const EmbeddingLayer* tokens = config.shares_embeddings ? &shared_ : nullptr;
  encoder_ = NewStack(parameters, "encoder", config.num_layers, tokens);
  if (options.head != T5Head::kEncoder) decoder_ = NewStack(parameters, "decoder", config.num_decoder_layers, tokens);
  if (options.head != T5Head::kLanguage) return;
  head_ = config.is_tied ? decoder_.tokens.weight()
                         : parameters.New("lm_head.weight", {config.vocab_size, config.d_model}, Init::Normal(1));
}

// T5LayerNorm: x rsqrt(mean(x^2) + epsilon) in float32, times the weight.
Tensor T5::NormInPython(const Tensor& x, const Norm& norm) const {
  const InModule in(context_, norm.name);
  const Tensor wide = Cast(x, DType::kFloat32);
  Tensor square = Square(wide);
  Tensor variance = Mean(square, -1, /*keeps_dim=*/true);
  square.reset();
  Tensor shifted = AddScalar(variance, config_.layer_norm_epsilon);
  Tensor root = Unary(UnaryKind::kRsqrt, shifted);
  shifted.reset();
  Tensor scaled = Mul(x, root);
  root.reset();
  Tensor out = Mul(norm.weight, scaled);
  Release(scaled, variance);
  return out;
}

// (1, H, queries, keys), a view of the looked-up rows.
Tensor T5::PositionBias(const Attention& attention, const Stack& stack, std::int64_t queries, std::int64_t keys) const {
  const Buckets buckets = RelativeBuckets(
      context_, {queries, keys, config_.relative_attention_num_buckets, config_.relative_attention_max_distance,
                 /*is_bidirectional=*/!stack.is_decoder, options_.transformers.t5_counts_positions});
  const Tensor values = attention.bias(buckets.index);
  return Unsqueeze(Permute(values, {2, 0, 1}), 0);
}

Tensor T5::Attend(const Attention& attention, const Stack& stack, const Tensor& hidden, const Tensor& source,
                  const Tensor& mask, Tensor& bias, std::vector<Tensor>* cache) const {
  const InModule in(context_, attention.name);
  const std::int64_t batch = hidden.size(0), queries = hidden.size(1), keys = source.size(1);
  const auto by_head = [&](const Tensor& projected) {
    return Transpose(View(projected, {batch, -1, config_.num_heads, config_.d_kv}), 1, 2);
  };
  const bool is_counted = options_.transformers.t5_counts_positions, is_cross = &source != &hidden;
  Tensor query = by_head(attention.query(hidden));
  Tensor key, value;
  if (is_counted) {
    key = attention.key(source);
    value = attention.value(source);
    key = by_head(key);
    value = by_head(value);
    UpdateCache(cache, options_.transformers.cache_joins, key, value);
  } else {
    key = by_head(attention.key(source));
    value = by_head(attention.value(source));
  }
  Tensor scores = Matmul(query, Transpose(key, 3, 2));
  const Tensor counted = CountedLength(!bias.defined() && !is_cross);
  if (!bias.defined()) {
    bias = attention.has_bias ? PositionBias(attention, stack, queries, keys)
                              : Zeros(context_, {1, config_.num_heads, queries, keys}, scores.dtype());
    if (!attention.has_bias && checkpoints()) bias.set_requires_grad(true);
    bias = Add(bias, mask);
  }
  scores = AddTo(scores, bias);
  Tensor weights;
  {
    const Tensor wide = Cast(scores, DType::kFloat32);
    weights = Softmax(wide);
  }
  weights = Cast(weights, scores.dtype());
  weights = Dropout(weights, dropout());
  Tensor out;
  {
    Tensor attended = Matmul(weights, value);
    out = View(Contiguous(Transpose(attended, 1, 2)), {batch, queries, config_.num_heads * config_.d_kv});
  }
  out = attention.out(out);
  if (!is_counted && cache != nullptr) {
    cache->push_back(key);
    cache->push_back(value);
  }
  Release(query, key, value, scores, weights);
  return out;
}

Tensor T5::CountedLength(bool is_asked) const {
  return is_asked && options_.transformers.t5_counts_positions ? Empty(context_, {}, DType::kInt64) : Tensor();
}

// T5LayerSelfAttention and, with `encoded`, T5LayerCrossAttention.
Tensor T5::AttendLayer(const Attention& attention, const Stack& stack, const Tensor& hidden, const Tensor& encoded,
                       const Tensor& mask, Tensor& bias, std::vector<Tensor>* cache) const {
  const InModule in(context_, attention.layer_name);
  Tensor normed = NormInPython(hidden, attention.norm);
  const Tensor attended = Attend(attention, stack, normed, encoded.defined() ? encoded : normed, mask, bias, cache);
  const Tensor dropped = Dropout(attended, dropout());
  return Add(hidden, dropped);
}

// T5LayerFF. The output projection is kept in float32: in half its input is cast there, and back by autocast.
Tensor T5::FeedForward(const Block& block, const Tensor& hidden) const {
  const InModule in(context_, block.feed_name);
  Tensor forwarded = NormInPython(hidden, block.norm);
  {
    Tensor states = Activated(config_.activation, block.up_proj(forwarded));
    Tensor active, linear;  // of a gated one, to the end
    if (config_.is_gated) {
      active = states;
      linear = block.gate(forwarded);
      states = Mul(active, linear);
    }
    states = Dropout(states, dropout());
    states = Cast(states, DType::kFloat32);
    forwarded = block.down_proj(states);
  }
  const Tensor dropped = Dropout(forwarded, dropout());
  return Add(hidden, dropped);
}

Tensor T5::RunBlock(const Stack& stack, const Block& block, const Tensor& hidden, Shared& shared) const {
  const Tensor attended = AttendLayer(block.self, stack, hidden, {}, shared.mask, shared.bias, shared.cache);
  if (!stack.is_decoder) return FeedForward(block, attended);
  const Tensor counted = CountedLength(true);  // an argument of the next
  const Tensor crossed =
      AttendLayer(block.cross, stack, attended, shared.encoded, shared.encoded_mask, shared.cross_bias, shared.cache);
  return FeedForward(block, crossed);
}

// T5Stack with gradient_checkpointing: a block takes the biases and gives them on, so that in backward each has a
// gradient for them, the last one of zeros.
Tensor T5::RunCheckpointed(const Stack& stack, const Block& block, const Tensor& hidden, Shared& shared) const {
  std::vector<Tensor> out = Checkpoint(
      {hidden, shared.mask, shared.bias, shared.encoded, shared.encoded_mask, shared.cross_bias},
      [this, &stack, &block](absl::Span<const Tensor> in) {
        Shared given{.mask = in[1], .encoded = in[3], .encoded_mask = in[4], .bias = in[2], .cross_bias = in[5]};
        std::vector<Tensor> outputs = {RunBlock(stack, block, in[0], given)};
        outputs.push_back(given.bias);
        if (stack.is_decoder) outputs.push_back(given.cross_bias);
        return outputs;
      });
  shared.bias = out[1];
  if (stack.is_decoder) shared.cross_bias = out[2];
  return out[0];
}

Tensor T5::RunStack(const Stack& stack, const Tensor& ids, const Tensor& mask, const Tensor& encoded,
                    std::vector<Tensor>* cache) const {
  const InModule in(context_, stack.name);
  Tensor embedded = stack.tokens(ids);
  if (checkpoints()) WantGradient(embedded);
  Shared shared;
  if (options_.transformers.t5_counts_positions) shared.positions = CountedPositions(context_, ids.size(1));
  const bool is_given = mask.defined() && !stack.is_decoder;
  Tensor own = is_given ? mask : Ones(ids.sizes(), DType::kFloat32), of_encoded;
  const auto ones_of_encoded = [&] {
    return mask.defined() ? mask : Ones({encoded.size(0), encoded.size(1)}, DType::kInt64);
  };
  const bool is_counted = options_.transformers.t5_counts_positions;
  if (!is_counted && encoded.defined()) of_encoded = ones_of_encoded();
  shared.mask = stack.is_decoder ? CausalMask(own, embedded.dtype()) : RowBias(own, DType::kFloat32);
  if (is_counted && encoded.defined()) of_encoded = ones_of_encoded();
  if (encoded.defined()) shared.encoded_mask = RowBias(of_encoded, DType::kFloat32);
  shared.encoded = encoded;
  shared.cache = checkpoints() ? nullptr : cache;
  Tensor hidden = Dropout(embedded, dropout());
  for (const Block& block : stack.blocks) {
    hidden = checkpoints() ? RunCheckpointed(stack, block, hidden, shared) : RunBlock(stack, block, hidden, shared);
  }
  hidden = NormInPython(hidden, stack.final_norm);
  hidden = Dropout(hidden, dropout());
  Release(own, of_encoded, embedded, shared.positions, shared.mask, shared.encoded_mask, shared.cross_bias,
          shared.bias);
  return hidden;
}

Tensor T5::Ones(const Dims& sizes, DType dtype) const {
  Tensor out = Empty(context_, sizes, dtype);
  if (context_.computes()) context_.Do(ops::Fill{out.view(), 1});
  return out;
}

// (B, 1, T, T): create_extended_attention_mask_for_decoder, from 4.48 on that of llama's time.
Tensor T5::CausalMask(const Tensor& ones, DType dtype) const {
  if (options_.transformers.t5_counts_positions) return UpdatedCausalBias(ones, dtype, /*is_fused=*/false);
  const std::int64_t batch = ones.size(0), length = ones.size(1);
  Tensor places = Empty(context_, {length}, DType::kInt64);
  if (context_.computes()) context_.Do(ops::Arange{places.view(), 0, 1});
  Tensor sees;
  {
    Tensor repeated = Contiguous(Expand(View(places, {1, 1, length}), {batch, length, length}));
    const Tensor compared = Compare(ops::CompareKind::kLessEqual, repeated, View(places, {1, length, 1}));
    repeated.reset();
    sees = Cast(compared, DType::kFloat32);
  }
  const Tensor mask = Mul(View(sees, {batch, 1, length, length}), View(ones, {batch, 1, 1, length}));
  Release(places, sees);
  const Tensor hides = EmptyLike(mask);  // 1 - mask
  if (context_.computes()) context_.Do(ops::Affine{mask.view(), -1, 1, hides.view()});
  return MulScalar(hides, std::numeric_limits<float>::lowest());
}

// _shift_right: zeros, the labels but for the last behind the start token, padding for what is ignored.
Tensor T5::Shifted(const Tensor& labels) const {
  Tensor out = Zeros(context_, labels.sizes(), DType::kInt64);
  {
    const Tensor clone = Empty(context_, {labels.size(0), labels.size(1) - 1}, DType::kInt64);
    if (context_.computes() && labels.size(1) > 1) {
      context_.Do(ops::Copy{Slice(labels, 1, 0, labels.size(1) - 1).view(), clone.view()});
      context_.Do(ops::Copy{clone.view(), Slice(out, 1, 1, labels.size(1)).view()});
    }
  }
  const Tensor is_ignored = Empty(context_, labels.sizes(), DType::kBool);
  return out;
}

T5::Output T5::Run(const Tensor& ids, const Tensor& targets, const Tensor& mask) const {
  Output out;
  out.encoded = RunStack(encoder_, ids, mask, {}, nullptr);
  if (options_.head == T5Head::kEncoder) return out;
  const Tensor decoder_ids = options_.head == T5Head::kLanguage ? Shifted(targets) : targets;
  out.hidden = RunStack(decoder_, decoder_ids, mask, out.encoded, &out.cache);
  return out;
}

Tensor T5::Logits(const Tensor& hidden) const {
  const InModule in(context_, "lm_head");
  if (!config_.is_tied) return Linear(hidden, head_, {});
  const Tensor scaled = MulScalar(hidden, 1 / std::sqrt(static_cast<double>(config_.d_model)));
  return Linear(scaled, head_, {});
}

// Logits or the decoder's states, past_key_values, the encoder's states.
void T5::Return(const Output& out, const Tensor& logits, const Call& call) const {
  call.Return(logits.defined() ? logits : out.hidden);
  call.ReturnTuple(out.cache);
  call.Return(out.encoded);
}

void T5::Forward(const Tensor& ids, const Tensor& targets, const Call& call) const {
  const Output out = Run(ids, targets, call.mask);
  Return(out, options_.head == T5Head::kLanguage ? Logits(out.hidden) : Tensor(), call);
}

Tensor T5::Loss(const Tensor& ids, const Tensor& targets, const Call& call) const {
  Output out = Run(ids, targets, call.mask);
  if (options_.head != T5Head::kLanguage) Return(out, {}, call);
  if (options_.head == T5Head::kEncoder) return MeanOfAll(out.encoded);
  if (options_.head == T5Head::kNone) return Add(MeanOfAll(out.hidden), MeanOfAll(out.encoded));
  Tensor logits = Logits(out.hidden);
  Return(out, logits, call);
  Tensor loss = CrossEntropy(View(logits, {-1, config_.vocab_size}), View(targets, {-1}));
  Release(out.hidden, logits);
  EndList(out.cache);
  return loss;
}

}  // namespace ashlar::kernels
