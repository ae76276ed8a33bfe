#include "kernels/autograd/checkpoint.h"

#include <algorithm>
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

// As the frame of CheckpointFunction.backward holds them: the inputs, the outputs and all their gradients to the end.
void RunAgain(Gradients& g, const Segment& segment, const Surroundings& surroundings) {
  std::vector<Tensor> in, grads;
  for (std::size_t i = 0; i < g.saved.size(); ++i) {
    in.push_back(g.saved[i].defined() ? Detach(g.saved[i]) : Tensor());
    if (g.Needs(i)) in[i].set_requires_grad(true);
  }
  for (std::size_t i = 0; i < g.grads.size(); ++i) {
    const Node::Expected& expected = g.node.expected[i];
    grads.push_back(g.grads[i].defined() ? g.grads[i] : Zeros(g.context, expected.sizes, expected.dtype));
  }
  const ops::RandomKey now = g.context.random();
  g.context.set_random(surroundings.random);
  std::vector<Tensor> out;
  {
    const InRecomputation again(g.context);
    const GradMode mode(g.context, true);
    const Autocast autocast(g.context, surroundings.autocasts, surroundings.autocast_dtype);
    out = segment(in);
  }
  g.context.set_random(now);
  std::vector<Tensor> roots, given;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i].requires_grad()) continue;
    roots.push_back(out[i]);
    given.push_back(grads[i]);
  }
  Backward(roots, given);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (g.Needs(i)) g.out[i] = in[i].grad();
  }
}

}  // namespace

std::vector<Tensor> Checkpoint(const std::vector<Tensor>& in, Segment segment) {
  Context& context = in[0].context();
  const Surroundings surroundings{context.autocasts(), context.autocast_dtype(), context.random()};
  std::vector<Tensor> out, saved;
  {
    const NoGrad no_grad(context);
    out = segment(in);
  }
  const auto wants = [](const Tensor& tensor) { return tensor.requires_grad(); };
  if (!context.grad_enabled() || std::none_of(in.begin(), in.end(), wants)) return out;
  std::vector<Tensor*> outputs;
  for (Tensor& tensor : out) {
    // An input that is returned is a tensor of its own there, over the same bytes.
    const auto is_it = [&](const Tensor& given) { return given.defined() && &given.body() == &tensor.body(); };
    if (std::any_of(in.begin(), in.end(), is_it)) tensor = Detach(tensor);
    outputs.push_back(&tensor);
  }
  for (const Tensor& tensor : in) saved.push_back(tensor.defined() ? Detach(tensor) : Tensor());
  RecordMany("CheckpointBackward", outputs, in, saved,
             [again = std::move(segment), surroundings](Gradients& g) { RunAgain(g, again, surroundings); });
  return out;
}

Tensor Checkpoint(const std::vector<Tensor>& in, std::function<Tensor(absl::Span<const Tensor> in)> segment) {
  return Checkpoint(
      in, Segment([one = std::move(segment)](absl::Span<const Tensor> given) { return std::vector{one(given)}; }))[0];
}

void WantGradient(Tensor& embedded) {
  if (embedded.context().grad_enabled() && !embedded.requires_grad()) embedded.set_requires_grad(true);
}

}  // namespace ashlar::kernels
