// Graphs of work: what a capture records and what a program builds node by node.
//
// A node is work that nothing runs, but for its action: what is real of it (a copy, a fill, a host function), done at
// each launch in an order that the edges allow. The memory of a memory node is there from the time the node is added
// until the last graph that holds the node is gone. Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_MODEL_GRAPHS_H_
#define ASHLAR_HOLLOW_MODEL_GRAPHS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
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

class Graph;

struct GraphNode {
  NodeKind kind = NodeKind::kEmpty;
  std::vector<GraphNode*> after;        // what it depends on
  std::function<void()> action;         // may be empty
  std::vector<unsigned char> params;    // as the program gave them: the bytes of CUDA's struct for the kind
  void* event = nullptr;                // of nodes that wait for one or record one
  std::shared_ptr<const void> memory;   // of a node that allocates: frees it when no graph has the node any more
  std::unique_ptr<Graph> child;         // of a node that is a graph
  const GraphNode* original = nullptr;  // of a node in a clone: what it was cloned from
  bool is_enabled = true;               // in an instantiated graph
};

class Graph {
 public:
  GraphNode* Add(NodeKind kind, std::vector<GraphNode*> after, std::function<void()> action = {});
  bool Has(const GraphNode* node) const;
  // Whether all that `node` says is before it is, with everything, before one of `ends`.
  bool IsBefore(const GraphNode* node, const std::vector<GraphNode*>& ends) const;
  std::vector<std::pair<GraphNode*, GraphNode*>> Edges() const;  // (before, after)
  std::vector<GraphNode*> Roots() const;
  // The nodes in an order that the edges allow, as near as it can be to the order in which they were added; fewer than
  // all where edges form a circle.
  std::vector<GraphNode*> Order() const;
  // A copy, with the new node of each old one in the same place.
  std::unique_ptr<Graph> Clone() const;
  // The copy of a node of another graph that this one was cloned from; nullptr where there is none.
  GraphNode* CopyOf(const GraphNode* original) const;
  bool Remove(const GraphNode* node);  // and its edges

  const std::vector<std::unique_ptr<GraphNode>>& nodes() const { return nodes_; }
  bool has_memory_nodes() const;

  std::vector<std::shared_ptr<const void>> kept;  // the program's objects, which live as long as the graph

 private:
  std::vector<std::unique_ptr<GraphNode>> nodes_;
  std::unordered_set<const GraphNode*> known_;
};

// What is launched: a graph as it was when it was instantiated, or last updated.
struct GraphExec {
  std::shared_ptr<Graph> graph;
  std::uint64_t flags = 0;
};

// The graphs of a process, by their handles, which are their addresses.
class Graphs {
 public:
  void* Keep(std::unique_ptr<Graph> graph);
  std::unique_ptr<Graph> Take(const void* graph);  // nullptr where it is none of these
  Graph* Find(const void* graph) const;
  // The graph, a child of one included, that has the node.
  Graph* Having(const GraphNode* node) const;

  void* KeepExec(std::shared_ptr<GraphExec> exec);
  std::shared_ptr<GraphExec> FindExec(const void* exec) const;
  bool DropExec(const void* exec);

 private:
  std::unordered_map<const void*, std::unique_ptr<Graph>> graphs_;
  std::unordered_map<const void*, std::shared_ptr<GraphExec>> execs_;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_GRAPHS_H_
