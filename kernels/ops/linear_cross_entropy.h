// The loss of a linear layer over a large vocabulary, a chunk of rows at a time: logits in x weight^T, their loss,
// their gradient in place, and its products, so that (N, V) logits never exist; only (chunk, V) do. Both gradients are
// made in the same pass, for a loss whose own gradient is 1. Made of other ops, so it runs in every world. Source of
// the idea: Hsu et al., "Liger Kernel", arXiv 2410.10989, section 3.2.
#ifndef ASHLAR_KERNELS_OPS_LINEAR_CROSS_ENTROPY_H_
#define ASHLAR_KERNELS_OPS_LINEAR_CROSS_ENTROPY_H_

#include "absl/status/status.h"
#include "kernels/ops/ops.h"

namespace ashlar::ops {

// in (N, D), weight (V, D), targets (N). The caller's buffers: logits (C, V) in in's dtype, whose C rows are the chunk;
// row_loss and log_sum_exp (C), chunk_loss (2), loss and total (one), all float32. Written: loss = mean over the
// targets not ignored, total, grad_in (N, D), grad_weight (V, D). A float16 or bfloat16 grad_weight is rounded once a
// chunk. All contiguous.
struct LinearCrossEntropy {
  static constexpr char kName[] = "linear_cross_entropy";
  View in;
  View weight;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View logits;
  View row_loss;
  View log_sum_exp;
  View chunk_loss;
  View loss;
  View total;
  View grad_in;
  View grad_weight;
};

absl::Status RunLinearCrossEntropy(Ops& ops, const LinearCrossEntropy& op);

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_LINEAR_CROSS_ENTROPY_H_
