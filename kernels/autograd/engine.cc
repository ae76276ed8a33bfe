#include "kernels/autograd/engine.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

class BackwardPass {
 public:
  explicit BackwardPass(Context& context)
      : context_(context), number_(context.NextPass()), no_grad_(context), thread_(context) {}

  // Takes `grads`.
  void Run(absl::Span<const Edge> roots, absl::Span<Tensor> grads) {
    CountDependencies(roots);
    for (std::size_t i = 0; i < roots.size(); ++i) Deliver(roots[i], grads[i]);
    for (Tensor& grad : grads) grad.reset();
    while (!ready_.empty()) {
      const Ref<Node> node = ready_.top();
      ready_.pop();
      RunNode(*node);
    }
  }

 private:
  struct IsOlder {
    bool operator()(const Ref<Node>& a, const Ref<Node>& b) const { return a->sequence < b->sequence; }
  };
  using Tensors = absl::InlinedVector<Tensor, 2>;

  // Every node that can be reached, and how many gradients it waits for.
  void CountDependencies(absl::Span<const Edge> roots) {
    std::vector<Node*> open;
    Count(roots, open);
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      Count(node->next, open);
    }
  }

  void Count(absl::Span<const Edge> edges, std::vector<Node*>& open) {
    for (const Edge& edge : edges) {
      if (!edge.node) continue;
      if (edge.node->pass != number_) Enter(edge.node.get(), open);
      ++edge.node->dependencies;
    }
  }

  void Enter(Node* node, std::vector<Node*>& open) {
    node->pass = number_;
    node->dependencies = 0;
    node->arrived.clear();
    node->arrived.resize(node->expected.size());
    open.push_back(node);
  }

  void RunNode(Node& node) {
    const InNode in(context_, node.module, node.name);
    Tensors out(node.next.size());
    {
      Tensors arrived(std::make_move_iterator(node.arrived.begin()), std::make_move_iterator(node.arrived.end()));
      node.arrived.clear();
      bool is_any = false;
      for (const Tensor& grad : arrived) is_any = is_any || grad.defined();
      if (is_any) node.Run(context_, absl::MakeSpan(arrived), absl::MakeSpan(out));
      for (std::size_t i = 0; i < out.size(); ++i) Fit(node.next[i], out[i]);
      for (Tensor& grad : arrived) grad.reset();
    }
    node.ReleaseSaved();
    for (std::size_t i = 0; i < out.size(); ++i) Deliver(node.next[i], out[i]);
    for (Tensor& grad : out) grad.reset();
  }

  // Of the sizes and dtype that the next node expects.
  static void Fit(const Edge& edge, Tensor& grad) {
    if (!edge.node || !grad.defined()) return;
    const Node::Expected& expected = edge.node->expected[edge.input];
    if (grad.sizes() != expected.sizes) grad = SumTo(grad, expected.sizes);
    if (grad.dtype() != expected.dtype) grad = Cast(grad, expected.dtype);
  }

  void Deliver(const Edge& edge, Tensor& grad) {
    if (!edge.node) return;
    if (grad.defined()) Add(edge.node->arrived[edge.input], grad);
    if (--edge.node->dependencies == 0) ready_.push(edge.node);
  }

  void Add(Tensor& held, Tensor& grad) {
    if (!held.defined()) {
      held = std::move(grad);
    } else if (CanAddInto(held)) {
      if (context_.computes()) {
        context_.Do(ops::Binary{ops::BinaryKind::kAdd, held.view(), grad.view(), 1, held.view()});
      }
    } else {
      held = kernels::Add(held, grad);
    }
  }

  // Dense, nobody's view, and held by nobody else: the tensor nor its storage.
  bool CanAddInto(const Tensor& held) const {
    return context_.framework().gradients_add_in_place && IsDense(held.layout()) && held.use_count() == 1 &&
           !held.body().is_view && held.storage().use_count() == 1;
  }

  Context& context_;
  std::uint64_t number_;
  NoGrad no_grad_;
  BackwardThread thread_;
  std::priority_queue<Ref<Node>, std::vector<Ref<Node>>, IsOlder> ready_;
};

}  // namespace

void Backward(const Tensor& output) {
  const Tensor one = Empty(output.context(), output.sizes(), output.dtype());
  if (output.context().computes()) output.context().Do(ops::Fill{one.view(), 1});
  Backward(output, one);
}

void Backward(const Tensor& output, Tensor grad) {
  const Edge root = EdgeOf(output);
  BackwardPass(output.context()).Run(absl::MakeConstSpan(&root, 1), absl::MakeSpan(&grad, 1));
}

void Backward(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads) {
  absl::InlinedVector<Edge, 3> roots;
  for (const Tensor& output : outputs) roots.push_back(EdgeOf(output));
  absl::InlinedVector<Tensor, 3> given(grads.begin(), grads.end());
  if (!roots.empty()) BackwardPass(outputs[0].context()).Run(roots, absl::MakeSpan(given));
}

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
