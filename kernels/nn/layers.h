// The layers of torch.nn that models here are made of: parameters by PyTorch's names and a call.
#ifndef ASHLAR_KERNELS_NN_LAYERS_H_
#define ASHLAR_KERNELS_NN_LAYERS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "kernels/nn/parameters.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

class LinearLayer {
 public:
  LinearLayer() = default;
  LinearLayer(Parameters& parameters, absl::string_view name, std::int64_t in, std::int64_t out, double deviation,
              bool has_bias = true);
  Tensor operator()(const Tensor& x) const;
  const Tensor& weight() const { return weight_; }

 private:
  absl::string_view name_;
  Tensor weight_, bias_;
};

class LayerNormLayer {
 public:
  LayerNormLayer() = default;
  LayerNormLayer(Parameters& parameters, absl::string_view name, std::int64_t width, double epsilon);
  Tensor operator()(const Tensor& x) const;

 private:
  absl::string_view name_;
  Tensor weight_, bias_;
  double epsilon_ = 0;
};

// A table on the host (Parameters::Options) looks its rows up there, and only they come to the device.
class EmbeddingLayer {
 public:
  EmbeddingLayer() = default;
  EmbeddingLayer(Parameters& parameters, absl::string_view name, std::int64_t rows, std::int64_t width,
                 double deviation);
  Tensor operator()(const Tensor& indices) const;
  const Tensor& weight() const { return weight_; }  // none on the host

 private:
  absl::string_view name_;
  Tensor weight_;
  std::int64_t width_ = 0;
  bool is_on_host_ = false, is_trained_ = false;
};

// The tanh gelu an operation at a time, as transformers' NewGELUActivation writes it.

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Tensor GeluNew(const Tensor& x);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_LAYERS_H_
