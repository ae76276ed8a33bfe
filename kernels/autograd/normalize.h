// Layer norm, softmax and dropout, as PyTorch's fused kernels save and free (layer_norm_kernel.cu, SoftMax.cu,
// Dropout.cu). Autocast computes the norm and softmax in float32.
#ifndef ASHLAR_KERNELS_AUTOGRAD_NORMALIZE_H_
#define ASHLAR_KERNELS_AUTOGRAD_NORMALIZE_H_

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// Over the last dim.
Tensor LayerNorm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon);
Tensor Softmax(const Tensor& x);
Tensor LogSoftmax(const Tensor& x);
// softmax(x, dtype=float32): half is read by the kernel as it is, bfloat16 is cast first.
Tensor SoftmaxInFloat(const Tensor& x);

// log_softmax(x, dtype=x.dtype), as cross_entropy asks for it: autocast leaves that alone (LossNLL.cpp).
Tensor LogSoftmaxAsItIs(const Tensor& x);

// The tensor itself where p is 0.
Tensor Dropout(const Tensor& x, double p);

// Losses over a vocabulary or classes, mean over the targets that are not ignored (ops::kIgnoreIndex).

// log_probabilities (N, V), targets (N) int64; a tensor without dims. Its gradient is a dense one of that size.
Tensor NllLoss(const Tensor& log_probabilities, const Tensor& targets);

// nn.CrossEntropyLoss: log_softmax, then the above. At its backward four tensors of N x V live: logits,
// log-probabilities, and a gradient of each.
Tensor CrossEntropy(const Tensor& logits, const Tensor& targets);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_NORMALIZE_H_
