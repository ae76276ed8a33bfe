// Activation checkpointing: a segment keeps its inputs alone and is run again for its gradients
// (torch/utils/checkpoint.py, the reentrant form, 1.10 to 2.6).
//
//   x = Checkpoint({x, mask}, [&](absl::Span<const Tensor> in) { return RunLayer(layer, in[0], in[1]); });
//
// What a layer needs is handed in: its backward ends it, and what the function holds lives as long as the graph.
//
// Forward runs without a graph. Backward runs the segment again with one, under the autocast of the first time and with
// its random numbers, and then a backward of its own, so that one segment's activations exist at a time.
// An input must want a gradient, else the segment's parameters get none: where frozen embeddings come before the
// segments, WantGradient makes their output want one. An output that no gradient comes for gets one of zeros. What is
// undefined among the inputs is so in the segment.
#ifndef ASHLAR_KERNELS_AUTOGRAD_CHECKPOINT_H_
#define ASHLAR_KERNELS_AUTOGRAD_CHECKPOINT_H_

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

using Segment = std::function<std::vector<Tensor>(absl::Span<const Tensor> in)>;

std::vector<Tensor> Checkpoint(const std::vector<Tensor>& in, Segment segment);
Tensor Checkpoint(const std::vector<Tensor>& in, std::function<Tensor(absl::Span<const Tensor> in)> segment);

// What enable_input_require_grads of transformers does to the output of the word embeddings. Its gradient is kept as
// long as it is.
void WantGradient(Tensor& embedded);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_CHECKPOINT_H_
