#include "kernels/optim/gradient_norm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {
namespace {

constexpr std::int64_t kChunk = 65'536;         // elements, of MultiTensorApply.cuh
constexpr std::int64_t kGrowthInterval = 2000;  // GradScaler's

Tensor Scalar(Context& context) { return Empty(context, {}, DType::kFloat32); }

std::vector<Tensor> NormsOneByOne(Context& context, const std::vector<Tensor>& gradients) {
  std::vector<Tensor> norms;
  for (const Tensor& grad : gradients) {
    norms.push_back(Scalar(context));
    HoldScratchOf(grad, Dims(grad.sizes().size(), 1));
  }
  return norms;
}

std::vector<Tensor> NormsInLists(Context& context, const std::vector<Tensor>& gradients) {
  const auto count = static_cast<std::int64_t>(gradients.size());
  std::int64_t most_chunks = 0;
  for (const Tensor& grad : gradients) most_chunks = std::max(most_chunks, (grad.elements() + kChunk - 1) / kChunk);
  const Tensor of_chunks = Empty(context, {count * most_chunks}, DType::kFloat32);
  if (context.framework().foreach_norms_are_one_tensor) return {Empty(context, {count}, DType::kFloat32)};
  std::vector<Tensor> norms;
  for (std::int64_t i = 0; i < count; ++i) norms.push_back(Scalar(context));
  return norms;
}

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
  std::vector<Tensor> gradients;
  for (const Parameter& parameter : parameters.all()) {
    if (Tensor grad = parameter.tensor.grad(); grad.defined()) gradients.push_back(std::move(grad));
  }
  if (gradients.empty()) return;
  std::vector<Tensor> norms =
      context.framework().norms_are_foreach ? NormsInLists(context, gradients) : NormsOneByOne(context, gradients);
  Tensor stacked = Empty(context, {static_cast<std::int64_t>(gradients.size())}, DType::kFloat32);
  if (!context.framework().norms_are_foreach) EndList(norms);
  const Tensor total = Scalar(context);
  HoldScratchOf(stacked, {1});
  stacked.reset();
  EndList(norms);
  Tensor sum = Scalar(context), reciprocal = Scalar(context);  // most / (total + 1e-6)
  const Tensor factor = Scalar(context);
  Release(reciprocal, sum);
  const Tensor clamped = Scalar(context);
  if (!context.computes()) return;
  std::vector<ops::View> views;
  for (const Tensor& grad : gradients) views.push_back(grad.view());
  context.Do(ops::ClipNorm{views, most, total.view()});
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
  Tensor wide = Empty(context_, {2}, DType::kFloat32);  // scale.double().reciprocal().float(): float64 is two floats
  Tensor reciprocal = Empty(context_, {2}, DType::kFloat32);
  wide.reset();
  const Tensor inverse = Scalar(context_);
  reciprocal.reset();
  found_ = Scalar(context_);
  if (!context_.computes()) return true;
  context_.Do(ops::Fill{inverse.view(), 1 / scale_});
  context_.Do(ops::Fill{found_.view(), 0});
  std::vector<ops::View> gradients;
  for (const Parameter& parameter : parameters.all()) {
    if (const Tensor grad = parameter.tensor.grad(); grad.defined()) gradients.push_back(grad.view());
  }
  context_.Do(ops::Unscale{gradients, inverse.view(), found_.view()});
  float value = 0;
  context_.CopyBytes(&value, found_.view().data, sizeof(value));
  is_finite_ = value == 0;
  return is_finite_;
}

void GradientScaler::Update() {
  found_.reset();
  if (!device_scale_.defined() || !context_.computes()) return;
  finite_steps_ = is_finite_ ? finite_steps_ + 1 : 0;
  if (is_finite_ && finite_steps_ < kGrowthInterval) return;
  finite_steps_ = 0;
  scale_ *= is_finite_ ? 2 : 0.5;
  context_.Do(ops::Fill{device_scale_.view(), scale_});
}

}  // namespace ashlar::kernels
