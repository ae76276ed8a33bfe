#include "kernels/autograd/normalize.h"

#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

void LayerNormGradient(Gradients& g) {
  // Freed in this order: bias, input, mean, rstd, weight.
  const Tensor &bias = g.saved[0], &in = g.saved[1], &mean = g.saved[2], &rstd = g.saved[3], &weight = g.saved[4];
  const Tensor grad = Contiguous(g.grad);
  if (g.Needs(0)) g.out[0] = EmptyLike(in);
  if (g.Needs(1)) g.out[1] = EmptyLike(weight);
  if (g.Needs(2)) g.out[2] = EmptyLike(bias);
  if (!g.context.computes()) return;
  ops::LayerNormBackward op{grad.view(), in.view(), weight.view(), mean.view(), rstd.view(), {}, {}, {}};
  if (g.Needs(0)) op.grad_in = g.out[0].view();
  if (g.Needs(1)) op.grad_weight = g.out[1].view();
  if (g.Needs(2)) op.grad_bias = g.out[2].view();
  g.context.Do(op);
}

Tensor SoftmaxGradient(Context& context, const Tensor& grad_in, const Tensor& result, DType dtype, bool is_log) {
  const Tensor grad = Contiguous(grad_in);
  // The plain softmax multiplies first, into a tensor that is gone at the end.
  const bool has_product = !is_log, is_first = context.framework().softmax_backward_product_first;
  Tensor product;
  if (has_product && is_first) product = EmptyLike(grad);
  Tensor out = EmptyLike(result, dtype);
  if (has_product && !is_first) product = EmptyLike(grad);
  if (context.computes()) {
    context.Do(ops::SoftmaxBackward{grad.view(), result.view(), is_log, 1, out.view()});
  }
  return out;
}

// Of the dtype that a caller asked for, autocast or not; of autocast's where it asked for none.
enum class SoftmaxDType : std::uint8_t { kOfAutocast, kFloat, kOwn };

Tensor SoftmaxOf(const Tensor& input, bool is_log, SoftmaxDType wanted) {
  const InOperation in(input.context(), is_log ? "log_softmax" : "softmax");
  Context& context = input.context();
  // Half is read by the kernel as it is, bfloat16 is cast first.
  const bool widens = wanted == SoftmaxDType::kFloat || (wanted == SoftmaxDType::kOfAutocast && context.autocasts());
  const bool casts_inside = widens && input.dtype() == DType::kFloat16;
  const Tensor x = Contiguous(widens && !casts_inside ? Cast(input, DType::kFloat32) : input);
  Tensor out = casts_inside ? EmptyLike(x, DType::kFloat32) : EmptyLike(x);
  if (context.computes()) context.Do(ops::Softmax{x.view(), {}, false, is_log, 1, out.view()});
  if (Records(x)) {
    Record(is_log ? "LogSoftmaxBackward" : "SoftmaxBackward", out, {x},
           {Detach(out), Keep(context.framework().softmax_saves_input, x)}, [dtype = x.dtype(), is_log](Gradients& g) {
             g.out[0] = SoftmaxGradient(g.context, g.grad, g.saved[0], dtype, is_log);
           });
  }
  return out;
}

}  // namespace

Tensor LayerNorm(const Tensor& x_in, const Tensor& weight_in, const Tensor& bias_in, double epsilon) {
  const InOperation in(x_in.context(), "layer_norm");
  Context& context = x_in.context();
  const Tensor bias = ForFloat(bias_in), weight = ForFloat(weight_in), x = Contiguous(ForFloat(x_in));
  Tensor out = EmptyLike(x);
  const std::int64_t rows = x.elements() / x.sizes().back();
  Tensor mean = Empty(context, {rows}, DType::kFloat32);
  Tensor rstd = Empty(context, {rows}, DType::kFloat32);
  if (context.computes()) {
    context.Do(ops::LayerNorm{x.view(), weight.view(), bias.view(), epsilon, out.view(), mean.view(), rstd.view()});
  }
  if (Records(x, weight, bias)) {
    Record("NativeLayerNormBackward", out, {x, weight, bias},
           {Detach(bias), Detach(x), Detach(mean), Detach(rstd), Detach(weight)}, LayerNormGradient);
  }
  Release(mean, rstd);  // the tuple's order
  return out;
}

Tensor Softmax(const Tensor& x) { return SoftmaxOf(x, /*is_log=*/false, SoftmaxDType::kOfAutocast); }

Tensor SoftmaxInFloat(const Tensor& x) { return SoftmaxOf(x, /*is_log=*/false, SoftmaxDType::kFloat); }

Tensor LogSoftmax(const Tensor& x) { return SoftmaxOf(x, /*is_log=*/true, SoftmaxDType::kOfAutocast); }

Tensor LogSoftmaxAsItIs(const Tensor& x) { return SoftmaxOf(x, /*is_log=*/true, SoftmaxDType::kOwn); }

Tensor Dropout(const Tensor& x_in, double p) {
  const InOperation in(x_in.context(), "dropout");
  if (p == 0) return x_in;
  Context& context = x_in.context();
  const Tensor x = Contiguous(x_in);
  const bool is_mask_first = context.framework().dropout_makes_mask_first;
  Tensor mask = is_mask_first ? Empty(context, x.sizes(), DType::kBool) : Tensor();
  Tensor out = EmptyLike(x);
  if (!is_mask_first) mask = Empty(context, x.sizes(), DType::kBool);
  if (context.computes()) {
    context.Do(ops::Dropout{x.view(), p, context.Draw(x.elements()), out.view(), mask.view()});
  }
  if (Records(x)) {
    Record("DropoutBackward", out, {x}, {Detach(mask)}, [p](Gradients& g) {
      const Tensor grad = Contiguous(g.grad);
      g.out[0] = EmptyLike(grad);
      if (g.context.computes()) {
        g.context.Do(ops::DropoutBackward{grad.view(), g.saved[0].view(), p, g.out[0].view()});
      }
    });
  }
  return out;
}

Tensor NllLoss(const Tensor& input, const Tensor& targets) {
  const InOperation in(input.context(), "nll_loss");
  Context& context = input.context();
  const Tensor x = ForFloat(input);
  Tensor loss = Empty(context, {}, DType::kFloat32);
  const Tensor total = Empty(context, {}, DType::kFloat32);
  if (context.computes()) {
    context.Do(ops::NllLoss{x.view(), targets.view(), ops::kIgnoreIndex, loss.view(), total.view()});
  }
  if (Records(x)) {
    Record("NllLossBackward", loss, {x}, {Detach(x), Detach(targets), Detach(total)}, [](Gradients& g) {
      g.out[0] = EmptyLike(g.saved[0]);  // zeros, then the targets' elements: one op here
      if (g.context.computes()) {
        g.context.Do(ops::NllLossBackward{g.grad.view(), g.saved[1].view(), ops::kIgnoreIndex, g.saved[2].view(),
                                          g.out[0].view()});
      }
    });
  }
  return loss;
}

Tensor CrossEntropy(const Tensor& logits, const Tensor& targets) {
  const Tensor log_probabilities = LogSoftmaxAsItIs(logits);
  return NllLoss(log_probabilities, targets);
}

}  // namespace ashlar::kernels
