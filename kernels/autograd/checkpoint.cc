#include "kernels/autograd/checkpoint.h"

#include <utility>

#include "kernels/autograd/engine.h"
#include "kernels/autograd/node.h"

namespace ashlar::kernels {
namespace {

// What the segment's surroundings were.
struct Surroundings {
  bool autocasts;
  DType autocast_dtype;
  ops::RandomKey random;
};

void RunAgain(Gradients& g, const Segment& segment, const Surroundings& surroundings) {
  Tensor in = Detach(g.saved[0]);
  in.set_requires_grad(true);
  const ops::RandomKey now = g.context.random();
  g.context.set_random(surroundings.random);
  Tensor out;
  {
    const InRecomputation again(g.context);
    const GradMode mode(g.context, true);
    const Autocast autocast(g.context, surroundings.autocasts, surroundings.autocast_dtype);
    out = segment(in);
  }
  g.context.set_random(now);
  Backward(out, g.grad);
  g.out[0] = in.grad();
}

}  // namespace

Tensor Checkpoint(const Tensor& in, Segment segment) {
  Context& context = in.context();
  const bool records = Records(in);
  const Surroundings surroundings{context.autocasts(), context.autocast_dtype(), context.random()};
  Tensor out;
  {
    const NoGrad no_grad(context);
    out = segment(in);
  }
  if (records) {
    Record("CheckpointBackward", out, {in}, {Detach(in)},
           [again = std::move(segment), surroundings](Gradients& g) { RunAgain(g, again, surroundings); });
  }
  return out;
}

void WantGradient(Tensor& embedded) {
  if (embedded.context().grad_enabled() && !embedded.requires_grad()) embedded.set_requires_grad(true);
}

}  // namespace ashlar::kernels
