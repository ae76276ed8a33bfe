#include "kernels/nn/encoder_layer.h"

#include <cmath>
#include <vector>

#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

constexpr double kTorchEpsilon = 1e-5;

double Deviation(std::int64_t in, std::int64_t out) { return std::sqrt(2.0 / static_cast<double>(in + out)); }

}  // namespace

EncoderLayer::EncoderLayer(Parameters& parameters, const std::string& name, std::int64_t width, std::int64_t heads,
                           std::int64_t inner, double dropout)
    : name_(parameters.context().Named(name)),
      attention_name_(parameters.context().Named(name + ".self_attn")),
      heads_(heads),
      dropout_(dropout),
      in_weight_(parameters.New(name + ".self_attn.in_proj_weight", {3 * width, width},
                                Init::Normal(Deviation(width, width)))),
      in_bias_(parameters.New(name + ".self_attn.in_proj_bias", {3 * width}, Init::Zero())),
      out_projection_(parameters, name + ".self_attn.out_proj", width, width, Deviation(width, width)),
      up_proj_(parameters, name + ".linear1", width, inner, Deviation(width, inner)),
      down_proj_(parameters, name + ".linear2", inner, width, Deviation(inner, width)),
      norm_attention_(parameters, name + ".norm1", width, kTorchEpsilon),
      norm_feed_forward_(parameters, name + ".norm2", width, kTorchEpsilon) {}

Tensor EncoderLayer::Attend(const Tensor& x) const {
  const InModule in(x.context(), attention_name_);
  const std::int64_t length = x.size(0), batch = x.size(1), width = x.size(2), depth = width / heads_;
  std::vector<Tensor> parts;
  {
    const Tensor packed = Linear(x, in_weight_, in_bias_);
    parts = Chunk(packed, 3, -1);
  }
  for (Tensor& part : parts) {
    part = Transpose(View(Contiguous(part), {length, batch * heads_, depth}), 0, 1);
  }
  const Tensor query = DivScalar(parts[0], std::sqrt(static_cast<double>(depth)));
  Tensor weights = Bmm(query, Transpose(parts[1], -2, -1));
  weights = Softmax(weights);
  weights = Dropout(weights, dropout_);
  Tensor out = Bmm(weights, parts[2]);
  out = View(Contiguous(Transpose(out, 0, 1)), {length, batch, width});
  return out_projection_(out);
}

Tensor EncoderLayer::operator()(const Tensor& x) const {
  const InModule in(x.context(), name_);
  Tensor attended = Attend(x);
  attended = Dropout(attended, dropout_);
  Tensor sum = Add(x, attended);
  attended.reset();
  const Tensor normed = norm_attention_(sum);
  sum.reset();
  Tensor fed = up_proj_(normed);
  fed = Unary(ops::UnaryKind::kRelu, fed);
  fed = Dropout(fed, dropout_);
  fed = down_proj_(fed);
  fed = Dropout(fed, dropout_);
  sum = Add(normed, fed);
  fed.reset();
  return norm_feed_forward_(sum);
}

}  // namespace ashlar::kernels
