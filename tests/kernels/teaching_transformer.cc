#include "tests/kernels/teaching_transformer.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/index.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/parameters.h"

namespace ashlar::kernels {
namespace {

using ops::UnaryKind;

constexpr double kRmsEpsilon = 1e-5;
constexpr double kTheta = 10'000;

Tensor LinearByEinsum(const Tensor& x, const Tensor& weight) { return Einsum("bsd,od->bso", x, weight); }

Tensor RmsNormInPython(const Tensor& x, const Tensor& weight) {
  Tensor square = Square(x);
  Tensor mean = Mean(square, -1, /*keeps_dim=*/true);
  square.reset();
  Tensor shifted = AddScalar(mean, kRmsEpsilon);
  mean.reset();
  Tensor rms = Unary(UnaryKind::kRsqrt, shifted);
  shifted.reset();
  Tensor scaled = Mul(x, rms);
  Tensor out = Mul(weight, scaled);
  Release(scaled, rms);
  return out;
}

Tensor SoftmaxInPython(const Tensor& x) {
  MaxResult max = Max(x, -1);
  max.indices.reset();
  Tensor rescaled = Sub(x, max.values);
  max.values.reset();
  Tensor exponentials = Unary(UnaryKind::kExp, rescaled);
  Tensor sum = Sum(exponentials, -1, /*keeps_dim=*/true);
  Tensor out = Div(exponentials, sum);
  sum.reset();
  Release(rescaled, exponentials);
  return out;
}

Tensor LogSoftmaxInPython(const Tensor& logits) {
  MaxResult max = Max(logits, -1);
  max.indices.reset();
  Tensor x = Sub(logits, max.values);
  Tensor exponentials = Unary(UnaryKind::kExp, x);
  Tensor sum = Sum(exponentials, -1, /*keeps_dim=*/true);
  exponentials.reset();
  Tensor log = Unary(UnaryKind::kLog, sum);
  sum.reset();
  Tensor out = Sub(x, log);
  log.reset();
  Release(x, max.values);
  return out;
}

Tensor AttentionInPython(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  Tensor products = Einsum("bhqd,bhkd->bhqk", query, key);
  Tensor scores = DivScalar(products, std::sqrt(static_cast<double>(key.size(-1))));
  products.reset();
  scores = WhereOrValue(mask, scores, -std::numeric_limits<double>::infinity());
  Tensor weights = SoftmaxInPython(scores);
  Tensor out = Einsum("bhqk,bhkd->bhqd", weights, value);
  Release(scores, weights);
  return out;
}

Tensor Silu(const Tensor& x) {
  const Tensor sigmoid = Unary(UnaryKind::kSigmoid, x);
  return Mul(x, sigmoid);
}

Tensor FeedForward(const Tensor& x, const Tensor& gate, const Tensor& down, const Tensor& up) {
  Tensor gated = LinearByEinsum(x, gate);
  Tensor active = Silu(gated);
  gated.reset();
  Tensor widened = LinearByEinsum(x, up);
  Tensor product = Mul(active, widened);
  Release(active, widened);
  Tensor out = LinearByEinsum(product, down);
  product.reset();
  return out;
}

double GlorotDeviation(std::int64_t in, std::int64_t out) { return std::sqrt(2.0 / static_cast<double>(in + out)); }

}  // namespace

TeachingTransformer::TeachingTransformer(Parameters& parameters, const TeachingConfig& config)
    : context_(parameters.context()), config_(config) {
  const std::int64_t d = config.width, f = config.inner;
  const Init square = Init::Normal(GlorotDeviation(d, d)), wide = Init::Normal(GlorotDeviation(d, f));
  embedding_ = parameters.New("token_embeddings.weight", {config.vocabulary, d}, Init::Normal(1));
  const std::int64_t half = d / config.heads / 2;
  rotary_ = Empty(context_, {2, config.context_length, half}, DType::kFloat32, Part::kBatch);
  if (context_.computes()) FillRotary(rotary_, kTheta);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const auto add = [&](absl::string_view name, Dims sizes, Init init) {
      return parameters.New(absl::StrCat("layers.", i, ".", name, ".weight"), std::move(sizes), init);
    };
    Layer layer;
    layer.query = add("attn.q_proj", {d, d}, square);
    layer.key = add("attn.k_proj", {d, d}, square);
    layer.value = add("attn.v_proj", {d, d}, square);
    layer.output = add("attn.output_proj", {d, d}, square);
    layer.gate = add("ffn.w1", {f, d}, wide);
    layer.down = add("ffn.w2", {d, f}, wide);
    layer.up = add("ffn.w3", {f, d}, wide);
    layer.norm_attention = add("ln1", {d}, Init::One());
    layer.norm_feed_forward = add("ln2", {d}, Init::One());
    layers_.push_back(std::move(layer));
  }
  final_norm_ = parameters.New("ln_final.weight", {d}, Init::One());
  head_ = parameters.New("lm_head.weight", {config.vocabulary, d}, Init::Normal(GlorotDeviation(d, config.vocabulary)));
}

// x (B, H, S, D), pairs (2i, 2i + 1).
Tensor TeachingTransformer::Rotate(const Tensor& x, std::int64_t length) const {
  const std::int64_t half = x.size(-1) / 2;
  const Tensor table = Slice(rotary_, 1, 0, length);
  const Tensor cosines = Select(table, 0, 0), sines = Select(table, 0, 1);
  Tensor pairs = Permute(Reshape(x, {x.size(0), x.size(1), length, half, 2}), {4, 0, 1, 2, 3});
  std::vector<Tensor> parts = Unbind(pairs, 0);

  Tensor left = Mul(cosines, parts[0]), right = Mul(sines, parts[1]);
  Tensor first = Sub(left, right);
  Release(left, right);
  left = Mul(sines, parts[0]);
  right = Mul(cosines, parts[1]);
  Tensor second = Add(left, right);
  Release(left, right);
  Tensor out;
  {
    const std::array<Tensor, 2> columns = {Unsqueeze(first, -1), Unsqueeze(second, -1)};
    out = View(Cat(columns, -1), x.sizes());
  }
  Release(first, second);
  return out;
}

Tensor TeachingTransformer::Attend(const Layer& layer, const Tensor& x) const {
  const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2), heads = config_.heads;
  const auto split = [&](Tensor projected) {
    return Permute(View(projected, {batch, length, heads, width / heads}), {0, 2, 1, 3});
  };
  Tensor query = LinearByEinsum(x, layer.query);
  Tensor key = LinearByEinsum(x, layer.key);
  Tensor value = LinearByEinsum(x, layer.value);
  query = split(std::move(query));
  key = split(std::move(key));
  value = split(std::move(value));
  query = Rotate(query, length);
  key = Rotate(key, length);

  Tensor positions = Empty(context_, {length}, DType::kInt64);
  if (context_.computes()) context_.Do(ops::Arange{positions.view(), 0, 1});
  Tensor mask =
      Compare(ops::CompareKind::kGreaterEqual, View(positions, {1, 1, length, 1}), View(positions, {1, 1, 1, length}));
  Tensor attended = AttentionInPython(query, key, value, mask);
  attended = Reshape(Permute(attended, {0, 2, 1, 3}), {batch, length, width});
  Tensor out = LinearByEinsum(attended, layer.output);
  Release(query, key, value, positions, mask, attended);
  return out;
}

Tensor TeachingTransformer::RunLayer(const Layer& layer, const Tensor& x) const {
  Tensor normed = RmsNormInPython(x, layer.norm_attention);
  Tensor attended = Attend(layer, normed);
  normed.reset();
  Tensor sum = Add(x, attended);
  normed = RmsNormInPython(sum, layer.norm_feed_forward);
  Tensor fed = FeedForward(normed, layer.gate, layer.down, layer.up);
  normed.reset();
  Tensor out = Add(sum, fed);
  Release(attended, sum, fed);
  return out;
}

Tensor TeachingTransformer::Forward(const Tensor& ids) const {
  Tensor embedded = IndexRows(embedding_, ids);
  Tensor x = embedded;
  for (const Layer& layer : layers_) x = RunLayer(layer, x);
  x = RmsNormInPython(x, final_norm_);
  Tensor logits = LinearByEinsum(x, head_);
  Release(x, embedded);
  return logits;
}

Tensor TeachingCrossEntropy(const Tensor& logits, const Tensor& targets) {
  Tensor negated = LogSoftmaxInPython(logits);
  negated = Neg(negated);
  Tensor picked = Gather(negated, Unsqueeze(targets, -1));
  Tensor loss = MeanOfAll(picked);
  picked.reset();
  negated.reset();
  return loss;
}

}  // namespace ashlar::kernels
