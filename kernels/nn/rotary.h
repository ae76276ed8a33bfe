// Rotary positions as transformers has them in llama and its kin (models/llama/modeling_llama.py): cosines and sines of
// whole heads, and halves that are turned by a cat.
#ifndef ASHLAR_KERNELS_NN_ROTARY_H_
#define ASHLAR_KERNELS_NN_ROTARY_H_

#include <cstdint>

#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

struct RotaryTables {
  Tensor cosines, sines;  // (1, S, D)
};

class RotaryEmbedding {
 public:
  RotaryEmbedding() = default;
  // `scales`: the tables are products with a factor, which is 1 here.
  RotaryEmbedding(Context& context, std::int64_t head_width, double theta, bool scales = false);
  // For positions (1, S) int64, in the dtype; without a graph.
  RotaryTables operator()(const Tensor& positions, DType dtype) const;

 private:
  double theta_ = 0;
  bool scales_ = false;
  Tensor frequencies_;  // a buffer, (D / 2) float
};

// x (B, H, S, D).
Tensor ApplyRotary(const Tensor& x, const RotaryTables& tables);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_ROTARY_H_
