// The transformer of Stanford's CS336 assignments, whose recorded steps are ground truth here: RMSNorm, SwiGLU and
// rotary positions in plain Python, attention with all scores, einsum linears, no bias. Each function frees where the
// Python one does.
#ifndef ASHLAR_TESTS_KERNELS_TEACHING_TRANSFORMER_H_
#define ASHLAR_TESTS_KERNELS_TEACHING_TRANSFORMER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/nn/parameters.h"

namespace ashlar::kernels {

struct TeachingConfig {
  std::int64_t vocabulary = 10'000;
  std::int64_t context_length = 128;
  std::int64_t width = 1024;
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t inner = 4096;
};

class TeachingTransformer {
 public:
  TeachingTransformer(Parameters& parameters, const TeachingConfig& config);

  // ids (B, S) int64; logits (B, S, vocabulary).
  Tensor Forward(const Tensor& ids) const;

 private:
  struct Layer {
    Tensor query, key, value, output;  // (width, width)
    Tensor gate, down, up;             // w1, w2, w3
    Tensor norm_attention, norm_feed_forward;
  };
  Tensor RunLayer(const Layer& layer, const Tensor& x) const;
  Tensor Attend(const Layer& layer, const Tensor& x) const;
  Tensor Rotate(const Tensor& x, std::int64_t length) const;

  Context& context_;
  TeachingConfig config_;
  Tensor embedding_;
  std::vector<Layer> layers_;
  Tensor final_norm_, head_;
  Tensor rotary_;  // (2, context_length, width / heads / 2): cosines, sines
};

// Mean of -log softmax(logits)[target], by max, subtract, exp, sum, log, negate, gather. logits (B, S, V), targets
// (B, S).
Tensor TeachingCrossEntropy(const Tensor& logits, const Tensor& targets);

}  // namespace ashlar::kernels

#endif  // ASHLAR_TESTS_KERNELS_TEACHING_TRANSFORMER_H_
