#include "kernels/optim/gradient_norm.h"

#include <vector>

#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"

namespace ashlar::kernels {
namespace {

Tensor Scalar(Context& context) { return Empty(context, {}, DType::kFloat32); }

}  // namespace

void HoldScratchOf(const Tensor& x, const Dims& kept) {
  const ReductionScratch scratch = ScratchOfReduction(x.context().gpu(), x.layout(), kept);
  if (scratch.partial_bytes == 0) return;
  const Tensor partial = Empty(x.context(), {static_cast<std::int64_t>(scratch.partial_bytes)}, DType::kUint8);
  const Tensor counters = Empty(x.context(), {static_cast<std::int64_t>(scratch.counter_bytes)}, DType::kUint8);
}

void ClipGradientNorm(const Parameters& parameters, double most) {
  Context& context = parameters.context();
  const NoGrad no_grad(context);
  std::vector<Tensor> norms;
  std::vector<ops::View> gradients;
  for (const Parameter& parameter : parameters.all()) {
    const Tensor grad = parameter.tensor.grad();
    if (!grad.defined()) continue;
    norms.push_back(Scalar(context));
    HoldScratchOf(grad, Dims(grad.sizes().size(), 1));
    gradients.push_back(grad.view());
  }
  const Tensor stacked = Empty(context, {static_cast<std::int64_t>(norms.size())}, DType::kFloat32);
  norms.clear();
  const Tensor total = Scalar(context);
  const Tensor factor = Scalar(context), clamped = Scalar(context);
  if (context.computes()) context.Do(ops::ClipNorm{gradients, most, total.view()});
}

Tensor GradientScaler::Scale(const Tensor& loss) {
  if (!device_scale_.defined()) {
    device_scale_ = Scalar(context_);
    growth_ = Empty(context_, {}, DType::kInt32);
    if (context_.computes()) context_.Do(ops::Fill{device_scale_.view(), scale_});
  }
  return Mul(loss, device_scale_);
}

bool GradientScaler::Unscale(const Parameters& parameters) {
  const NoGrad no_grad(context_);
  Tensor wide = Empty(context_, {2}, DType::kFloat32);  // float64, on the way to the reciprocal
  const Tensor inverse = Scalar(context_), found = Scalar(context_);
  wide.reset();
  if (!context_.computes()) return true;
  context_.Do(ops::Fill{inverse.view(), 1 / scale_});
  context_.Do(ops::Fill{found.view(), 0});
  std::vector<ops::View> gradients;
  for (const Parameter& parameter : parameters.all()) {
    if (const Tensor grad = parameter.tensor.grad(); grad.defined()) gradients.push_back(grad.view());
  }
  context_.Do(ops::Unscale{gradients, inverse.view(), found.view()});
  float value = 0;
  context_.CopyBytes(&value, found.view().data, sizeof(value));
  return value == 0;
}

}  // namespace ashlar::kernels
