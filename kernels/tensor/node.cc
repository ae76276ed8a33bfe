#include "kernels/tensor/node.h"

#include <utility>
#include <vector>

namespace ashlar::kernels {
namespace {

// Takes the next nodes that nobody else holds.
void Gather(Node& node, std::vector<Ref<Node>>& out) {
  node.ReleaseSaved();
  for (Edge& edge : node.next) {
    if (edge.node && edge.node->use_count() == 1) {
      out.push_back(std::move(edge.node));
    } else {
      edge.node.reset();
    }
  }
}

}  // namespace

void Node::Dispose(Node* node) {
  std::vector<Ref<Node>> waiting;
  Gather(*node, waiting);
  delete node;
  while (!waiting.empty()) {
    const Ref<Node> last = std::move(waiting.back());
    waiting.pop_back();
    Gather(*last, waiting);
  }
}

void Node::ReleaseSaved() {
  for (Tensor& tensor : saved) tensor.reset();
}

}  // namespace ashlar::kernels
