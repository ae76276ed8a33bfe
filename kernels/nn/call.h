// The arguments of a model's call beside ids and labels, and the form of the mask that its layers get.
#ifndef ASHLAR_KERNELS_NN_CALL_H_
#define ASHLAR_KERNELS_NN_CALL_H_

#include <cstdint>
#include <vector>

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

struct Call {
  // attention_mask, (B, S) int64, of a batch whose samples differ in length; none: all are as long as the batch.
  Tensor mask = {};
  // Gets what the call returns beside the loss, for a caller whose variable holds it; nullptr: it ends with the call.
  std::vector<Tensor>* outputs = nullptr;
  // That the mask shows, of all samples; 0: as many as it has.
  std::int64_t tokens = 0;

  template <typename... Tensors>
  void Return(const Tensors&... tensors) const {
    if (outputs == nullptr) return;
    (outputs->push_back(tensors), ...);
  }
  // A tuple, which CPython ends from the last to the first (tupledealloc, Objects/tupleobject.c).
  void ReturnTuple(const std::vector<Tensor>& tensors) const {
    if (outputs != nullptr) outputs->insert(outputs->end(), tensors.rbegin(), tensors.rend());
  }
};

// What a layer gets of the attention mask: a bias of the scores, or with flash_attn the mask itself.
struct LayerMask {
  Tensor tensor;            // undefined: nothing is hidden
  std::int64_t tokens = 0;  // of all samples without padding, for flash_attn; 0: none is padding
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_CALL_H_
