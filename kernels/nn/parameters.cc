#include "kernels/nn/parameters.h"

#include <utility>

#include "kernels/nn/fill.h"

namespace ashlar::kernels {

Tensor Parameters::New(std::string name, Dims sizes, Init init) {
  Tensor tensor = Empty(context_, std::move(sizes), DType::kFloat32, Part::kWeights);
  if (context_.computes()) FillNormal(tensor, init.mean, init.deviation);
  tensor.set_requires_grad(true);
  all_.push_back({std::move(name), tensor});
  return tensor;
}

std::int64_t Parameters::count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : all_) count += parameter.tensor.elements();
  return count;
}

void ZeroGradients(const Parameters& parameters) {
  Context& context = parameters.context();
  for (const Parameter& parameter : parameters.all()) {
    Tensor tensor = parameter.tensor;
    if (!context.framework().zero_grad_keeps_gradients) {
      tensor.set_grad({});
    } else if (const Tensor grad = tensor.grad(); grad.defined() && context.computes()) {
      context.Do(ops::Fill{grad.view(), 0});
    }
  }
}

}  // namespace ashlar::kernels
