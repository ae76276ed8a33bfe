// Operations of one element at a time, with the graph behind them. Sizes broadcast; the result's dtype is the wider of
// the operands' (a tensor without dims and a number do not widen); its strides follow the operands' order of dims. What
// is saved and what backward allocates, in which order: derivatives.yaml and FunctionsManual.cpp of PyTorch 2.6.
#ifndef ASHLAR_KERNELS_AUTOGRAD_POINTWISE_H_
#define ASHLAR_KERNELS_AUTOGRAD_POINTWISE_H_

#include "kernels/ops/elementwise.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// Casts: asked for, and by autocast's lists (autocast_mode.cpp 1.13, autocast_mode.h 2.6). A cast is an operation of
// the graph: the copy is what a product saves, and its gradient is cast back.

// The tensor itself where it has the dtype already.
Tensor Cast(const Tensor& tensor, DType dtype);

// The dtype of an elementwise result.
DType Promoted(const Tensor& a, const Tensor& b);

// For an operation of autocast's half list: a copy in the autocast dtype, outside a scope the tensor itself. Each use
// casts again; only a leaf that wants a gradient has one copy for the outermost scope.
Tensor ForProduct(const Tensor& tensor);
// For an operation of autocast's float32 list.
Tensor ForFloat(const Tensor& tensor);

Tensor Add(const Tensor& a, const Tensor& b);
Tensor Sub(const Tensor& a, const Tensor& b);
Tensor Mul(const Tensor& a, const Tensor& b);
Tensor Div(const Tensor& a, const Tensor& b);

Tensor AddScalar(const Tensor& x, double shift);
Tensor MulScalar(const Tensor& x, double scale);
Tensor DivScalar(const Tensor& x, double divisor);
Tensor Neg(const Tensor& x);
Tensor Square(const Tensor& x);  // pow(x, 2)
Tensor Cube(const Tensor& x);    // pow(x, 3)

// Of the kinds that are one operation forward and one backward: exp, log, sigmoid, tanh, relu, silu, gelu. Sqrt and
// rsqrt make temporaries backward. Autocast computes exp, log and rsqrt in float32.
Tensor Unary(ops::UnaryKind kind, const Tensor& x);

// A tensor without dims of x's dtype.
Tensor ScalarOf(const Tensor& x, double value);
// mask ? x : scalar, one of the above; with a value it lives for the call.
Tensor WhereOr(const Tensor& mask, const Tensor& x, const Tensor& scalar);
Tensor WhereOrValue(const Tensor& mask, const Tensor& x, double value);
// mask ? value : x; the mask broadcasts.
Tensor MaskedFill(const Tensor& x, const Tensor& mask, double value);

// The mask is a bool tensor, no gradient.
Tensor Compare(ops::CompareKind kind, const Tensor& a, const Tensor& b);

// x += y with a graph: the same storage, to go on with in place of x.
Tensor AddTo(const Tensor& x, const Tensor& y);

// x += y and x *= scale, where the values lie; no graph.
void AddInPlace(const Tensor& x, const Tensor& y, double scale = 1);
void MulInPlace(const Tensor& x, double scale);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_POINTWISE_H_
