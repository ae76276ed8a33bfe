// The tanh gelu an operation at a time, as transformers' NewGELUActivation writes it.
#ifndef ASHLAR_KERNELS_NN_GELU_NEW_H_
#define ASHLAR_KERNELS_NN_GELU_NEW_H_

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Tensor GeluNew(const Tensor& x);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_GELU_NEW_H_
