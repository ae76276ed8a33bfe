#include "kernels/nn/gelu_new.h"

#include <cmath>
#include <numbers>

#include "kernels/autograd/pointwise.h"

namespace ashlar::kernels {

Tensor GeluNew(const Tensor& x) {
  Tensor half = MulScalar(x, 0.5);
  Tensor cube = Cube(x);
  Tensor scaled = MulScalar(cube, 0.044715);
  cube.reset();
  Tensor sum = Add(x, scaled);
  scaled.reset();
  Tensor inner = MulScalar(sum, std::sqrt(2 / std::numbers::pi));
  sum.reset();
  Tensor tanh = Unary(ops::UnaryKind::kTanh, inner);
  inner.reset();
  Tensor shifted = AddScalar(tanh, 1);
  tanh.reset();
  return Mul(half, shifted);
}

}  // namespace ashlar::kernels
