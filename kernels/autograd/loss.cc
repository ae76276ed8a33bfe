#include "kernels/autograd/loss.h"

#include "kernels/autograd/cast.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/normalize.h"

namespace ashlar::kernels {

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
