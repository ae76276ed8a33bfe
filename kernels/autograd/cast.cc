#include "kernels/autograd/cast.h"

#include "kernels/autograd/node.h"

namespace ashlar::kernels {

Tensor AutocastTo(const Tensor& tensor, DType dtype) {
  Context& context = tensor.context();
  const bool is_cached = tensor.dtype() == DType::kFloat32 && tensor.requires_grad() && !tensor.body().made_by &&
                         (!context.in_inference_mode() || context.framework().caches_casts_in_inference_mode);
  if (!is_cached) return Cast(tensor, dtype);
  const auto [it, is_new] = context.cast_index_.try_emplace(&tensor.body(), context.cast_copies_.size());
  if (is_new) context.cast_copies_.push_back(Cast(tensor, dtype));
  return context.cast_copies_[it->second];
}

Tensor Cast(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  const InOperation in(tensor.context(), "to");
  Context& context = tensor.context();
  Tensor out = EmptyLike(tensor, dtype);
  if (context.computes()) context.Do(ops::Copy{tensor.view(), out.view()});
  if (Records(tensor)) {
    Record("ToCopyBackward", out, {tensor}, {},
           [from = tensor.dtype()](Gradients& g) { g.out[0] = Cast(g.grad, from); });
  }
  return out;
}

DType Promoted(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return a.dtype();
  if (ops::IsFloat(a.dtype()) != ops::IsFloat(b.dtype())) return ops::IsFloat(a.dtype()) ? a.dtype() : b.dtype();
  if ((a.rank() == 0) != (b.rank() == 0)) return a.rank() == 0 ? b.dtype() : a.dtype();
  return ops::IsFloat(a.dtype()) ? DType::kFloat32 : DType::kInt64;
}

Tensor ForProduct(const Tensor& tensor) {
  Context& context = tensor.context();
  if (!context.autocasts() || !ops::IsFloat(tensor.dtype()) || tensor.dtype() == context.autocast_dtype()) {
    return tensor;
  }
  return AutocastTo(tensor, context.autocast_dtype());
}

Tensor ForFloat(const Tensor& tensor) {
  if (!tensor.context().autocasts() || !ops::IsFloat(tensor.dtype())) return tensor;
  return Cast(tensor, DType::kFloat32);
}

}  // namespace ashlar::kernels
