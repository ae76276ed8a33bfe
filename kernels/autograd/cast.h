// Casts: asked for, and by autocast's lists (autocast_mode.cpp 1.13, autocast_mode.h 2.6). A cast is an operation of
// the graph: the copy is what a product saves, and its gradient is cast back.
#ifndef ASHLAR_KERNELS_AUTOGRAD_CAST_H_
#define ASHLAR_KERNELS_AUTOGRAD_CAST_H_

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// The tensor itself where it has the dtype already.
Tensor Cast(const Tensor& tensor, DType dtype);

// The dtype of an elementwise result.
DType Promoted(const Tensor& a, const Tensor& b);

// For an operation of autocast's half list: a copy in the autocast dtype, outside a scope the tensor itself. Each use
// casts again; only a leaf that wants a gradient has one copy for the outermost scope.
Tensor ForProduct(const Tensor& tensor);
// For an operation of autocast's float32 list.
Tensor ForFloat(const Tensor& tensor);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_CAST_H_
