#include "hollow/books/graphs.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace ashlar::hollow {

Node* Graph::Add(NodeKind kind, std::vector<Node*> after, std::function<void()> action) {
  nodes_.push_back(std::make_unique<Node>(Node{kind, std::move(after), std::move(action)}));
  return nodes_.back().get();
}

bool Graph::Has(const Node* node) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& own) { return own.get() == node; });
}

bool Graph::IsBefore(const Node* node, const std::vector<Node*>& ends) const {
  std::vector<const Node*> to_visit(ends.begin(), ends.end());
  std::set<const Node*> visited;
  while (!to_visit.empty()) {
    const Node* next = to_visit.back();
    to_visit.pop_back();
    if (next == node) return true;
    if (!visited.insert(next).second) continue;
    to_visit.insert(to_visit.end(), next->after.begin(), next->after.end());
  }
  return false;
}

std::vector<std::pair<Node*, Node*>> Graph::Edges() const {
  std::vector<std::pair<Node*, Node*>> out;
  for (const auto& node : nodes_) {
    for (Node* before : node->after) out.emplace_back(before, node.get());
  }
  return out;
}

std::vector<Node*> Graph::Roots() const {
  std::vector<Node*> out;
  for (const auto& node : nodes_) {
    if (node->after.empty()) out.push_back(node.get());
  }
  return out;
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto out = std::make_unique<Graph>();
  std::map<const Node*, Node*> copies;
  for (const auto& node : nodes_) {
    Node* copy = out->Add(node->kind, {}, node->action);
    copy->address = node->address;
    copy->size_bytes = node->size_bytes;
    copies.emplace(node.get(), copy);
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const Node* before : nodes_[i]->after) out->nodes_[i]->after.push_back(copies.at(before));
  }
  return out;
}

bool Graph::Remove(const Node* node) {
  for (const auto& other : nodes_) std::erase(other->after, node);
  return std::erase_if(nodes_, [&](const auto& own) { return own.get() == node; }) > 0;
}

bool Graph::has_memory_nodes() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
    return node->kind == NodeKind::kMemoryAlloc || node->kind == NodeKind::kMemoryFree;
  });
}

}  // namespace ashlar::hollow
