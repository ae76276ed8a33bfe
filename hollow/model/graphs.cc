#include "hollow/model/graphs.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace ashlar::hollow {

GraphNode* Graph::Add(NodeKind kind, std::vector<GraphNode*> after, std::function<void()> action) {
  auto node = std::make_unique<GraphNode>();
  node->kind = kind;
  node->after = std::move(after);
  node->action = std::move(action);
  known_.insert(node.get());
  nodes_.push_back(std::move(node));
  return nodes_.back().get();
}

bool Graph::Has(const GraphNode* node) const { return known_.contains(node); }

bool Graph::IsBefore(const GraphNode* node, const std::vector<GraphNode*>& ends) const {
  std::vector<const GraphNode*> to_visit(ends.begin(), ends.end());
  std::set<const GraphNode*> visited;
  while (!to_visit.empty()) {
    const GraphNode* next = to_visit.back();
    to_visit.pop_back();
    if (next == node) return true;
    if (!visited.insert(next).second) continue;
    to_visit.insert(to_visit.end(), next->after.begin(), next->after.end());
  }
  return false;
}

std::vector<std::pair<GraphNode*, GraphNode*>> Graph::Edges() const {
  std::vector<std::pair<GraphNode*, GraphNode*>> out;
  for (const auto& node : nodes_) {
    for (GraphNode* before : node->after) out.emplace_back(before, node.get());
  }
  return out;
}

std::vector<GraphNode*> Graph::Roots() const {
  std::vector<GraphNode*> out;
  for (const auto& node : nodes_) {
    if (node->after.empty()) out.push_back(node.get());
  }
  return out;
}

std::vector<GraphNode*> Graph::Order() const {
  std::vector<GraphNode*> out;
  std::unordered_set<const GraphNode*> done;
  const auto visit = [&](GraphNode* node) {
    const bool is_next =
        !done.contains(node) && std::all_of(node->after.begin(), node->after.end(),
                                            [&](const GraphNode* before) { return done.contains(before); });
    if (!is_next) return;
    done.insert(node);
    out.push_back(node);
  };
  for (std::size_t before = 1; before > 0;) {  // once, unless edges were added later that lead backwards
    before = out.size();
    for (const auto& node : nodes_) visit(node.get());
    before = out.size() - before;
    if (out.size() == nodes_.size()) break;
  }
  return out;
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto out = std::make_unique<Graph>();
  out->kept = kept;
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : nodes_) {
    GraphNode* copy = out->Add(node->kind, {}, node->action);
    copy->params = node->params;
    copy->event = node->event;
    copy->memory = node->memory;
    if (node->child != nullptr) copy->child = node->child->Clone();
    copy->original = node.get();
    copy->is_enabled = node->is_enabled;
    copies.emplace(node.get(), copy);
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const GraphNode* before : nodes_[i]->after) out->nodes_[i]->after.push_back(copies.at(before));
  }
  return out;
}

GraphNode* Graph::CopyOf(const GraphNode* original) const {
  const auto it =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& own) { return own->original == original; });
  return it == nodes_.end() ? nullptr : it->get();
}

bool Graph::Remove(const GraphNode* node) {
  for (const auto& other : nodes_) std::erase(other->after, node);
  known_.erase(node);
  return std::erase_if(nodes_, [&](const auto& own) { return own.get() == node; }) > 0;
}

bool Graph::has_memory_nodes() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return node->kind == NodeKind::kMemoryAlloc || node->kind == NodeKind::kMemoryFree;
  });
}

void* Graphs::Keep(std::unique_ptr<Graph> graph) {
  Graph* handle = graph.get();
  graphs_.emplace(handle, std::move(graph));
  return handle;
}

std::unique_ptr<Graph> Graphs::Take(const void* graph) {
  const auto it = graphs_.find(graph);
  if (it == graphs_.end()) return nullptr;
  std::unique_ptr<Graph> out = std::move(it->second);
  graphs_.erase(it);
  return out;
}

namespace {

// The graph itself, or a child in it.
Graph* HavingIn(Graph* graph, const GraphNode* wanted) {
  if (graph->Has(wanted)) return graph;
  for (const auto& node : graph->nodes()) {
    if (node->child == nullptr) continue;
    if (Graph* found = HavingIn(node->child.get(), wanted); found != nullptr) return found;
  }
  return nullptr;
}

// Children have handles, too.
Graph* ChildOf(const Graph& graph, const void* handle) {
  for (const auto& node : graph.nodes()) {
    if (node->child == nullptr) continue;
    if (node->child.get() == handle) return node->child.get();
    if (Graph* found = ChildOf(*node->child, handle); found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

Graph* Graphs::Find(const void* graph) const {
  const auto it = graphs_.find(graph);
  if (it != graphs_.end()) return it->second.get();
  for (const auto& [handle, own] : graphs_) {
    if (Graph* child = ChildOf(*own, graph); child != nullptr) return child;
  }
  return nullptr;
}

Graph* Graphs::Having(const GraphNode* node) const {
  for (const auto& [handle, own] : graphs_) {
    if (Graph* found = HavingIn(own.get(), node); found != nullptr) return found;
  }
  return nullptr;
}

void* Graphs::KeepExec(std::shared_ptr<GraphExec> exec) {
  GraphExec* handle = exec.get();
  execs_.emplace(handle, std::move(exec));
  return handle;
}

std::shared_ptr<GraphExec> Graphs::FindExec(const void* exec) const {
  const auto it = execs_.find(exec);
  return it == execs_.end() ? nullptr : it->second;
}

bool Graphs::DropExec(const void* exec) { return execs_.erase(exec) > 0; }

}  // namespace ashlar::hollow
