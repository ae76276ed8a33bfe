// Products, laid out and saved as PyTorch's (aten/native: LinearAlgebra.cpp, Linear.cpp, cuda/Blas.cpp; 1.13 and 2.6).
// All are on autocast's half list.
#ifndef ASHLAR_KERNELS_AUTOGRAD_MATMUL_H_
#define ASHLAR_KERNELS_AUTOGRAD_MATMUL_H_

#include "absl/strings/string_view.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

Tensor Mm(const Tensor& a, const Tensor& b);   // (M, K) x (K, N), contiguous
Tensor Bmm(const Tensor& a, const Tensor& b);  // (B, M, K) x (B, K, N), contiguous

// bias (N) + a (M, K) x b (K, N) in one call, where cublasLt takes a workspace of its own (from torch 1.13).
Tensor Addmm(const Tensor& bias, const Tensor& a, const Tensor& b);

// x (.., K) times weight (N, K) transposed, plus bias (N) where it is defined.
Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

// 2-D x 2-D, more x 2-D (folded), or both batched.
Tensor Matmul(const Tensor& a, const Tensor& b);

// einsum of two operands, one letter a dim, no dim of size 1 that the other has larger: "bsd,od->bso". The result is a
// view of one batched product.
Tensor Einsum(absl::string_view equation, const Tensor& a, const Tensor& b);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_MATMUL_H_
