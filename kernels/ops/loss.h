// Embedding lookup and the losses over a vocabulary. Indices and targets are int64 or int32. An index outside the
// vocabulary is kOutOfRange on the host, naming it and where it stands. CUDA cannot say so without a synchronise: there
// a lookup gives a row of NaN, a target a loss of NaN, and a gradient leaves it out.
#ifndef ASHLAR_KERNELS_OPS_LOSS_H_
#define ASHLAR_KERNELS_OPS_LOSS_H_

#include <cstdint>

#include "kernels/ops/view.h"

namespace ashlar::ops {

// out (.., D) = weight (V, D)[indices (..)]. Contiguous; weight and out of one float dtype.
struct Embedding {
  static constexpr char kName[] = "embedding";
  View weight;
  View indices;
  View out;
};

// grad_weight (V, D) = the rows of grad (.., D) summed by their index, in the order in which they stand: float sums,
// the same result each time. Rows that no index names, and that of padding_index, are 0; with is_accumulated they keep
// what they hold and the others add to it. Contiguous.
struct EmbeddingBackward {
  static constexpr char kName[] = "embedding_backward";
  View grad;
  View indices;
  std::int64_t padding_index = -1;
  bool is_accumulated = false;
  View grad_weight;
};

// The targets' ignored rows are those whose target is ignore_index: no loss, no gradient, not counted.
inline constexpr std::int64_t kIgnoreIndex = -100;

// total (one float32) = how many targets are not ignored.
struct CountTargets {
  static constexpr char kName[] = "count_targets";
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View total;
};

// loss = -sum log_probabilities (N, V)[i, targets (N)[i]] / total, total = the targets not ignored; both one float32.
// No targets at all: NaN. Contiguous.
struct NllLoss {
  static constexpr char kName[] = "nll_loss";
  View log_probabilities;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View loss;
  View total;
};

// out (N, V), written whole: -grad_loss / total at the targets, 0 elsewhere.
struct NllLossBackward {
  static constexpr char kName[] = "nll_loss_backward";
  View grad_loss;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View total;
  View out;
};

// Softmax and NLL in one pass over logits (N, V), any float dtype: row_loss and log_sum_exp (N) float32, and with them
// loss and total as above (loss = sum of row_loss / total). An ignored row's row_loss is 0.
struct CrossEntropy {
  static constexpr char kName[] = "cross_entropy";
  View logits;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View row_loss;
  View log_sum_exp;
  View loss;
  View total;
};

// out (N, V) = grad_loss / total * (softmax(logits) - one_hot(targets)); 0 in ignored rows. out may be logits.
struct CrossEntropyBackward {
  static constexpr char kName[] = "cross_entropy_backward";
  View grad_loss;
  View logits;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View log_sum_exp;
  View total;
  View out;
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_LOSS_H_
