// One element's step of AdamW and SGD, for both compilers, with the factors that the host computes once in double.
#ifndef ASHLAR_KERNELS_OPS_OPTIMIZER_RULES_H_
#define ASHLAR_KERNELS_OPS_OPTIMIZER_RULES_H_

#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/ops/kinds.h"

namespace ashlar::ops {

struct AdamWRule {
  float beta1 = 0;
  float beta2 = 0;
  float rest1 = 0;  // 1 - beta1
  float rest2 = 0;
  float epsilon = 0;
  float decay = 1;       // 1 - lr * weight_decay
  float step_size = 0;   // lr / (1 - beta1^step)
  float correction = 1;  // 1 / sqrt(1 - beta2^step)

  template <typename Op>
  static AdamWRule Of(const Op& op, double step) {
    return {.beta1 = static_cast<float>(op.beta1),
            .beta2 = static_cast<float>(op.beta2),
            .rest1 = static_cast<float>(1 - op.beta1),
            .rest2 = static_cast<float>(1 - op.beta2),
            .epsilon = static_cast<float>(op.epsilon),
            .decay = static_cast<float>(1 - op.learning_rate * op.weight_decay),
            .step_size = static_cast<float>(op.learning_rate / (1 - std::pow(op.beta1, step))),
            .correction = static_cast<float>(1 / std::sqrt(1 - std::pow(op.beta2, step)))};
  }

  // The new parameter; the states change in place.
  ASHLAR_HOST_DEVICE float Step(float parameter, float gradient, float& first, float& second) const {
    first = beta1 * first + rest1 * gradient;
    second = beta2 * second + rest2 * gradient * gradient;
    return parameter * decay - step_size * first / (sqrtf(second) * correction + epsilon);
  }
};

struct SgdRule {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  bool is_nesterov = false;
  bool is_first = false;

  template <typename Op>
  static SgdRule Of(const Op& op) {
    return {.learning_rate = static_cast<float>(op.learning_rate),
            .momentum = static_cast<float>(op.momentum),
            .weight_decay = static_cast<float>(op.weight_decay),
            .is_nesterov = op.is_nesterov,
            .is_first = op.is_first};
  }

  ASHLAR_HOST_DEVICE float Step(float parameter, float gradient, float& mean) const {
    const float g = gradient + weight_decay * parameter;
    if (momentum == 0) return parameter - learning_rate * g;
    mean = is_first ? g : momentum * mean + g;
    return parameter - learning_rate * (is_nesterov ? g + momentum * mean : mean);
  }
};

// The 8-bit codes of AdamW8Bit: 256 values in [-1, 1] or [0, 1], dense near 0, that scale with the largest magnitude of
// a block. Built as bitsandbytes' create_dynamic_map(signed, 7, 8) builds them (Dettmers et al., arXiv 2110.02861,
// section 2.2): for each power of ten 1e-6 .. 1e0 the midpoints of 2^i (unsigned 2^(i+1)) equal steps of [0.1, 1], with
// both signs if signed, and 0 and 1.

using Map8Bit = std::array<float, 256>;
const Map8Bit& SignedMap8Bit();    // ascending; code 127 is 0
const Map8Bit& UnsignedMap8Bit();  // ascending; code 0 is 0
inline constexpr std::uint8_t kSignedZeroCode = 127;
inline constexpr std::uint8_t kUnsignedZeroCode = 0;

// The code of the value nearest to `x` in the ascending `map` of 256; of two as near, the smaller.
ASHLAR_HOST_DEVICE std::uint8_t NearestCode(const float* map, float x) {
  int low = 0;
  int high = 255;  // map[low] < x <= map[high], but at the ends
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (map[middle] < x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return static_cast<std::uint8_t>(map[high] - x < x - map[low] ? high : low);
}

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_OPTIMIZER_RULES_H_
