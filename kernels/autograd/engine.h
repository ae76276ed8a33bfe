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

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

void Backward(const Tensor& output);
void Backward(const Tensor& output, Tensor grad);
// The caller holds `grads` to the end. An output may be a leaf: its gradient is put or added there.
void Backward(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_ENGINE_H_
