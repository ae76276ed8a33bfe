#include "hollow/api/cuda/graphs.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "hollow/api/cuda/memory.h"
#include "hollow/api/surface.h"
#include "hollow/process/host_thread.h"

namespace ashlar::hollow {
namespace {

Graph* GraphHaving(Process& process, const GraphNode* node) {
  if (node == nullptr) return nullptr;
  Graph* captured = process.streams.FindCapturedGraphHaving(node);
  return captured != nullptr ? captured : process.graphs.Having(node);
}

// The node of this kind that a call means; nullptr where it is none.
GraphNode* Meant(Process& process, void* exec_handle, GraphNode* node, NodeKind kind) {
  if (exec_handle != nullptr) {
    const std::shared_ptr<GraphExec> exec = process.graphs.FindExec(exec_handle);
    node = exec == nullptr ? nullptr : exec->graph->CopyOf(node);
    return node == nullptr || node->kind != kind ? nullptr : node;
  }
  return GraphHaving(process, node) == nullptr || node->kind != kind ? nullptr : node;
}

std::vector<unsigned char> BytesOf(const void* params, std::size_t bytes) {
  if (params == nullptr) return {};
  const auto* begin = static_cast<const unsigned char*>(params);
  return {begin, begin + bytes};
}

Error Add(Process& process, const NewNode& place, NodeKind kind, GraphNode** added) {
  Graph* graph = GraphOf(process, place.graph);
  if (graph == nullptr || place.node == nullptr || (place.after == nullptr && place.count > 0)) {
    return Error::kInvalidValue;
  }
  std::vector<GraphNode*> after(place.after, place.after + place.count);
  for (const GraphNode* node : after) {
    if (!graph->Has(node)) return Error::kInvalidValue;
  }
  *added = graph->Add(kind, std::move(after));
  *place.node = *added;
  return Error::kNone;
}

Error List(const std::vector<GraphNode*>& all, GraphNode** nodes, std::uint64_t* edges, std::size_t* count) {
  if (count == nullptr) return Error::kInvalidValue;
  if (nodes == nullptr) {
    *count = all.size();
    return Error::kNone;
  }
  const std::size_t given = std::min(*count, all.size());
  for (std::size_t i = 0; i < *count; ++i) {
    nodes[i] = i < given ? all[i] : nullptr;
    if (edges != nullptr) edges[i] = 0;
  }
  *count = given;
  return Error::kNone;
}

void Take(GraphNode& node, const abi::HostNodeParams& params) {
  node.params = BytesOf(&params, sizeof(params));
  node.action = [params] { params.function(params.user_data); };
}

void Take(GraphNode& node, const abi::MemsetNodeParams& params) {
  node.params = BytesOf(&params, sizeof(params));
  node.action = [params] {
    const CopyShape shape = {params.width * params.element_bytes, params.height, params.pitch, params.pitch};
    (void)FillBytes(params.dst, params.value, params.element_bytes, shape);
  };
}

void Take(GraphNode& node, const CopyWork& copy, const void* params, std::size_t bytes) {
  node.params = BytesOf(params, bytes);
  node.action = [copy] { (void)CopyBytes(copy.to, copy.from, copy.shape); };
}

bool IsElement(unsigned bytes) { return bytes == 1 || bytes == 2 || bytes == 4; }

}  // namespace

void* KeepGraph(Process& process, std::unique_ptr<Graph> graph) { return process.graphs.Keep(std::move(graph)); }

std::unique_ptr<Graph> TakeGraph(Process& process, void* graph) { return process.graphs.Take(graph); }

Graph* GraphOf(Process& process, const void* graph) {
  Graph* captured = process.streams.FindCapturedGraph(graph);
  return captured != nullptr ? captured : process.graphs.Find(graph);
}

Error CreateGraph(Process& process, unsigned flags, void** graph) {
  if (graph == nullptr || flags != 0) return Error::kInvalidValue;
  *graph = KeepGraph(process, std::make_unique<Graph>());
  return Error::kNone;
}

Error DestroyGraph(Process& process, void* graph) {
  return process.graphs.Take(graph) == nullptr ? Error::kInvalidValue : Error::kNone;
}

Error CloneGraph(Process& process, void** clone, void* graph) {
  const Graph* original = GraphOf(process, graph);
  if (original == nullptr || clone == nullptr) return Error::kInvalidValue;
  *clone = KeepGraph(process, original->Clone());
  return Error::kNone;
}

Error AddPlain(Process& process, const NewNode& place, NodeKind kind, const void* params, std::size_t bytes) {
  if (bytes > 0 && params == nullptr) return Error::kInvalidValue;
  GraphNode* node = nullptr;
  if (const Error error = Add(process, place, kind, &node); error != Error::kNone) return error;
  node->params = BytesOf(params, bytes);
  return Error::kNone;
}

Error AddHost(Process& process, const NewNode& place, const abi::HostNodeParams* params) {
  if (params == nullptr || params->function == nullptr) return Error::kInvalidValue;
  GraphNode* node = nullptr;
  if (const Error error = Add(process, place, NodeKind::kHost, &node); error != Error::kNone) return error;
  Take(*node, *params);
  return Error::kNone;
}

Error AddFill(Process& process, const NewNode& place, const abi::MemsetNodeParams* params) {
  if (params == nullptr || params->dst == nullptr || !IsElement(params->element_bytes)) return Error::kInvalidValue;
  GraphNode* node = nullptr;
  if (const Error error = Add(process, place, NodeKind::kFill, &node); error != Error::kNone) return error;
  Take(*node, *params);
  return Error::kNone;
}

Error AddCopy(Process& process, const NewNode& place, const CopyWork& copy, const void* params, std::size_t bytes) {
  if (copy.to == nullptr || copy.from == nullptr) return Error::kInvalidValue;
  GraphNode* node = nullptr;
  if (const Error error = Add(process, place, NodeKind::kCopy, &node); error != Error::kNone) return error;
  Take(*node, copy, params, bytes);
  return Error::kNone;
}

Error AddChild(Process& process, const NewNode& place, void* child) {
  const Graph* graph = GraphOf(process, child);
  if (graph == nullptr || child == place.graph) return Error::kInvalidValue;
  std::unique_ptr<Graph> clone = graph->Clone();
  GraphNode* node = nullptr;
  if (const Error error = Add(process, place, NodeKind::kGraph, &node); error != Error::kNone) return error;
  node->child = std::move(clone);
  return Error::kNone;
}

Error AddEvent(Process& process, const NewNode& place, NodeKind kind, void* event) {
  if (EventOf(process, event) == nullptr) return Error::kInvalidHandle;
  GraphNode* node = nullptr;
  if (const Error error = Add(process, place, kind, &node); error != Error::kNone) return error;
  node->event = event;
  return Error::kNone;
}

Error AddMemory(Process& process, const NewNode& place, abi::MemAllocNodeParams* params) {
  constexpr int kDevice = 1;
  if (params == nullptr || params->bytes == 0 || params->props.location.type != kDevice) return Error::kInvalidValue;
  const int device = params->props.location.id;
  if (device < 0 || device >= process.settings.devices) return Error::kInvalidDevice;
  GraphNode* node = nullptr;
  if (const Error error = Add(process, place, NodeKind::kMemoryAlloc, &node); error != Error::kNone) return error;
  const Error error =
      AllocateFromPool(process, static_cast<std::uint64_t>(device) + 1, params->bytes, nullptr, &params->address);
  if (error != Error::kNone) {
    GraphOf(process, place.graph)->Remove(node);
    *place.node = nullptr;
    return error;
  }
  node->memory = GraphMemory(process, AddressOf(params->address));
  node->params = BytesOf(params, sizeof(*params));
  return Error::kNone;
}

Error AddFree(Process& process, const NewNode& place, void* address) {
  if (process.allocations.At(AddressOf(address)) == nullptr) return Error::kInvalidValue;
  return AddPlain(process, place, NodeKind::kMemoryFree, &address, sizeof(address));
}

Error SetPlain(Process& process, void* exec, GraphNode* handle, NodeKind kind, const void* params, std::size_t bytes) {
  GraphNode* node = Meant(process, exec, handle, kind);
  if (node == nullptr || params == nullptr) return Error::kInvalidValue;
  node->params = BytesOf(params, bytes);
  return Error::kNone;
}

Error SetHost(Process& process, void* exec, GraphNode* handle, const abi::HostNodeParams* params) {
  GraphNode* node = Meant(process, exec, handle, NodeKind::kHost);
  if (node == nullptr || params == nullptr || params->function == nullptr) return Error::kInvalidValue;
  Take(*node, *params);
  return Error::kNone;
}

Error SetFill(Process& process, void* exec, GraphNode* handle, const abi::MemsetNodeParams* params) {
  GraphNode* node = Meant(process, exec, handle, NodeKind::kFill);
  if (node == nullptr || params == nullptr || !IsElement(params->element_bytes)) return Error::kInvalidValue;
  Take(*node, *params);
  return Error::kNone;
}

Error SetCopy(Process& process, void* exec, GraphNode* handle, const CopyWork& copy, const void* params,
              std::size_t bytes) {
  GraphNode* node = Meant(process, exec, handle, NodeKind::kCopy);
  if (node == nullptr || copy.to == nullptr || copy.from == nullptr) return Error::kInvalidValue;
  Take(*node, copy, params, bytes);
  return Error::kNone;
}

Error SetChild(Process& process, void* exec, GraphNode* handle, void* child) {
  GraphNode* node = Meant(process, exec, handle, NodeKind::kGraph);
  const Graph* graph = GraphOf(process, child);
  if (node == nullptr || graph == nullptr) return Error::kInvalidValue;
  node->child = graph->Clone();
  return Error::kNone;
}

Error SetEvent(Process& process, void* exec, GraphNode* handle, NodeKind kind, void* event) {
  GraphNode* node = Meant(process, exec, handle, kind);
  if (node == nullptr) return Error::kInvalidValue;
  if (EventOf(process, event) == nullptr) return Error::kInvalidHandle;
  node->event = event;
  return Error::kNone;
}

Error SetEnabled(Process& process, void* exec_handle, GraphNode* handle, unsigned is_enabled) {
  const std::shared_ptr<GraphExec> exec = process.graphs.FindExec(exec_handle);
  GraphNode* node = exec == nullptr ? nullptr : exec->graph->CopyOf(handle);
  if (node == nullptr) return Error::kInvalidValue;
  node->is_enabled = is_enabled != 0;
  return Error::kNone;
}

Error GetParams(Process& process, const GraphNode* node, NodeKind kind, void* params, std::size_t bytes) {
  if (params == nullptr || GraphHaving(process, node) == nullptr || node->kind != kind) return Error::kInvalidValue;
  if (node->params.size() < bytes) {
    CountRefused("parameters of captured work");
    return Error::kNotSupported;
  }
  std::memcpy(params, node->params.data(), bytes);
  return Error::kNone;
}

Error GetEvent(Process& process, const GraphNode* node, NodeKind kind, void** event) {
  if (event == nullptr || GraphHaving(process, node) == nullptr || node->kind != kind) return Error::kInvalidValue;
  *event = node->event;
  return Error::kNone;
}

Error GetChild(Process& process, const GraphNode* node, void** child) {
  if (child == nullptr || GraphHaving(process, node) == nullptr || node->child == nullptr) return Error::kInvalidValue;
  *child = node->child.get();
  return Error::kNone;
}

Error GetKind(Process& process, const GraphNode* node, int* kind) {
  if (kind == nullptr || GraphHaving(process, node) == nullptr) return Error::kInvalidValue;
  *kind = static_cast<int>(node->kind);
  return Error::kNone;
}

Error GetEnabled(Process& process, void* exec_handle, const GraphNode* handle, unsigned* is_enabled) {
  const std::shared_ptr<GraphExec> exec = process.graphs.FindExec(exec_handle);
  const GraphNode* node = exec == nullptr ? nullptr : exec->graph->CopyOf(handle);
  if (node == nullptr || is_enabled == nullptr) return Error::kInvalidValue;
  *is_enabled = node->is_enabled ? 1 : 0;
  return Error::kNone;
}

Error FindInClone(Process& process, GraphNode** copy, const GraphNode* original, void* clone) {
  const Graph* graph = GraphOf(process, clone);
  if (graph == nullptr || copy == nullptr) return Error::kInvalidValue;
  *copy = graph->CopyOf(original);
  return *copy == nullptr ? Error::kInvalidValue : Error::kNone;
}

Error ListNodes(Process& process, void* handle, GraphNode** nodes, std::size_t* count) {
  const Graph* graph = GraphOf(process, handle);
  if (graph == nullptr) return Error::kInvalidValue;
  std::vector<GraphNode*> all;
  for (const auto& node : graph->nodes()) all.push_back(node.get());
  return List(all, nodes, nullptr, count);
}

Error ListRoots(Process& process, void* handle, GraphNode** nodes, std::size_t* count) {
  const Graph* graph = GraphOf(process, handle);
  return graph == nullptr ? Error::kInvalidValue : List(graph->Roots(), nodes, nullptr, count);
}

Error ListEdges(Process& process, void* handle, GraphNode** from, GraphNode** to, std::uint64_t* edges,
                std::size_t* count) {
  const Graph* graph = GraphOf(process, handle);
  if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr)) return Error::kInvalidValue;
  std::vector<GraphNode*> befores, afters;
  for (const auto& [before, after] : graph->Edges()) {
    befores.push_back(before);
    afters.push_back(after);
  }
  std::size_t same_count = *count;
  if (const Error error = List(befores, from, edges, &same_count); error != Error::kNone) return error;
  return List(afters, to, nullptr, count);
}

Error ListBefore(Process& process, const GraphNode* node, GraphNode** nodes, std::uint64_t* edges, std::size_t* count) {
  return GraphHaving(process, node) == nullptr ? Error::kInvalidValue : List(node->after, nodes, edges, count);
}

Error ListAfter(Process& process, const GraphNode* node, GraphNode** nodes, std::uint64_t* edges, std::size_t* count) {
  const Graph* graph = GraphHaving(process, node);
  if (graph == nullptr) return Error::kInvalidValue;
  std::vector<GraphNode*> all;
  for (const auto& [before, after] : graph->Edges()) {
    if (before == node) all.push_back(after);
  }
  return List(all, nodes, edges, count);
}

Error AddEdges(Process& process, void* handle, GraphNode* const* from, GraphNode* const* to, std::size_t count) {
  const Graph* graph = GraphOf(process, handle);
  if (graph == nullptr || (count > 0 && (from == nullptr || to == nullptr))) return Error::kInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    if (!graph->Has(from[i]) || !graph->Has(to[i])) return Error::kInvalidValue;
    const std::vector<GraphNode*>& after = to[i]->after;
    if (std::find(after.begin(), after.end(), from[i]) != after.end()) return Error::kInvalidValue;
  }
  for (std::size_t i = 0; i < count; ++i) to[i]->after.push_back(from[i]);
  return Error::kNone;
}

Error RemoveEdges(Process& process, void* handle, GraphNode* const* from, GraphNode* const* to, std::size_t count) {
  const Graph* graph = GraphOf(process, handle);
  if (graph == nullptr || (count > 0 && (from == nullptr || to == nullptr))) return Error::kInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    if (!graph->Has(from[i]) || !graph->Has(to[i]) || std::erase(to[i]->after, from[i]) == 0) {
      return Error::kInvalidValue;
    }
  }
  return Error::kNone;
}

Error RemoveNode(Process& process, GraphNode* node) {
  Graph* graph = GraphHaving(process, node);
  if (graph == nullptr) return Error::kInvalidValue;
  graph->Remove(node);
  return Error::kNone;
}

// As CUDA's own enumeration ends: CU_GRAPH_NODE_TYPE_KERNEL.
static const char* NodeKindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kKernel:
      return "KERNEL";
    case NodeKind::kCopy:
      return "MEMCPY";
    case NodeKind::kFill:
      return "MEMSET";
    case NodeKind::kHost:
      return "HOST";
    case NodeKind::kGraph:
      return "GRAPH";
    case NodeKind::kEmpty:
      return "EMPTY";
    case NodeKind::kWaitEvent:
      return "WAIT_EVENT";
    case NodeKind::kRecordEvent:
      return "EVENT_RECORD";
    case NodeKind::kMemoryAlloc:
      return "MEM_ALLOC";
    case NodeKind::kMemoryFree:
      return "MEM_FREE";
  }
  return "";
}

Error PrintDot(Process& process, void* handle, const char* path) {
  const Graph* graph = GraphOf(process, handle);
  if (graph == nullptr || path == nullptr) return Error::kInvalidValue;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return Error::kUnknown;
  std::fprintf(file, "digraph {\n");
  for (const auto& node : graph->nodes()) {
    std::fprintf(file, "  \"%p\" [label=\"%s\"];\n", static_cast<void*>(node.get()), NodeKindName(node->kind));
  }
  for (const auto& [before, after] : graph->Edges()) {
    std::fprintf(file, "  \"%p\" -> \"%p\";\n", static_cast<void*>(before), static_cast<void*>(after));
  }
  std::fprintf(file, "}\n");
  return std::fclose(file) == 0 ? Error::kNone : Error::kUnknown;
}

// Graphs that are launched (graphs.h), and the program's objects that go with a graph.

namespace {

// Host functions run here, in their place among the nodes, on the thread that launches.
void Run(const Graph& graph, void* stream) {
  for (const GraphNode* node : graph.Order()) {
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
    StreamModel* on = StreamOf(process, stream);
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
