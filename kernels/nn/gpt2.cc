#include "kernels/nn/gpt2.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/cast.h"
#include "kernels/autograd/checkpoint.h"
#include "kernels/autograd/loss.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

// Made on the host, as the buffer is.
Tensor CausalMask(Context& context, std::int64_t length) {
  Tensor out = Empty(context, {1, 1, length, length}, DType::kBool, Part::kWeights);
  if (!context.computes()) return out;
  const auto n = static_cast<std::size_t>(length);
  std::vector<std::uint8_t> sees(n * n, 0);
  for (std::size_t query = 0; query < n; ++query) {
    for (std::size_t key = 0; key <= query; ++key) sees[query * n + key] = 1;
  }
  context.CopyBytes(out.view().data, sees.data(), sees.size());
  return out;
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), an operation at a time.
Tensor GeluInPython(const Tensor& x) {
  Tensor half = MulScalar(x, 0.5);
  Tensor cube = Cube(x);
  Tensor scaled = MulScalar(cube, 0.044715);
  cube.reset();
  Tensor sum = Add(x, scaled);
  scaled.reset();
  Tensor inner = MulScalar(sum, std::sqrt(2 / std::numbers::pi));
  sum.reset();
  Tensor tanh = Unary(ops::UnaryKind::kTanh, inner);
  inner.reset();
  Tensor shifted = AddScalar(tanh, 1);
  tanh.reset();
  return Mul(half, shifted);
}

}  // namespace

Tensor Gpt2::Projection::operator()(const Tensor& x) const {
  Dims sizes = x.sizes();
  sizes.back() = weight.size(1);
  return View(Addmm(bias, View(x, {-1, x.size(-1)}), weight), sizes);
}

Gpt2::Gpt2(Parameters& parameters, const Gpt2Config& config, Options options)
    : context_(parameters.context()), config_(config), options_(options) {
  const std::int64_t d = config.n_embd;
  const double deviation = config.initializer_range;
  tokens_ = EmbeddingLayer(parameters, "transformer.wte", config.vocab_size, d, deviation);
  positions_ = EmbeddingLayer(parameters, "transformer.wpe", config.n_positions, d, deviation);
  for (std::int64_t i = 0; i < config.n_layer; ++i) {
    const std::string at = absl::StrCat("transformer.h.", i, ".");
    const auto projection = [&](absl::string_view name, std::int64_t in, std::int64_t out) {
      return Projection{parameters.New(absl::StrCat(at, name, ".weight"), {in, out}, Init::Normal(deviation)),
                        parameters.New(absl::StrCat(at, name, ".bias"), {out}, Init::Zero())};
    };
    Layer layer;
    layer.norm_attention = LayerNormLayer(parameters, at + "ln_1", d, config.layer_norm_epsilon);
    layer.mask = CausalMask(context_, config.n_positions);
    layer.attention = projection("attn.c_attn", d, 3 * d);
    layer.attention_out = projection("attn.c_proj", d, d);
    layer.norm_mlp = LayerNormLayer(parameters, at + "ln_2", d, config.layer_norm_epsilon);
    layer.mlp = projection("mlp.c_fc", d, 4 * d);
    layer.mlp_out = projection("mlp.c_proj", 4 * d, d);
    layers_.push_back(std::move(layer));
  }
  final_norm_ = LayerNormLayer(parameters, "transformer.ln_f", d, config.layer_norm_epsilon);
}

Tensor Gpt2::Attend(const Layer& layer, const Tensor& hidden) const {
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const std::int64_t heads = config_.n_head, depth = width / heads;
  const Tensor packed = layer.attention(hidden);
  std::vector<Tensor> parts = Chunk(packed, 3, 2);
  for (Tensor& part : parts) part = Permute(View(part, {batch, length, heads, depth}), {0, 2, 1, 3});
  Tensor weights = Matmul(parts[0], Transpose(parts[1], -1, -2));
  weights = DivScalar(weights, std::sqrt(static_cast<double>(depth)));
  const Tensor mask = Slice(Slice(layer.mask, 2, 0, length), 3, 0, length);
  weights = WhereOrValue(mask, weights, std::numeric_limits<float>::lowest());
  weights = Softmax(weights);
  weights = Cast(weights, parts[2].dtype());
  weights = Dropout(weights, dropout(config_.attn_pdrop));
  Tensor out = Matmul(weights, parts[2]);
  out = View(Contiguous(Permute(out, {0, 2, 1, 3})), {batch, length, width});
  out = layer.attention_out(out);
  return Dropout(out, dropout(config_.resid_pdrop));
}

Tensor Gpt2::RunLayer(const Layer& layer, const Tensor& hidden) const {
  Tensor states = layer.norm_attention(hidden);
  Tensor attended = Attend(layer, states);
  states = Add(attended, hidden);
  const Tensor residual = states;
  states = layer.norm_mlp(states);
  Tensor fed = layer.mlp(states);
  fed = GeluInPython(fed);
  fed = layer.mlp_out(fed);
  fed = Dropout(fed, dropout(config_.resid_pdrop));
  states = Add(residual, fed);
  return states;
}

Tensor Gpt2::Logits(const Tensor& ids) const {
  const std::int64_t length = ids.size(1);
  const Tensor position_ids = Empty(context_, {1, length}, DType::kInt64);
  if (context_.computes()) context_.Do(ops::Arange{Alias(position_ids, {{length}, {1}}, 0).view(), 0, 1});
  Tensor words = tokens_(ids);
  if (options_.is_checkpointed && options_.is_training) WantGradient(words);
  Tensor places = positions_(position_ids);
  Tensor hidden = Add(words, places);
  hidden = Dropout(hidden, dropout(config_.embd_pdrop));
  for (const Layer& layer : layers_) {
    if (options_.is_checkpointed && options_.is_training) {
      hidden = Checkpoint(hidden, [this, &layer](const Tensor& in) { return RunLayer(layer, in); });
    } else {
      hidden = RunLayer(layer, hidden);
    }
  }
  Release(words, places);
  hidden = final_norm_(hidden);
  return Linear(hidden, tokens_.weight(), {});
}

Tensor Gpt2::Loss(const Tensor& ids) const {
  const std::int64_t length = ids.size(1);
  const Tensor logits = Logits(ids);
  const Tensor shifted = Contiguous(Slice(logits, 1, 0, length - 1));
  const Tensor labels = Contiguous(Slice(ids, 1, 1, length));
  return CrossEntropy(View(shifted, {-1, shifted.size(-1)}), View(labels, {-1}));
}

}  // namespace ashlar::kernels
