// nn.TransformerEncoderLayer and nn.MultiheadAttention of torch 1.10 (nn/functional.py), sequence first: packed input
// projection, products of (batch x heads) matrices, relu, norms after the sums.
#ifndef ASHLAR_KERNELS_NN_ENCODER_LAYER_H_
#define ASHLAR_KERNELS_NN_ENCODER_LAYER_H_

#include <string>

#include "kernels/nn/layers.h"

namespace ashlar::kernels {

class EncoderLayer {
 public:
  EncoderLayer() = default;
  EncoderLayer(Parameters& parameters, const std::string& name, std::int64_t width, std::int64_t heads,
               std::int64_t inner, double dropout);
  // x (S, B, width)
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor Attend(const Tensor& x) const;

  absl::string_view name_, attention_name_;
  std::int64_t heads_ = 1;
  double dropout_ = 0;
  Tensor in_weight_, in_bias_;
  LinearLayer out_projection_, up_proj_, down_proj_;
  LayerNormLayer norm_attention_, norm_feed_forward_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_ENCODER_LAYER_H_
