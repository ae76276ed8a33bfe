// Runs a graph backwards, with the lifetimes of PyTorch's engine (torch/csrc/autograd/engine.cpp, input_buffer.cpp):
// nodes by descending creation number, leaves' accumulation before all; a node's outputs are summed and cast to what
// the next node expects while its incoming gradients are still held; then these end, then what the node saved.
//
//   Backward(loss);                       // allocates the one, d loss / d loss, and holds it to the end
//   Backward(output, std::move(grad));    // with a gradient given
//   Backward(outputs, grads);             // of several; as a recomputed segment does
//
// Afterwards the graph's saved tensors are gone: a second Backward through it is a bug. Failures are in the memory's
// status().
#ifndef ASHLAR_KERNELS_AUTOGRAD_ENGINE_H_
#define ASHLAR_KERNELS_AUTOGRAD_ENGINE_H_

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

void Backward(const Tensor& output);
void Backward(const Tensor& output, Tensor grad);
// The caller holds `grads` to the end. An output may be a leaf: its gradient is put or added there.
void Backward(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads);

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

using Segment = std::function<std::vector<Tensor>(absl::Span<const Tensor> in)>;

std::vector<Tensor> Checkpoint(const std::vector<Tensor>& in, Segment segment);
Tensor Checkpoint(const std::vector<Tensor>& in, std::function<Tensor(absl::Span<const Tensor> in)> segment);

// What enable_input_require_grads of transformers does to the output of the word embeddings. Its gradient is kept as
// long as it is.
void WantGradient(Tensor& embedded);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_ENGINE_H_
