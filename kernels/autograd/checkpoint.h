// Activation checkpointing: a segment keeps its input alone and is run again for its gradients
// (torch/utils/checkpoint.py, the reentrant form, 1.10 to 2.6).
//
//   x = Checkpoint(x, [&](const Tensor& in) { return RunLayer(layer, in); });
//
// Forward runs without a graph. Backward runs the segment again with one, under the autocast of the first time and with
// its random numbers, and then a backward of its own, so that one segment's activations exist at a time.
// The input must want a gradient, else the segment's parameters get none.
#ifndef ASHLAR_KERNELS_AUTOGRAD_CHECKPOINT_H_
#define ASHLAR_KERNELS_AUTOGRAD_CHECKPOINT_H_

#include <functional>

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

using Segment = std::function<Tensor(const Tensor& in)>;

Tensor Checkpoint(const Tensor& in, Segment segment);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_CHECKPOINT_H_
