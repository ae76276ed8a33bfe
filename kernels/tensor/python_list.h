// Lists of tensors that end as Python's do.
#ifndef ASHLAR_KERNELS_TENSOR_PYTHON_LIST_H_
#define ASHLAR_KERNELS_TENSOR_PYTHON_LIST_H_

#include <vector>

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// From the last tensor to the first: list_dealloc of CPython's Objects/listobject.c.
inline void EndList(std::vector<Tensor>& list) {
  while (!list.empty()) list.pop_back();
}

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_PYTHON_LIST_H_
