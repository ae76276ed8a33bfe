#include "kernels/nn/layers.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/index.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"

namespace ashlar::kernels {

LinearLayer::LinearLayer(Parameters& parameters, absl::string_view name, std::int64_t in, std::int64_t out,
                         double deviation, bool has_bias)
    : name_(parameters.context().Named(name)),
      weight_(parameters.New(absl::StrCat(name, ".weight"), {out, in}, Init::Normal(deviation))) {
  if (has_bias) bias_ = parameters.New(absl::StrCat(name, ".bias"), {out}, Init::Zero());
}

Tensor LinearLayer::operator()(const Tensor& x) const {
  const InModule in(x.context(), name_);
  return Linear(x, weight_, bias_);
}

LayerNormLayer::LayerNormLayer(Parameters& parameters, absl::string_view name, std::int64_t width, double epsilon)
    : name_(parameters.context().Named(name)),
      weight_(parameters.New(absl::StrCat(name, ".weight"), {width}, Init::One())),
      bias_(parameters.New(absl::StrCat(name, ".bias"), {width}, Init::Zero())),
      epsilon_(epsilon) {}

Tensor LayerNormLayer::operator()(const Tensor& x) const {
  const InModule in(x.context(), name_);
  return LayerNorm(x, weight_, bias_, epsilon_);
}

EmbeddingLayer::EmbeddingLayer(Parameters& parameters, absl::string_view name, std::int64_t rows, std::int64_t width,
                               double deviation)
    : name_(parameters.context().Named(name)), width_(width) {
  const std::string weight = absl::StrCat(name, ".weight");
  is_on_host_ = parameters.IsOnHost(weight);
  is_trained_ = !parameters.IsFrozen(weight);
  if (!is_on_host_) weight_ = parameters.New(weight, {rows, width}, Init::Normal(deviation));
}

Tensor EmbeddingLayer::operator()(const Tensor& indices) const {
  const InModule in(indices.context(), name_);
  return is_on_host_ ? FromHost(indices, width_, is_trained_) : Embedding(weight_, indices);
}

Tensor GeluNew(const Tensor& x) {
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

}  // namespace ashlar::kernels
