// CUDA's runtime: graphs. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
#include "hollow/api/cuda/graphs.h"

#include <cstdint>

#include "hollow/api/cuda/arrays.h"
#include "hollow/api/cuda/loaded_code.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/runtime/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaGraphCreate(void** graph, unsigned flags) {
  return Locked([&](Process& process) { return CreateGraph(process, flags, graph); });
}
ASHLAR_SURFACE int cudaGraphDestroy(void* graph) {
  return Locked([&](Process& process) { return DestroyGraph(process, graph); });
}
ASHLAR_SURFACE int cudaGraphClone(void** clone, void* graph) {
  return Locked([&](Process& process) { return CloneGraph(process, clone, graph); });
}
ASHLAR_SURFACE int cudaGraphNodeFindInClone(GraphNode** copy, GraphNode* original, void* clone) {
  return Locked([&](Process& process) { return FindInClone(process, copy, original, clone); });
}
ASHLAR_SURFACE int cudaGraphDebugDotPrint(void* graph, const char* path, unsigned) {
  return Locked([&](Process& process) { return PrintDot(process, graph, path); });
}

ASHLAR_SURFACE int cudaGraphAddEmptyNode(void** node, void* graph, GraphNode* const* after, std::size_t count) {
  return Locked(
      [&](Process& process) { return AddPlain(process, {node, graph, after, count}, NodeKind::kEmpty, nullptr, 0); });
}
ASHLAR_SURFACE int cudaGraphAddKernelNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                          const abi::KernelNodeParams* params) {
  return Locked([&](Process& process) {
    return AddPlain(process, {node, graph, after, count}, NodeKind::kKernel, params, sizeof(*params));
  });
}
ASHLAR_SURFACE int cudaGraphKernelNodeGetParams(GraphNode* node, abi::KernelNodeParams* params) {
  return Locked([&](Process& process) { return GetParams(process, node, NodeKind::kKernel, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cudaGraphKernelNodeSetParams(GraphNode* node, const abi::KernelNodeParams* params) {
  return Locked(
      [&](Process& process) { return SetPlain(process, nullptr, node, NodeKind::kKernel, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cudaGraphExecKernelNodeSetParams(void* exec, GraphNode* node, const abi::KernelNodeParams* params) {
  return Locked(
      [&](Process& process) { return SetPlain(process, exec, node, NodeKind::kKernel, params, sizeof(*params)); });
}

ASHLAR_SURFACE int cudaGraphAddHostNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                        const abi::HostNodeParams* params) {
  return Locked([&](Process& process) { return AddHost(process, {node, graph, after, count}, params); });
}
ASHLAR_SURFACE int cudaGraphHostNodeGetParams(GraphNode* node, abi::HostNodeParams* params) {
  return Locked([&](Process& process) { return GetParams(process, node, NodeKind::kHost, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cudaGraphHostNodeSetParams(GraphNode* node, const abi::HostNodeParams* params) {
  return Locked([&](Process& process) { return SetHost(process, nullptr, node, params); });
}
ASHLAR_SURFACE int cudaGraphExecHostNodeSetParams(void* exec, GraphNode* node, const abi::HostNodeParams* params) {
  return Locked([&](Process& process) { return SetHost(process, exec, node, params); });
}

ASHLAR_SURFACE int cudaGraphAddMemsetNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                          const abi::MemsetNodeParams* params) {
  return Locked([&](Process& process) { return AddFill(process, {node, graph, after, count}, params); });
}
ASHLAR_SURFACE int cudaGraphMemsetNodeGetParams(GraphNode* node, abi::MemsetNodeParams* params) {
  return Locked([&](Process& process) { return GetParams(process, node, NodeKind::kFill, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cudaGraphMemsetNodeSetParams(GraphNode* node, const abi::MemsetNodeParams* params) {
  return Locked([&](Process& process) { return SetFill(process, nullptr, node, params); });
}
ASHLAR_SURFACE int cudaGraphExecMemsetNodeSetParams(void* exec, GraphNode* node, const abi::MemsetNodeParams* params) {
  return Locked([&](Process& process) { return SetFill(process, exec, node, params); });
}

namespace {

CopyWork LineWork(void* to, const void* from, std::size_t bytes) { return {to, from, {bytes, 1, bytes, bytes}}; }

int AddBoxCopy(const NewNode& place, const abi::Memcpy3D* params) {
  CopyWork copy = {};
  if (params == nullptr) return Last(Error::kInvalidValue);
  if (const Error error = ReadCopy(*params, &copy); error != Error::kNone) return Last(error);
  return Locked([&](Process& process) { return AddCopy(process, place, copy, params, sizeof(*params)); });
}

int SetBoxCopy(void* exec, GraphNode* node, const abi::Memcpy3D* params) {
  CopyWork copy = {};
  if (params == nullptr) return Last(Error::kInvalidValue);
  if (const Error error = ReadCopy(*params, &copy); error != Error::kNone) return Last(error);
  return Locked([&](Process& process) { return SetCopy(process, exec, node, copy, params, sizeof(*params)); });
}

int AddLine(const NewNode& place, const CopyWork& copy) {
  return Locked([&](Process& process) { return AddCopy(process, place, copy, nullptr, 0); });
}

int SetLine(void* exec, GraphNode* node, const CopyWork& copy) {
  return Locked([&](Process& process) { return SetCopy(process, exec, node, copy, nullptr, 0); });
}

// A symbol's memory; nullptr, which is refused, where it has none.
char* InSymbol(const void* symbol, std::size_t offset) {
  char* address = static_cast<char*>(SymbolAddress(symbol));
  return address == nullptr ? nullptr : address + offset;
}

}  // namespace

ASHLAR_SURFACE int cudaGraphAddMemcpyNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                          const abi::Memcpy3D* params) {
  return AddBoxCopy({node, graph, after, count}, params);
}
ASHLAR_SURFACE int cudaGraphAddMemcpyNode1D(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                            void* to, const void* from, std::size_t bytes, int) {
  return AddLine({node, graph, after, count}, LineWork(to, from, bytes));
}
ASHLAR_SURFACE int cudaGraphAddMemcpyNodeToSymbol(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                                  const void* symbol, const void* from, std::size_t bytes,
                                                  std::size_t offset, int) {
  return AddLine({node, graph, after, count}, LineWork(InSymbol(symbol, offset), from, bytes));
}
ASHLAR_SURFACE int cudaGraphAddMemcpyNodeFromSymbol(void** node, void* graph, GraphNode* const* after,
                                                    std::size_t count, void* to, const void* symbol, std::size_t bytes,
                                                    std::size_t offset, int) {
  return AddLine({node, graph, after, count}, LineWork(to, InSymbol(symbol, offset), bytes));
}
ASHLAR_SURFACE int cudaGraphMemcpyNodeGetParams(GraphNode* node, abi::Memcpy3D* params) {
  return Locked([&](Process& process) { return GetParams(process, node, NodeKind::kCopy, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cudaGraphMemcpyNodeSetParams(GraphNode* node, const abi::Memcpy3D* params) {
  return SetBoxCopy(nullptr, node, params);
}
ASHLAR_SURFACE int cudaGraphMemcpyNodeSetParams1D(GraphNode* node, void* to, const void* from, std::size_t bytes, int) {
  return SetLine(nullptr, node, LineWork(to, from, bytes));
}
ASHLAR_SURFACE int cudaGraphExecMemcpyNodeSetParams(void* exec, GraphNode* node, const abi::Memcpy3D* params) {
  return SetBoxCopy(exec, node, params);
}
ASHLAR_SURFACE int cudaGraphExecMemcpyNodeSetParams1D(void* exec, GraphNode* node, void* to, const void* from,
                                                      std::size_t bytes, int) {
  return SetLine(exec, node, LineWork(to, from, bytes));
}

ASHLAR_SURFACE int cudaGraphAddChildGraphNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                              void* child) {
  return Locked([&](Process& process) { return AddChild(process, {node, graph, after, count}, child); });
}
ASHLAR_SURFACE int cudaGraphChildGraphNodeGetGraph(GraphNode* node, void** child) {
  return Locked([&](Process& process) { return GetChild(process, node, child); });
}
ASHLAR_SURFACE int cudaGraphExecChildGraphNodeSetParams(void* exec, GraphNode* node, void* child) {
  return Locked([&](Process& process) { return SetChild(process, exec, node, child); });
}

ASHLAR_SURFACE int cudaGraphAddEventRecordNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                               void* event) {
  return Locked(
      [&](Process& process) { return AddEvent(process, {node, graph, after, count}, NodeKind::kRecordEvent, event); });
}
ASHLAR_SURFACE int cudaGraphAddEventWaitNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                             void* event) {
  return Locked(
      [&](Process& process) { return AddEvent(process, {node, graph, after, count}, NodeKind::kWaitEvent, event); });
}
ASHLAR_SURFACE int cudaGraphEventRecordNodeGetEvent(GraphNode* node, void** event) {
  return Locked([&](Process& process) { return GetEvent(process, node, NodeKind::kRecordEvent, event); });
}
ASHLAR_SURFACE int cudaGraphEventRecordNodeSetEvent(GraphNode* node, void* event) {
  return Locked([&](Process& process) { return SetEvent(process, nullptr, node, NodeKind::kRecordEvent, event); });
}
ASHLAR_SURFACE int cudaGraphEventWaitNodeGetEvent(GraphNode* node, void** event) {
  return Locked([&](Process& process) { return GetEvent(process, node, NodeKind::kWaitEvent, event); });
}
ASHLAR_SURFACE int cudaGraphEventWaitNodeSetEvent(GraphNode* node, void* event) {
  return Locked([&](Process& process) { return SetEvent(process, nullptr, node, NodeKind::kWaitEvent, event); });
}
ASHLAR_SURFACE int cudaGraphExecEventRecordNodeSetEvent(void* exec, GraphNode* node, void* event) {
  return Locked([&](Process& process) { return SetEvent(process, exec, node, NodeKind::kRecordEvent, event); });
}
ASHLAR_SURFACE int cudaGraphExecEventWaitNodeSetEvent(void* exec, GraphNode* node, void* event) {
  return Locked([&](Process& process) { return SetEvent(process, exec, node, NodeKind::kWaitEvent, event); });
}

ASHLAR_SURFACE int cudaGraphAddMemAllocNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                            abi::MemAllocNodeParams* params) {
  return Locked([&](Process& process) { return AddMemory(process, {node, graph, after, count}, params); });
}
ASHLAR_SURFACE int cudaGraphMemAllocNodeGetParams(GraphNode* node, abi::MemAllocNodeParams* params) {
  return Locked(
      [&](Process& process) { return GetParams(process, node, NodeKind::kMemoryAlloc, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cudaGraphAddMemFreeNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                           void* address) {
  return Locked([&](Process& process) { return AddFree(process, {node, graph, after, count}, address); });
}
ASHLAR_SURFACE int cudaGraphMemFreeNodeGetParams(GraphNode* node, void* address) {
  return Locked(
      [&](Process& process) { return GetParams(process, node, NodeKind::kMemoryFree, address, sizeof(address)); });
}

// Any kind of node by one structure: cudaGraphNodeType.
ASHLAR_SURFACE int cudaGraphAddNode_v2(void** node, void* graph, GraphNode* const* after, const void*,
                                       std::size_t count, abi::RuntimeGraphNodeParams* params) {
  if (params == nullptr) return Last(Error::kInvalidValue);
  switch (params->type) {
    case 0:
      return cudaGraphAddKernelNode(node, graph, after, count, &params->kernel);
    case 1:
      return cudaGraphAddMemcpyNode(node, graph, after, count, &params->copy.copy);
    case 2:
      return cudaGraphAddMemsetNode(node, graph, after, count, &params->fill);
    case 3:
      return cudaGraphAddHostNode(node, graph, after, count, &params->host);
    case 4:
      return cudaGraphAddChildGraphNode(node, graph, after, count, params->child);
    case 5:
      return cudaGraphAddEmptyNode(node, graph, after, count);
    case 6:
      return cudaGraphAddEventWaitNode(node, graph, after, count, params->event);
    case 7:
      return cudaGraphAddEventRecordNode(node, graph, after, count, params->event);
    case 10:
      return cudaGraphAddMemAllocNode(node, graph, after, count, &params->memory);
    case 11:
      return cudaGraphAddMemFreeNode(node, graph, after, count, params->freed);
    default:
      CountRefused("cudaGraphAddNode of semaphores and conditions");
      return Last(Error::kNotSupported);
  }
}
// CUDA 12 exports this name without the edges' data, which is one argument earlier in CUDA 13.
ASHLAR_SURFACE int cudaGraphAddNode(void** node, void* graph, GraphNode* const* after, std::uint64_t fourth,
                                    std::uint64_t fifth, abi::RuntimeGraphNodeParams* sixth) {
  if (RuntimeMajor() >= 13) return cudaGraphAddNode_v2(node, graph, after, PointerTo(fourth), fifth, sixth);
  return cudaGraphAddNode_v2(node, graph, after, nullptr, fourth,
                             static_cast<abi::RuntimeGraphNodeParams*>(PointerTo(fifth)));
}
ASHLAR_OF_VERSIONS(cudaGraphAddNode, cudaGraphAddNode,
                   (void** node, void* graph, GraphNode* const* after, std::uint64_t fourth, std::uint64_t fifth,
                    abi::RuntimeGraphNodeParams* sixth),
                   (node, graph, after, fourth, fifth, sixth))
// By the same structure; in an instantiated graph where `exec` is not nullptr.
ASHLAR_SURFACE int cudaGraphExecNodeSetParams(void* exec, GraphNode* node, abi::RuntimeGraphNodeParams* params) {
  if (params == nullptr) return Last(Error::kInvalidValue);
  switch (params->type) {
    case 0:
      return cudaGraphExecKernelNodeSetParams(exec, node, &params->kernel);
    case 1:
      return cudaGraphExecMemcpyNodeSetParams(exec, node, &params->copy.copy);
    case 2:
      return cudaGraphExecMemsetNodeSetParams(exec, node, &params->fill);
    case 3:
      return cudaGraphExecHostNodeSetParams(exec, node, &params->host);
    case 4:
      return cudaGraphExecChildGraphNodeSetParams(exec, node, params->child);
    case 6:
      return cudaGraphExecEventWaitNodeSetEvent(exec, node, params->event);
    case 7:
      return cudaGraphExecEventRecordNodeSetEvent(exec, node, params->event);
    default:
      CountRefused("cudaGraphNodeSetParams of memory, semaphores and conditions");
      return Last(Error::kNotSupported);
  }
}
ASHLAR_SURFACE int cudaGraphNodeSetParams(GraphNode* node, abi::RuntimeGraphNodeParams* params) {
  return cudaGraphExecNodeSetParams(nullptr, node, params);
}

ASHLAR_SURFACE int cudaGraphNodeGetType(GraphNode* node, int* kind) {
  return Locked([&](Process& process) { return GetKind(process, node, kind); });
}
ASHLAR_SURFACE int cudaGraphGetNodes(void* graph, GraphNode** nodes, std::size_t* count) {
  return Locked([&](Process& process) { return ListNodes(process, graph, nodes, count); });
}
ASHLAR_SURFACE int cudaGraphGetRootNodes(void* graph, GraphNode** nodes, std::size_t* count) {
  return Locked([&](Process& process) { return ListRoots(process, graph, nodes, count); });
}
ASHLAR_SURFACE int cudaGraphGetEdges_v2(void* graph, GraphNode** from, GraphNode** to, std::uint64_t* edges,
                                        std::size_t* count) {
  return Locked([&](Process& process) { return ListEdges(process, graph, from, to, edges, count); });
}
ASHLAR_SURFACE int cudaGraphNodeGetDependencies_v2(GraphNode* node, GraphNode** nodes, std::uint64_t* edges,
                                                   std::size_t* count) {
  return Locked([&](Process& process) { return ListBefore(process, node, nodes, edges, count); });
}
ASHLAR_SURFACE int cudaGraphNodeGetDependentNodes_v2(GraphNode* node, GraphNode** nodes, std::uint64_t* edges,
                                                     std::size_t* count) {
  return Locked([&](Process& process) { return ListAfter(process, node, nodes, edges, count); });
}
ASHLAR_SURFACE int cudaGraphAddDependencies_v2(void* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                               std::size_t count) {
  return Locked([&](Process& process) { return AddEdges(process, graph, from, to, count); });
}
ASHLAR_SURFACE int cudaGraphRemoveDependencies_v2(void* graph, GraphNode* const* from, GraphNode* const* to,
                                                  const void*, std::size_t count) {
  return Locked([&](Process& process) { return RemoveEdges(process, graph, from, to, count); });
}
// CUDA 11 and 12 export these names without the edges' data, which is one argument earlier in CUDA 13.
ASHLAR_SURFACE int cudaGraphGetEdges(void* graph, GraphNode** from, GraphNode** to, void* fourth, std::size_t* count) {
  const bool is_old = RuntimeMajor() < 13;
  return cudaGraphGetEdges_v2(graph, from, to, is_old ? nullptr : static_cast<std::uint64_t*>(fourth),
                              is_old ? static_cast<std::size_t*>(fourth) : count);
}
ASHLAR_OF_VERSIONS(cudaGraphGetEdges, cudaGraphGetEdges,
                   (void* graph, GraphNode** from, GraphNode** to, void* fourth, std::size_t* count),
                   (graph, from, to, fourth, count))
ASHLAR_SURFACE int cudaGraphNodeGetDependencies(GraphNode* node, GraphNode** nodes, void* third, std::size_t* count) {
  const bool is_old = RuntimeMajor() < 13;
  return cudaGraphNodeGetDependencies_v2(node, nodes, is_old ? nullptr : static_cast<std::uint64_t*>(third),
                                         is_old ? static_cast<std::size_t*>(third) : count);
}
ASHLAR_OF_VERSIONS(cudaGraphNodeGetDependencies, cudaGraphNodeGetDependencies,
                   (GraphNode * node, GraphNode** nodes, void* third, std::size_t* count), (node, nodes, third, count))
ASHLAR_SURFACE int cudaGraphNodeGetDependentNodes(GraphNode* node, GraphNode** nodes, void* third, std::size_t* count) {
  const bool is_old = RuntimeMajor() < 13;
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, is_old ? nullptr : static_cast<std::uint64_t*>(third),
                                           is_old ? static_cast<std::size_t*>(third) : count);
}
ASHLAR_OF_VERSIONS(cudaGraphNodeGetDependentNodes, cudaGraphNodeGetDependentNodes,
                   (GraphNode * node, GraphNode** nodes, void* third, std::size_t* count), (node, nodes, third, count))
ASHLAR_SURFACE int cudaGraphAddDependencies(void* graph, GraphNode* const* from, GraphNode* const* to,
                                            std::uint64_t fourth, std::size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, RuntimeMajor() < 13 ? fourth : count);
}
ASHLAR_OF_VERSIONS(cudaGraphAddDependencies, cudaGraphAddDependencies,
                   (void* graph, GraphNode* const* from, GraphNode* const* to, std::uint64_t fourth, std::size_t count),
                   (graph, from, to, fourth, count))
ASHLAR_SURFACE int cudaGraphRemoveDependencies(void* graph, GraphNode* const* from, GraphNode* const* to,
                                               std::uint64_t fourth, std::size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, RuntimeMajor() < 13 ? fourth : count);
}
ASHLAR_OF_VERSIONS(cudaGraphRemoveDependencies, cudaGraphRemoveDependencies,
                   (void* graph, GraphNode* const* from, GraphNode* const* to, std::uint64_t fourth, std::size_t count),
                   (graph, from, to, fourth, count))

ASHLAR_SURFACE int cudaGraphDestroyNode(GraphNode* node) {
  return Locked([&](Process& process) { return RemoveNode(process, node); });
}
ASHLAR_SURFACE int cudaGraphNodeSetEnabled(void* exec, GraphNode* node, unsigned is_enabled) {
  return Locked([&](Process& process) { return SetEnabled(process, exec, node, is_enabled); });
}
ASHLAR_SURFACE int cudaGraphNodeGetEnabled(void* exec, GraphNode* node, unsigned* is_enabled) {
  return Locked([&](Process& process) { return GetEnabled(process, exec, node, is_enabled); });
}

ASHLAR_SURFACE int cudaGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  return Locked([&](Process& process) { return Instantiate(process, exec, graph, flags); });
}
// CUDA 11 has (exec, graph, error node, log, bytes of the log), later ones (exec, graph, flags).
ASHLAR_SURFACE int cudaGraphInstantiate(void** exec, void* graph, unsigned long long third) {
  if (RuntimeMajor() >= 12) return cudaGraphInstantiateWithFlags(exec, graph, third);
  if (third != 0) *static_cast<void**>(PointerTo(third)) = nullptr;
  return cudaGraphInstantiateWithFlags(exec, graph, 0);
}
ASHLAR_OF_VERSIONS(cudaGraphInstantiate, cudaGraphInstantiate, (void** exec, void* graph, unsigned long long third),
                   (exec, graph, third))

ASHLAR_SURFACE int cudaGraphInstantiateWithParams(void** exec, void* graph, abi::InstantiateParams* params) {
  if (params == nullptr) return Last(Error::kInvalidValue);
  params->error_node = nullptr;
  const int status = cudaGraphInstantiateWithFlags(exec, graph, params->flags);
  params->result = status == 0 ? 0 : 1;  // success, error
  return status;
}
// CUDA 11 has (exec, graph, error node, result), later ones one struct for both.
ASHLAR_SURFACE int cudaGraphExecUpdate(void* exec, void* graph, void* third, int* fourth) {
  int result = 0;
  const int status = Locked([&](Process& process) { return UpdateExec(process, exec, graph, &result); });
  if (RuntimeMajor() >= 12) {
    if (third != nullptr) *static_cast<abi::UpdateResult*>(third) = {result, nullptr, nullptr};
  } else {
    if (third != nullptr) *static_cast<void**>(third) = nullptr;
    if (fourth != nullptr) *fourth = result;
  }
  return status;
}
ASHLAR_OF_VERSIONS(cudaGraphExecUpdate, cudaGraphExecUpdate, (void* exec, void* graph, void* third, int* fourth),
                   (exec, graph, third, fourth))

ASHLAR_SURFACE int cudaGraphExecGetFlags(void* exec, unsigned long long* flags) {
  return Locked([&](Process& process) { return GetExecFlags(process, exec, flags); });
}
ASHLAR_SURFACE int cudaGraphExecDestroy(void* exec) {
  return Locked([&](Process& process) { return DestroyExec(process, exec); });
}
ASHLAR_SURFACE int cudaGraphUpload(void* exec, void*) {
  return Locked([&](Process& process) { return CheckExec(process, exec); });
}
ASHLAR_SURFACE int cudaGraphLaunch(void* exec, void* stream) { return Last(LaunchGraph(exec, stream)); }

ASHLAR_SURFACE int cudaUserObjectCreate(void** object, void* data, void (*destroy)(void*), unsigned count, unsigned) {
  return Locked([&](Process&) { return CreateUserObject(object, data, destroy, count); });
}
ASHLAR_SURFACE int cudaUserObjectRetain(void* object, unsigned count) {
  return Locked([&](Process&) { return RetainUserObject(object, count); });
}
ASHLAR_SURFACE int cudaUserObjectRelease(void* object, unsigned count) {
  return Locked([&](Process&) { return ReleaseUserObject(object, count); });
}
ASHLAR_SURFACE int cudaGraphRetainUserObject(void* graph, void* object, unsigned count, unsigned flags) {
  return Locked([&](Process& process) { return GraphRetain(process, graph, object, count, flags); });
}
ASHLAR_SURFACE int cudaGraphReleaseUserObject(void* graph, void* object, unsigned count) {
  return Locked([&](Process& process) { return GraphRelease(process, graph, object, count); });
}

ASHLAR_SAME(cudaGraphInstantiateWithParams_ptsz, cudaGraphInstantiateWithParams);
ASHLAR_SAME(cudaGraphUpload_ptsz, cudaGraphUpload);
ASHLAR_SAME(cudaGraphLaunch_ptsz, cudaGraphLaunch);
