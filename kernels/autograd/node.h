// Records an operation in the graph: a node (kernels/tensor/tensor.h) of what it saved and of a function for its
// gradients.
//
//   Tensor Exp(const Tensor& x) {
//     Tensor out = EmptyLike(x);
//     ...
//     if (Records(x)) {
//       Record("ExpBackward", out, {x}, {Detach(out)}, [](Gradients& g) { g.out[0] = Mul(g.grad, g.saved[0]); });
//     }
//     return out;
//   }
//
// The function allocates its gradients in the order PyTorch's formula does; the engine sums them to the input's sizes
// and casts them. `saved` is in the order in which it is freed: PyTorch's, by the names in derivatives.yaml.
#ifndef ASHLAR_KERNELS_AUTOGRAD_NODE_H_
#define ASHLAR_KERNELS_AUTOGRAD_NODE_H_

#include <functional>
#include <initializer_list>
#include <utility>

#include "absl/types/span.h"
#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// What a node's function sees.
struct Gradients {
  Context& context;
  const Node& node;
  const Tensor& grad;              // of the first output
  absl::Span<const Tensor> grads;  // of all; undefined where none came
  absl::Span<Tensor> saved;
  absl::Span<Tensor> out;  // of the inputs, to be filled where Needs says so
  bool Needs(std::size_t input) const;
};

inline bool Gradients::Needs(std::size_t input) const { return static_cast<bool>(node.next[input].node); }

template <typename Function>
class FunctionNode final : public Node {
 public:
  FunctionNode(const char* node_name, std::uint64_t node_sequence, Function function)
      : Node(node_name, node_sequence), function_(std::move(function)) {}
  void Run(Context& context, absl::Span<Tensor> grads, absl::Span<Tensor> out) override {
    Gradients gradients{context, *this, grads[0], grads, absl::MakeSpan(saved), out};
    function_(gradients);
  }

 private:
  Function function_;
};

// Whether an operation over these is recorded.
template <typename... Tensors>
bool Records(const Tensor& first, const Tensors&... others) {
  return first.context().grad_enabled() && (first.requires_grad() || ... || others.requires_grad());
}

// Where the gradient of a tensor goes.
Edge EdgeOf(const Tensor& tensor);
// Makes `outputs` the node's outputs.
void Attach(const Ref<Node>& node, absl::Span<Tensor* const> outputs);

template <typename Function>
void Record(const char* name, absl::Span<Tensor* const> outputs,
            std::initializer_list<std::reference_wrapper<const Tensor>> inputs, std::initializer_list<Tensor> saved,
            Function function) {
  Context& context = outputs[0]->context();
  Ref<Node> node(new FunctionNode<Function>(name, context.NextSequence(), std::move(function)));
  node->module = context.memory().module();
  for (const Tensor& input : inputs) node->next.push_back(EdgeOf(input));
  node->saved.assign(saved.begin(), saved.end());
  Attach(node, outputs);
}

template <typename Function>
void Record(const char* name, Tensor& out, std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
            std::initializer_list<Tensor> saved, Function function) {
  Tensor* const only = &out;
  Record(name, absl::MakeConstSpan(&only, 1), inputs, saved, std::move(function));
}

// The same for lists; an input or a saved one may be undefined.
template <typename Function>
void RecordMany(const char* name, absl::Span<Tensor* const> outputs, absl::Span<const Tensor> inputs,
                absl::Span<const Tensor> saved, Function function) {
  Context& context = outputs[0]->context();
  Ref<Node> node(new FunctionNode<Function>(name, context.NextSequence(), std::move(function)));
  node->module = context.memory().module();
  for (const Tensor& input : inputs) node->next.push_back(EdgeOf(input));
  node->saved.assign(saved.begin(), saved.end());
  Attach(node, outputs);
}

// `tensor` outside the graph if `needed`, else nothing: a saved slot.
inline Tensor Keep(bool needed, const Tensor& tensor) { return needed ? Detach(tensor) : Tensor(); }

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_NODE_H_
