// Graphs that are launched (cuda_graphs.h), and the program's objects that go with a graph.
#include <algorithm>
#include <utility>

#include "hollow/launch/host_thread.h"
#include "hollow/surfaces/cuda_graphs.h"

namespace ashlar::hollow {
namespace {

// Host functions run here, in their place among the nodes, on the thread that launches.
void Run(const Graph& graph, void* stream) {
  for (const Node* node : graph.Order()) {
    if (!node->is_enabled) continue;
    if (node->child != nullptr) Run(*node->child, stream);
    if (node->kind == NodeKind::kRecordEvent) (void)RecordEvent(node->event, stream);
    if (node->kind == NodeKind::kWaitEvent) (void)WaitForEvent(stream, node->event);
    if (node->action) node->action();
  }
}

struct UserObject {
  void* data = nullptr;
  void (*destroy)(void*) = nullptr;
  unsigned count = 0;
};

}  // namespace

Error Instantiate(Process& process, void** exec, void* handle, std::uint64_t flags) {
  const Graph* graph = GraphOf(process, handle);
  if (graph == nullptr || exec == nullptr) return Error::kInvalidValue;
  if (graph->Order().size() != graph->nodes().size()) return Error::kInvalidValue;  // edges form a circle
  *exec = process.graphs.KeepExec(std::make_shared<GraphExec>(GraphExec{graph->Clone(), flags}));
  return Error::kNone;
}

Error UpdateExec(Process& process, void* exec_handle, void* graph_handle, int* result) {
  constexpr int kSuccess = 0, kError = 1, kTopologyChanged = 2, kNodeTypeChanged = 3;  // cudaGraphExecUpdateResult
  constexpr Error kUpdateFailure = static_cast<Error>(910);
  *result = kError;
  const std::shared_ptr<GraphExec> exec = process.graphs.FindExec(exec_handle);
  const Graph* graph = GraphOf(process, graph_handle);
  if (exec == nullptr || graph == nullptr) return Error::kInvalidValue;
  const auto& old_nodes = exec->graph->nodes();
  const auto& new_nodes = graph->nodes();
  *result = kTopologyChanged;
  if (old_nodes.size() != new_nodes.size()) return kUpdateFailure;
  for (std::size_t i = 0; i < old_nodes.size(); ++i) {
    if (old_nodes[i]->after.size() != new_nodes[i]->after.size()) return kUpdateFailure;
    *result = kNodeTypeChanged;
    if (old_nodes[i]->kind != new_nodes[i]->kind) return kUpdateFailure;
    *result = kTopologyChanged;
  }
  // Nodes of the first graph still name their copies.
  std::unique_ptr<Graph> updated = graph->Clone();
  for (std::size_t i = 0; i < old_nodes.size(); ++i) {
    updated->nodes()[i]->original = old_nodes[i]->original;
    updated->nodes()[i]->is_enabled = old_nodes[i]->is_enabled;
  }
  exec->graph = std::move(updated);
  *result = kSuccess;
  return Error::kNone;
}

Error DestroyExec(Process& process, void* exec) {
  return process.graphs.DropExec(exec) ? Error::kNone : Error::kInvalidValue;
}

Error GetExecFlags(Process& process, void* handle, unsigned long long* flags) {
  const std::shared_ptr<GraphExec> exec = process.graphs.FindExec(handle);
  if (exec == nullptr || flags == nullptr) return Error::kInvalidValue;
  *flags = exec->flags;
  return Error::kNone;
}

Error CheckExec(Process& process, void* exec) {
  return process.graphs.FindExec(exec) == nullptr ? Error::kInvalidValue : Error::kNone;
}

Error LaunchGraph(void* handle, void* stream) {
  Process& process = TheProcess();
  process.tally.AddLaunch();
  std::shared_ptr<const Graph> launched;  // a program may destroy or update what is launched
  {
    const std::lock_guard<std::mutex> lock(process.mutex);
    const std::shared_ptr<GraphExec> exec = process.graphs.FindExec(handle);
    if (exec == nullptr) return Error::kInvalidValue;
    launched = exec->graph;
    Stream* on = StreamOf(process, stream);
    if (on != nullptr && on->capture != nullptr) {  // part of another graph
      bool runs_now = false;
      const Error error = process.streams.Submit(*on, NodeKind::kGraph, {}, &runs_now);
      if (error == Error::kNone) on->frontier.front()->child = launched->Clone();
      return error;
    }
  }
  const Error error = GiveWork(stream, NodeKind::kGraph, [&] { Run(*launched, stream); });
  const std::lock_guard<std::mutex> lock(process.mutex);
  launched.reset();  // memory of its nodes is freed under the lock
  return error;
}

Error CreateUserObject(void** object, void* data, void (*destroy)(void*), unsigned count) {
  if (object == nullptr || destroy == nullptr || count == 0) return Error::kInvalidValue;
  *object = new UserObject{data, destroy, count};
  return Error::kNone;
}

Error RetainUserObject(void* object, unsigned count) {
  if (object == nullptr || count == 0) return Error::kInvalidValue;
  static_cast<UserObject*>(object)->count += count;
  return Error::kNone;
}

Error ReleaseUserObject(void* handle, unsigned count) {
  auto* object = static_cast<UserObject*>(handle);
  if (object == nullptr || count == 0 || count > object->count) return Error::kInvalidValue;
  object->count -= count;
  if (object->count > 0) return Error::kNone;
  HostThread::The().Add([data = object->data, destroy = object->destroy] { destroy(data); });
  delete object;
  return Error::kNone;
}

Error GraphRetain(Process& process, void* handle, void* object, unsigned count, unsigned flags) {
  constexpr unsigned kMove = 1;  // cudaGraphUserObjectMove: the caller's own references become the graph's
  Graph* graph = GraphOf(process, handle);
  if (graph == nullptr || object == nullptr || count == 0) return Error::kInvalidValue;
  if ((flags & kMove) == 0) {
    if (const Error error = RetainUserObject(object, count); error != Error::kNone) return error;
  }
  for (unsigned i = 0; i < count; ++i) {
    graph->kept.emplace_back(object, [](void* kept) { (void)ReleaseUserObject(kept, 1); });
  }
  return Error::kNone;
}

Error GraphRelease(Process& process, void* handle, void* object, unsigned count) {
  Graph* graph = GraphOf(process, handle);
  if (graph == nullptr || object == nullptr) return Error::kInvalidValue;
  for (unsigned i = 0; i < count; ++i) {
    const auto it =
        std::find_if(graph->kept.begin(), graph->kept.end(), [&](const auto& kept) { return kept.get() == object; });
    if (it == graph->kept.end()) return Error::kInvalidValue;
    graph->kept.erase(it);
  }
  return Error::kNone;
}

}  // namespace ashlar::hollow
