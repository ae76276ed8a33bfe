// Graphs of work: what a capture records and what a program builds node by node.
//
// A node is work that nothing runs, but for its action: what is real of it (a copy, a fill, a host function), done at
// each launch in the order of the nodes, which is one that the edges allow. Memory nodes have their address from the
// start and memory from the first launch on. Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_BOOKS_GRAPHS_H_
#define ASHLAR_HOLLOW_BOOKS_GRAPHS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace ashlar::hollow {

// cudaGraphNodeType, CUgraphNodeType.
enum class NodeKind : int {
  kKernel = 0,
  kCopy = 1,
  kFill = 2,
  kHost = 3,
  kGraph = 4,
  kEmpty = 5,
  kWaitEvent = 6,
  kRecordEvent = 7,
  kMemoryAlloc = 10,
  kMemoryFree = 11,
};

struct Node {
  NodeKind kind = NodeKind::kEmpty;
  std::vector<Node*> after;      // what it depends on
  std::function<void()> action;  // may be empty
  std::uint64_t address = 0;     // of memory nodes
  std::uint64_t size_bytes = 0;
};

class Graph {
 public:
  Node* Add(NodeKind kind, std::vector<Node*> after, std::function<void()> action = {});
  bool Has(const Node* node) const;
  // Whether all that `node` says is before it is, with everything, before one of `ends`.
  bool IsBefore(const Node* node, const std::vector<Node*>& ends) const;
  std::vector<std::pair<Node*, Node*>> Edges() const;  // (before, after)
  std::vector<Node*> Roots() const;
  // A copy, with the new node of each old one in the same place.
  std::unique_ptr<Graph> Clone() const;
  bool Remove(const Node* node);  // and its edges

  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  bool has_memory_nodes() const;

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_BOOKS_GRAPHS_H_
