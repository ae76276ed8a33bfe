// Optimizer steps in place. Tensors are contiguous; parameters and gradients of any float dtype, states float32 unless
// said. A list is one launch for as many tensors as a kernel's arguments hold, so a list of one is the per-parameter
// form and a long list the multi-tensor one (AdamW8Bit is a launch a tensor). Arithmetic is float.
#ifndef ASHLAR_KERNELS_OPS_OPTIMIZER_H_
#define ASHLAR_KERNELS_OPS_OPTIMIZER_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "kernels/ops/view.h"

namespace ashlar::ops {

// What a fused step reads on the device, so that the host never waits for it. One float32 each.
struct OnDevice {
  std::optional<View> inverse_scale = {};   // gradients are multiplied by it first
  std::optional<View> found_infinite = {};  // not 0: the step changes nothing
  std::optional<View> step = {};            // the step's number, in place of `step` of the op
};

struct AdamWTensor {
  View parameter;
  View gradient;
  View first;   // exponential mean of the gradient
  View second;  // and of its square
};

// Decoupled decay (Loshchilov, Hutter, arXiv 1711.05101), as torch.optim.AdamW:
//   p *= 1 - lr * decay;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^step)) + epsilon)
struct AdamWStep {
  static constexpr char kName[] = "adamw";
  absl::Span<const AdamWTensor> tensors;
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::int64_t step = 1;  // counted from 1
  OnDevice on_device = {};
};

struct AdamW8BitTensor {
  View parameter;
  View gradient;
  View first;        // uint8 codes of SignedMap8Bit()
  View first_scale;  // float32, the largest magnitude of each block of kBlock8Bit elements
  View second;       // uint8 codes of UnsignedMap8Bit()
  View second_scale;
};
inline constexpr std::int64_t kBlock8Bit = 2048;

// AdamW whose states are block-wise 8-bit codes (Dettmers et al., arXiv 2110.02861). States start as the code of 0
// (kSignedZeroCode and kUnsignedZeroCode of optimizer_rules.h) with scales 0.
struct AdamW8BitStep {
  static constexpr char kName[] = "adamw_8bit";
  absl::Span<const AdamW8BitTensor> tensors;
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::int64_t step = 1;
};

struct SgdTensor {
  View parameter;
  View gradient;
  std::optional<View> momentum = {};
};

// g += decay p;  m = is_first ? g : momentum m + g;  p -= lr (is_nesterov ? g + momentum m : m); no momentum: p -= lr
// g.
struct SgdStep {
  static constexpr char kName[] = "sgd";
  absl::Span<const SgdTensor> tensors;
  double learning_rate = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  bool is_nesterov = false;
  bool is_first = false;
};

// Adafactor (Shazeer, Stern, arXiv 1804.04235), one tensor. A matrix (R, C) has row (R) and column (C) means of the
// squared gradient, anything else a full `second`:
//   u = g^2 + epsilon1;  row = beta2 row + (1 - beta2) mean_c u;  column likewise;  v = row column / mean(row)
//   update = g / sqrt(v);  update /= max(1, rms(update) / clip_threshold)
//   a = is_scaled ? lr * max(epsilon2, rms(p)) : lr;  p = p (1 - decay * a) - a update
// beta2 is the step's own: 1 - step^-0.8 in the paper. Scratch: a few floats for each block of the sums, no tensor.
struct AdafactorStep {
  static constexpr char kName[] = "adafactor";
  View parameter;
  View gradient;
  std::optional<View> row = {};
  std::optional<View> column = {};
  std::optional<View> second = {};
  double learning_rate = 1e-2;
  double beta2 = 0;
  double epsilon1 = 1e-30;
  double epsilon2 = 1e-3;
  double clip_threshold = 1;
  double weight_decay = 0;
  bool is_scaled = true;
};

// norm (one float32) = the 2-norm of all gradients together; each is scaled by min(1, most / (norm + 1e-6)).
struct ClipNorm {
  static constexpr char kName[] = "clip_norm";
  absl::Span<const View> gradients;
  double most = 1;
  View norm;
};

// gradients *= inverse_scale; found_infinite (one float32) becomes 1 where a gradient is inf or NaN, else stays.
struct Unscale {
  static constexpr char kName[] = "unscale";
  absl::Span<const View> gradients;
  View inverse_scale;
  View found_infinite;
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_OPTIMIZER_H_
