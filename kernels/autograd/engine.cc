#include "kernels/autograd/engine.h"

#include <queue>
#include <utility>
#include <vector>

#include "kernels/autograd/cast.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

class Pass {
 public:
  explicit Pass(Context& context)
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
  Pass(output.context()).Run(absl::MakeConstSpan(&root, 1), absl::MakeSpan(&grad, 1));
}

void Backward(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads) {
  absl::InlinedVector<Edge, 3> roots;
  for (const Tensor& output : outputs) roots.push_back(EdgeOf(output));
  absl::InlinedVector<Tensor, 3> given(grads.begin(), grads.end());
  if (!roots.empty()) Pass(outputs[0].context()).Run(roots, absl::MakeSpan(given));
}

}  // namespace ashlar::kernels
