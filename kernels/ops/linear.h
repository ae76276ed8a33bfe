// Products, normalisation and rotary positions. Sums are float whatever the dtypes.
#ifndef ASHLAR_KERNELS_OPS_LINEAR_H_
#define ASHLAR_KERNELS_OPS_LINEAR_H_

#include <optional>

#include "kernels/ops/view.h"

namespace ashlar::ops {

// out = scale * left x right + out_scale * out + bias. left (M, K), right (K, N), out (M, N), or all with one leading
// batch dim (a batch stride of 0 repeats). All of one float dtype. A transposed operand is a view: left and right have
// one stride of 1 among their last two dims and the other at least as long as the row; out has rows with stride 1.
// bias (N), or with two dims broadcast to (M, N). With out_scale 0, what lies in `out` is not read.
struct MatMul {
  static constexpr char kName[] = "matmul";
  View left;
  View right;
  std::optional<View> bias = {};
  double scale = 1;
  double out_scale = 0;
  View out;
};

// Over the last dim of D elements; the other dims are rows. Operands contiguous; weight and bias (D) of any float
// dtype.
//   out = (in - mean) * rstd * weight + bias      mean, rstd: float32, one a row; rstd = 1 / sqrt(variance + epsilon)
struct LayerNorm {
  static constexpr char kName[] = "layer_norm";
  View in;
  std::optional<View> weight = {};
  std::optional<View> bias = {};
  double epsilon = 1e-5;
  View out;
  View mean;
  View rstd;
};

// Each gradient is written if asked for; weight's and bias's are summed over the rows.
struct LayerNormBackward {
  static constexpr char kName[] = "layer_norm_backward";
  View grad;
  View in;
  std::optional<View> weight = {};
  View mean;
  View rstd;
  std::optional<View> grad_in = {};
  std::optional<View> grad_weight = {};
  std::optional<View> grad_bias = {};
};

//   out = in * rstd * weight,  rstd = 1 / sqrt(mean(in^2) + epsilon)
struct RmsNorm {
  static constexpr char kName[] = "rms_norm";
  View in;
  std::optional<View> weight = {};
  double epsilon = 1e-6;
  View out;
  View rstd;
};

struct RmsNormBackward {
  static constexpr char kName[] = "rms_norm_backward";
  View grad;
  View in;
  std::optional<View> weight = {};
  View rstd;
  std::optional<View> grad_in = {};
  std::optional<View> grad_weight = {};
};

// Turns pairs (a, b) of the last dim by the angle of their position: (a cos - b sin, a sin + b cos). in and out
// (B, S, H, D) of any strides, D even; cos and sin (S, D / 2), float32. Pairs are (i, i + D/2), or (2i, 2i + 1) if
// interleaved. `is_inverse` turns back, which is the gradient. out may be in.
struct Rotary {
  static constexpr char kName[] = "rotary";
  View in;
  View cos;
  View sin;
  bool is_interleaved = false;
  bool is_inverse = false;
  View out;
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_LINEAR_H_
