#include "kernels/autograd/node.h"

#include <limits>

namespace ashlar::kernels {
namespace {

// The end of the graph at a leaf: puts or adds the gradient into it.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor leaf)
      : Node("AccumulateGrad", std::numeric_limits<std::uint64_t>::max()), leaf_(std::move(leaf)) {
    expected.push_back({leaf_.sizes(), leaf_.dtype()});
    leaf_.body().accumulator = this;
    module = leaf_.context().memory().module();
  }
  ~AccumulateGrad() override { leaf_.body().accumulator = nullptr; }

  void Run(Context& context, absl::Span<Tensor> grads, absl::Span<Tensor>) override {
    Tensor grad = std::move(grads[0]);
    if (const Tensor held = leaf_.grad(); held.defined()) {
      if (context.computes()) {
        context.Do(ops::Binary{ops::BinaryKind::kAdd, held.view(), grad.view(), 1, held.view()});
      }
      return;
    }
    // Nobody else holds it and its layout is the parameter's: it is taken as it is, else copied into that layout.
    if (grad.use_count() != 1 || !HasLayoutOf(grad)) {
      Tensor copy = IsDense(leaf_.layout()) ? EmptyStrided(context, {grad.sizes(), leaf_.strides()}, grad.dtype())
                                            : EmptyOf(grad, grad.sizes());
      if (context.computes()) context.Do(ops::Copy{grad.view(), copy.view()});
      grad = std::move(copy);
    } else {
      grad = Detach(grad);
    }
    grad.set_part(Part::kGradients);
    leaf_.set_grad(std::move(grad));
  }

 private:
  bool HasLayoutOf(const Tensor& grad) const {
    if (!IsDense(leaf_.layout())) return IsContiguous(grad.layout());
    for (std::size_t dim = 0; dim < grad.sizes().size(); ++dim) {
      if (grad.sizes()[dim] != 1 && grad.strides()[dim] != leaf_.strides()[dim]) return false;
    }
    return true;
  }

  Tensor leaf_;
};

}  // namespace

Edge EdgeOf(const Tensor& tensor) {
  if (!tensor.requires_grad()) return {};
  TensorBody& body = tensor.body();
  if (body.made_by) return {body.made_by, body.output};
  if (body.accumulator != nullptr) return {Ref<Node>(body.accumulator), 0};
  return {Ref<Node>(new AccumulateGrad(tensor)), 0};
}

void Attach(const Ref<Node>& node, absl::Span<Tensor* const> outputs) {
  for (Tensor* output : outputs) {
    TensorBody& body = output->body();
    body.requires_grad = true;
    body.made_by = node;
    body.output = static_cast<std::uint32_t>(node->expected.size());
    node->expected.push_back({output->sizes(), output->dtype()});
  }
}

}  // namespace ashlar::kernels
