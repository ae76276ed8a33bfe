// A node of the graph that forward builds and backward runs: what an operation saved, and where its gradients go. It
// lies beside the tensor, which holds the node that made it, as the node holds tensors. kernels/autograd/node.h records
// them.
#ifndef ASHLAR_KERNELS_TENSOR_NODE_H_
#define ASHLAR_KERNELS_TENSOR_NODE_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

struct Edge {
  Ref<Node> node;  // null: nobody wants this gradient
  std::uint32_t input = 0;
};

class Node : public Counted {
 public:
  // The gradient that arrives for an output of the operation.
  struct Expected {
    Dims sizes;
    DType dtype;
  };

  Node(const char* node_name, std::uint64_t node_sequence) : name(node_name), sequence(node_sequence) {}
  virtual ~Node() = default;
  // Long chains of nodes end without recursion.
  static void Dispose(Node* node);

  // `grads` may be moved from; they end when the engine ends them otherwise.
  virtual void Run(Context& context, absl::Span<Tensor> grads, absl::Span<Tensor> out) = 0;
  virtual void ReleaseSaved();

  const char* name;
  absl::string_view module = {};  // that recorded it
  std::uint64_t sequence;
  absl::InlinedVector<Edge, 2> next;          // by input
  absl::InlinedVector<Expected, 1> expected;  // by output
  absl::InlinedVector<Tensor, 3> saved;

  // The engine's, during a pass.
  std::uint64_t pass = 0;
  std::uint32_t dependencies = 0;
  absl::InlinedVector<Tensor, 1> arrived;  // by output
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_NODE_H_
