#include "hollow/model/graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/hollow/property.h"

namespace ashlar::hollow {
namespace {

using test::Operation;
using test::Operations;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

TEST(GraphTest, RootsAndEdgesAreAsAdded) {
  Graph graph;
  GraphNode* first = graph.Add(NodeKind::kKernel, {});
  GraphNode* second = graph.Add(NodeKind::kCopy, {});
  GraphNode* last = graph.Add(NodeKind::kFill, {first, second});
  EXPECT_THAT(graph.Roots(), ElementsAre(first, second));
  EXPECT_THAT(graph.Edges(), ElementsAre(Pair(first, last), Pair(second, last)));
  EXPECT_TRUE(graph.IsBefore(first, {last}));
  EXPECT_FALSE(graph.IsBefore(last, {first, second}));
  EXPECT_TRUE(graph.Remove(second));
  EXPECT_FALSE(graph.Has(second));
  EXPECT_FALSE(graph.Remove(second));
  EXPECT_THAT(graph.Edges(), ElementsAre(Pair(first, last)));
}

TEST(GraphTest, EdgesAddedLaterChangeTheOrderAndACircleHasNone) {
  Graph graph;
  GraphNode* first = graph.Add(NodeKind::kKernel, {});
  GraphNode* second = graph.Add(NodeKind::kKernel, {});
  GraphNode* third = graph.Add(NodeKind::kKernel, {});
  EXPECT_THAT(graph.Order(), ElementsAre(first, second, third));
  first->after.push_back(third);
  EXPECT_THAT(graph.Order(), ElementsAre(second, third, first));
  third->after.push_back(first);
  EXPECT_THAT(graph.Order(), ElementsAre(second)) << "fewer than all";
}

TEST(GraphTest, ACloneIsItsOwnAndKnowsItsOriginals) {
  int runs = 0;
  Graph graph;
  GraphNode* first = graph.Add(NodeKind::kHost, {}, [&] { ++runs; });
  GraphNode* second = graph.Add(NodeKind::kRecordEvent, {first});
  second->event = &runs;
  second->params = {1, 2, 3};
  const std::unique_ptr<Graph> clone = graph.Clone();
  GraphNode* copy = clone->CopyOf(second);
  ASSERT_NE(copy, nullptr);
  EXPECT_NE(copy, second);
  EXPECT_EQ(copy->kind, NodeKind::kRecordEvent);
  EXPECT_EQ(copy->event, &runs);
  EXPECT_THAT(copy->params, ElementsAre(1, 2, 3));
  EXPECT_THAT(copy->after, ElementsAre(clone->CopyOf(first)));
  EXPECT_FALSE(clone->Has(second));
  EXPECT_EQ(graph.CopyOf(second), nullptr) << "the original is a copy of nothing";
  graph.Remove(first);
  clone->nodes()[0]->action();
  EXPECT_EQ(runs, 1) << "the clone's action is there without the original";
  EXPECT_THAT(copy->after, SizeIs(1));
}

TEST(GraphTest, AChildIsClonedWithIt) {
  Graph graph;
  GraphNode* node = graph.Add(NodeKind::kGraph, {});
  node->child = std::make_unique<Graph>();
  GraphNode* inner = node->child->Add(NodeKind::kEmpty, {});
  const std::unique_ptr<Graph> clone = graph.Clone();
  Graph* child = clone->CopyOf(node)->child.get();
  ASSERT_NE(child, nullptr);
  EXPECT_NE(child, node->child.get());
  EXPECT_NE(child->CopyOf(inner), nullptr);
}

// The memory goes with the last graph that has the node.
TEST(GraphTest, MemoryStaysWithItsNode) {
  int freed = 0;
  auto graph = std::make_unique<Graph>();
  GraphNode* node = graph->Add(NodeKind::kMemoryAlloc, {});
  node->memory = std::shared_ptr<const void>(&freed, [&](const void*) { ++freed; });
  EXPECT_TRUE(graph->has_memory_nodes());
  std::unique_ptr<Graph> clone = graph->Clone();
  EXPECT_TRUE(graph->Remove(node));
  EXPECT_FALSE(graph->has_memory_nodes());
  graph.reset();
  EXPECT_EQ(freed, 0);
  clone.reset();
  EXPECT_EQ(freed, 1);
}

TEST(GraphsTest, AHandleIsKnownWhileItIsKept) {
  Graphs graphs;
  void* handle = graphs.Keep(std::make_unique<Graph>());
  Graph* graph = graphs.Find(handle);
  ASSERT_NE(graph, nullptr);
  GraphNode* node = graph->Add(NodeKind::kGraph, {});
  node->child = std::make_unique<Graph>();
  GraphNode* inner = node->child->Add(NodeKind::kEmpty, {});
  EXPECT_EQ(graphs.Find(node->child.get()), node->child.get());
  EXPECT_EQ(graphs.Having(node), graph);
  EXPECT_EQ(graphs.Having(inner), node->child.get());
  EXPECT_EQ(graphs.Take(node->child.get()), nullptr) << "a child is its graph's";
  const Graph* child = node->child.get();
  const std::unique_ptr<Graph> taken = graphs.Take(handle);
  EXPECT_NE(taken, nullptr);
  EXPECT_EQ(graphs.Take(handle), nullptr);
  EXPECT_EQ(graphs.Find(handle), nullptr);
  EXPECT_EQ(graphs.Find(child), nullptr);
  EXPECT_EQ(graphs.Having(inner), nullptr);
}

TEST(GraphsTest, WhatIsLaunchedOutlivesItsHandle) {
  Graphs graphs;
  auto exec = std::make_shared<GraphExec>();
  void* handle = graphs.KeepExec(exec);
  const std::shared_ptr<GraphExec> launched = graphs.FindExec(handle);
  EXPECT_EQ(launched, exec);
  EXPECT_TRUE(graphs.DropExec(handle));
  EXPECT_FALSE(graphs.DropExec(handle));
  EXPECT_EQ(graphs.FindExec(handle), nullptr);
  EXPECT_EQ(launched.use_count(), 2);
}

// Nodes by number, with a table of what is reached from where.
struct Reach {
  std::vector<GraphNode*> nodes;
  std::vector<std::vector<bool>> before;  // before[i][j]: i comes before j
  void Add(GraphNode* node) {
    nodes.push_back(node);
    for (auto& row : before) row.push_back(false);
    before.emplace_back(nodes.size(), false);
  }
  void Edge(std::size_t from, std::size_t to) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::size_t j = 0; j < nodes.size(); ++j) {
        const bool leads = (i == from || before[i][from]) && (j == to || before[to][j]);
        if (leads) before[i][j] = true;
      }
    }
  }
  bool HasCircle() const {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (before[i][i]) return true;
    }
    return false;
  }
};

std::string OrderDifference(const Graph& graph, const Reach& reach) {
  const std::vector<GraphNode*> order = graph.Order();
  if ((order.size() == reach.nodes.size()) == reach.HasCircle()) return "a circle is not told";
  std::map<const GraphNode*, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place.emplace(order[i], i);
  if (place.size() != order.size()) return "a node comes twice";
  for (std::size_t i = 0; i < reach.nodes.size(); ++i) {
    for (std::size_t j = 0; j < reach.nodes.size(); ++j) {
      if (i != j && graph.IsBefore(reach.nodes[i], {reach.nodes[j]}) != reach.before[i][j]) return "IsBefore is wrong";
      if (!reach.before[i][j] || place.count(reach.nodes[j]) == 0) continue;
      if (place.count(reach.nodes[i]) == 0 || place[reach.nodes[i]] >= place[reach.nodes[j]])
        return "an edge is not kept";
    }
  }
  return "";
}

// 0 adds a node after up to two others, 1 adds an edge, forwards or, now and then, anyhow.
std::string GraphDifference(const Operations& program) {
  Graph graph;
  Reach reach;
  for (const Operation& one : program) {
    const std::size_t count = reach.nodes.size();
    if (one.kind == 0 || count < 2) {
      std::vector<GraphNode*> after;
      if (count > 0 && one.a % 3 > 0) after.push_back(reach.nodes[one.a % count]);
      if (count > 0 && one.b % 3 > 0 && one.b % count != one.a % count) after.push_back(reach.nodes[one.b % count]);
      reach.Add(graph.Add(NodeKind::kEmpty, after));
      for (const GraphNode* node : after) {
        reach.Edge(
            static_cast<std::size_t>(std::find(reach.nodes.begin(), reach.nodes.end(), node) - reach.nodes.begin()),
            count);
      }
    } else {
      std::size_t from = one.a % count, to = one.b % count;
      if (from == to) continue;
      if (from > to && one.a % 5 > 0) std::swap(from, to);
      reach.nodes[to]->after.push_back(reach.nodes[from]);
      reach.Edge(from, to);
    }
    if (std::string difference = OrderDifference(graph, reach); !difference.empty()) return difference;
    const std::unique_ptr<Graph> clone = graph.Clone();
    const std::vector<GraphNode*> order = graph.Order(), copied = clone->Order();
    if (order.size() != copied.size()) return "the clone has another order";
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (copied[i]->original != order[i]) return "the clone has another order";
    }
  }
  return "";
}

TEST(GraphTest, TheOrderKeepsEveryEdge) {
  test::CheckPrograms("GraphTest", "GraphDifference", GraphDifference,
                      {.kinds = 2, .operations = 24, .below_a = 1000, .below_b = 1000, .seeds = 200});
}

}  // namespace
}  // namespace ashlar::hollow
