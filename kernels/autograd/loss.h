// Losses over a vocabulary or classes, mean over the targets that are not ignored (ops::kIgnoreIndex).
#ifndef ASHLAR_KERNELS_AUTOGRAD_LOSS_H_
#define ASHLAR_KERNELS_AUTOGRAD_LOSS_H_

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// log_probabilities (N, V), targets (N) int64; a tensor without dims. Its gradient is a dense one of that size.
Tensor NllLoss(const Tensor& log_probabilities, const Tensor& targets);

// nn.CrossEntropyLoss: log_softmax, then the above. At its backward four tensors of N x V live: logits,
// log-probabilities, and a gradient of each.
Tensor CrossEntropy(const Tensor& logits, const Tensor& targets);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_LOSS_H_
