// CUDA's driver: graphs. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.
#include "hollow/api/cuda/graphs.h"

#include <cstdint>

#include "hollow/api/cuda/arrays.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/driver/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cuGraphCreate(void** graph, unsigned flags) {
  return Driven([&](Process& process) { return CreateGraph(process, flags, graph); });
}
ASHLAR_SURFACE int cuGraphDestroy(void* graph) {
  return Driven([&](Process& process) { return DestroyGraph(process, graph); });
}
ASHLAR_SURFACE int cuGraphClone(void** clone, void* graph) {
  return Driven([&](Process& process) { return CloneGraph(process, clone, graph); });
}
ASHLAR_SURFACE int cuGraphNodeFindInClone(GraphNode** copy, GraphNode* original, void* clone) {
  return Driven([&](Process& process) { return FindInClone(process, copy, original, clone); });
}
ASHLAR_SURFACE int cuGraphDebugDotPrint(void* graph, const char* path, unsigned) {
  return Driven([&](Process& process) { return PrintDot(process, graph, path); });
}

ASHLAR_SURFACE int cuGraphAddEmptyNode(void** node, void* graph, GraphNode* const* after, std::size_t count) {
  return Driven(
      [&](Process& process) { return AddPlain(process, {node, graph, after, count}, NodeKind::kEmpty, nullptr, 0); });
}
ASHLAR_SURFACE int cuGraphAddKernelNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                        const abi::KernelNodeParams* params) {
  return Driven([&](Process& process) {
    return AddPlain(process, {node, graph, after, count}, NodeKind::kKernel, params, sizeof(*params));
  });
}
ASHLAR_SURFACE int cuGraphKernelNodeGetParams(GraphNode* node, abi::KernelNodeParams* params) {
  return Driven([&](Process& process) { return GetParams(process, node, NodeKind::kKernel, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphKernelNodeSetParams(GraphNode* node, const abi::KernelNodeParams* params) {
  return Driven(
      [&](Process& process) { return SetPlain(process, nullptr, node, NodeKind::kKernel, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphExecKernelNodeSetParams(void* exec, GraphNode* node, const abi::KernelNodeParams* params) {
  return Driven(
      [&](Process& process) { return SetPlain(process, exec, node, NodeKind::kKernel, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphAddKernelNode_v2(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                           const abi::KernelNodeParamsV2* params) {
  return Driven([&](Process& process) {
    return AddPlain(process, {node, graph, after, count}, NodeKind::kKernel, params, sizeof(*params));
  });
}
ASHLAR_SURFACE int cuGraphKernelNodeGetParams_v2(GraphNode* node, abi::KernelNodeParamsV2* params) {
  return Driven([&](Process& process) { return GetParams(process, node, NodeKind::kKernel, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphKernelNodeSetParams_v2(GraphNode* node, const abi::KernelNodeParamsV2* params) {
  return Driven(
      [&](Process& process) { return SetPlain(process, nullptr, node, NodeKind::kKernel, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphExecKernelNodeSetParams_v2(void* exec, GraphNode* node,
                                                     const abi::KernelNodeParamsV2* params) {
  return Driven(
      [&](Process& process) { return SetPlain(process, exec, node, NodeKind::kKernel, params, sizeof(*params)); });
}

ASHLAR_SURFACE int cuGraphAddHostNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                      const abi::HostNodeParams* params) {
  return Driven([&](Process& process) { return AddHost(process, {node, graph, after, count}, params); });
}
ASHLAR_SURFACE int cuGraphHostNodeGetParams(GraphNode* node, abi::HostNodeParams* params) {
  return Driven([&](Process& process) { return GetParams(process, node, NodeKind::kHost, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphHostNodeSetParams(GraphNode* node, const abi::HostNodeParams* params) {
  return Driven([&](Process& process) { return SetHost(process, nullptr, node, params); });
}
ASHLAR_SURFACE int cuGraphExecHostNodeSetParams(void* exec, GraphNode* node, const abi::HostNodeParams* params) {
  return Driven([&](Process& process) { return SetHost(process, exec, node, params); });
}

ASHLAR_SURFACE int cuGraphAddMemsetNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                        const abi::MemsetNodeParams* params, void*) {
  return Driven([&](Process& process) { return AddFill(process, {node, graph, after, count}, params); });
}
ASHLAR_SURFACE int cuGraphMemsetNodeGetParams(GraphNode* node, abi::MemsetNodeParams* params) {
  return Driven([&](Process& process) { return GetParams(process, node, NodeKind::kFill, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphMemsetNodeSetParams(GraphNode* node, const abi::MemsetNodeParams* params) {
  return Driven([&](Process& process) { return SetFill(process, nullptr, node, params); });
}
ASHLAR_SURFACE int cuGraphExecMemsetNodeSetParams(void* exec, GraphNode* node, const abi::MemsetNodeParams* params,
                                                  void*) {
  return Driven([&](Process& process) { return SetFill(process, exec, node, params); });
}

namespace {

int Refused(const char* name) {
  CountRefused(name);
  return Number(Error::kNotSupported);
}

}  // namespace

ASHLAR_SURFACE int cuGraphAddMemcpyNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                        const abi::DriverMemcpy3D* params, void*) {
  ASHLAR_NEEDS_INIT();
  CopyWork copy = {};
  if (params == nullptr) return Number(Error::kInvalidValue);
  if (const Error error = ReadCopy(*params, &copy); error != Error::kNone) return Number(error);
  return Driven(
      [&](Process& process) { return AddCopy(process, {node, graph, after, count}, copy, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphMemcpyNodeGetParams(GraphNode* node, abi::DriverMemcpy3D* params) {
  return Driven([&](Process& process) { return GetParams(process, node, NodeKind::kCopy, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphExecMemcpyNodeSetParams(void* exec, GraphNode* node, const abi::DriverMemcpy3D* params,
                                                  void*) {
  ASHLAR_NEEDS_INIT();
  CopyWork copy = {};
  if (params == nullptr) return Number(Error::kInvalidValue);
  if (const Error error = ReadCopy(*params, &copy); error != Error::kNone) return Number(error);
  return Driven([&](Process& process) { return SetCopy(process, exec, node, copy, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphMemcpyNodeSetParams(GraphNode* node, const abi::DriverMemcpy3D* params) {
  return cuGraphExecMemcpyNodeSetParams(nullptr, node, params, nullptr);
}

ASHLAR_SURFACE int cuGraphAddChildGraphNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                            void* child) {
  return Driven([&](Process& process) { return AddChild(process, {node, graph, after, count}, child); });
}
ASHLAR_SURFACE int cuGraphChildGraphNodeGetGraph(GraphNode* node, void** child) {
  return Driven([&](Process& process) { return GetChild(process, node, child); });
}
ASHLAR_SURFACE int cuGraphExecChildGraphNodeSetParams(void* exec, GraphNode* node, void* child) {
  return Driven([&](Process& process) { return SetChild(process, exec, node, child); });
}

ASHLAR_SURFACE int cuGraphAddEventRecordNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                             void* event) {
  return Driven(
      [&](Process& process) { return AddEvent(process, {node, graph, after, count}, NodeKind::kRecordEvent, event); });
}
ASHLAR_SURFACE int cuGraphAddEventWaitNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                           void* event) {
  return Driven(
      [&](Process& process) { return AddEvent(process, {node, graph, after, count}, NodeKind::kWaitEvent, event); });
}
ASHLAR_SURFACE int cuGraphEventRecordNodeGetEvent(GraphNode* node, void** event) {
  return Driven([&](Process& process) { return GetEvent(process, node, NodeKind::kRecordEvent, event); });
}
ASHLAR_SURFACE int cuGraphEventRecordNodeSetEvent(GraphNode* node, void* event) {
  return Driven([&](Process& process) { return SetEvent(process, nullptr, node, NodeKind::kRecordEvent, event); });
}
ASHLAR_SURFACE int cuGraphEventWaitNodeGetEvent(GraphNode* node, void** event) {
  return Driven([&](Process& process) { return GetEvent(process, node, NodeKind::kWaitEvent, event); });
}
ASHLAR_SURFACE int cuGraphEventWaitNodeSetEvent(GraphNode* node, void* event) {
  return Driven([&](Process& process) { return SetEvent(process, nullptr, node, NodeKind::kWaitEvent, event); });
}
ASHLAR_SURFACE int cuGraphExecEventRecordNodeSetEvent(void* exec, GraphNode* node, void* event) {
  return Driven([&](Process& process) { return SetEvent(process, exec, node, NodeKind::kRecordEvent, event); });
}
ASHLAR_SURFACE int cuGraphExecEventWaitNodeSetEvent(void* exec, GraphNode* node, void* event) {
  return Driven([&](Process& process) { return SetEvent(process, exec, node, NodeKind::kWaitEvent, event); });
}

ASHLAR_SURFACE int cuGraphAddMemAllocNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                          abi::MemAllocNodeParams* params) {
  return Driven([&](Process& process) { return AddMemory(process, {node, graph, after, count}, params); });
}
ASHLAR_SURFACE int cuGraphMemAllocNodeGetParams(GraphNode* node, abi::MemAllocNodeParams* params) {
  return Driven(
      [&](Process& process) { return GetParams(process, node, NodeKind::kMemoryAlloc, params, sizeof(*params)); });
}
ASHLAR_SURFACE int cuGraphAddMemFreeNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                         void* address) {
  return Driven([&](Process& process) { return AddFree(process, {node, graph, after, count}, address); });
}
ASHLAR_SURFACE int cuGraphMemFreeNodeGetParams(GraphNode* node, void* address) {
  return Driven(
      [&](Process& process) { return GetParams(process, node, NodeKind::kMemoryFree, address, sizeof(address)); });
}

// Any kind of node by one structure: CUgraphNodeType.
ASHLAR_SURFACE int cuGraphAddNode_v2(void** node, void* graph, GraphNode* const* after, const void*, std::size_t count,
                                     abi::GraphNodeParams* params) {
  ASHLAR_NEEDS_INIT();
  if (params == nullptr) return Number(Error::kInvalidValue);
  switch (params->type) {
    case 0:
      return cuGraphAddKernelNode_v2(node, graph, after, count, &params->kernel);
    case 1:
      return cuGraphAddMemcpyNode(node, graph, after, count, &params->copy.copy, params->copy.context);
    case 2:
      return cuGraphAddMemsetNode(node, graph, after, count, &params->fill, nullptr);
    case 3:
      return cuGraphAddHostNode(node, graph, after, count, &params->host);
    case 4:
      return cuGraphAddChildGraphNode(node, graph, after, count, params->child);
    case 5:
      return cuGraphAddEmptyNode(node, graph, after, count);
    case 6:
      return cuGraphAddEventWaitNode(node, graph, after, count, params->event);
    case 7:
      return cuGraphAddEventRecordNode(node, graph, after, count, params->event);
    case 10:
      return cuGraphAddMemAllocNode(node, graph, after, count, &params->memory);
    case 11:
      return cuGraphAddMemFreeNode(node, graph, after, count, params->freed);
    default:
      return Refused("cuGraphAddNode of semaphores, batches and conditions");
  }
}
ASHLAR_SURFACE int cuGraphAddNode(void** node, void* graph, GraphNode* const* after, std::size_t count,
                                  abi::GraphNodeParams* params) {
  return cuGraphAddNode_v2(node, graph, after, nullptr, count, params);
}

namespace {

// By the same structure; in an instantiated graph where `exec` is not nullptr.
int SetNode(void* exec, GraphNode* node, abi::GraphNodeParams* params) {
  ASHLAR_NEEDS_INIT();
  if (params == nullptr) return Number(Error::kInvalidValue);
  switch (params->type) {
    case 0:
      return Driven([&](Process& process) {
        return SetPlain(process, exec, node, NodeKind::kKernel, &params->kernel, sizeof(params->kernel));
      });
    case 1:
      return cuGraphExecMemcpyNodeSetParams(exec, node, &params->copy.copy, params->copy.context);
    case 2:
      return Driven([&](Process& process) { return SetFill(process, exec, node, &params->fill); });
    case 3:
      return Driven([&](Process& process) { return SetHost(process, exec, node, &params->host); });
    case 4:
      return Driven([&](Process& process) { return SetChild(process, exec, node, params->child); });
    default:
      return Refused("cuGraphNodeSetParams of events, memory, semaphores, batches and conditions");
  }
}

}  // namespace

ASHLAR_SURFACE int cuGraphNodeSetParams(GraphNode* node, abi::GraphNodeParams* params) {
  return SetNode(nullptr, node, params);
}
ASHLAR_SURFACE int cuGraphExecNodeSetParams(void* exec, GraphNode* node, abi::GraphNodeParams* params) {
  return SetNode(exec, node, params);
}

ASHLAR_SURFACE int cuGraphNodeGetType(GraphNode* node, int* kind) {
  return Driven([&](Process& process) { return GetKind(process, node, kind); });
}
ASHLAR_SURFACE int cuGraphGetNodes(void* graph, GraphNode** nodes, std::size_t* count) {
  return Driven([&](Process& process) { return ListNodes(process, graph, nodes, count); });
}
ASHLAR_SURFACE int cuGraphGetRootNodes(void* graph, GraphNode** nodes, std::size_t* count) {
  return Driven([&](Process& process) { return ListRoots(process, graph, nodes, count); });
}
ASHLAR_SURFACE int cuGraphGetEdges_v2(void* graph, GraphNode** from, GraphNode** to, std::uint64_t* edges,
                                      std::size_t* count) {
  return Driven([&](Process& process) { return ListEdges(process, graph, from, to, edges, count); });
}
ASHLAR_SURFACE int cuGraphNodeGetDependencies_v2(GraphNode* node, GraphNode** nodes, std::uint64_t* edges,
                                                 std::size_t* count) {
  return Driven([&](Process& process) { return ListBefore(process, node, nodes, edges, count); });
}
ASHLAR_SURFACE int cuGraphNodeGetDependentNodes_v2(GraphNode* node, GraphNode** nodes, std::uint64_t* edges,
                                                   std::size_t* count) {
  return Driven([&](Process& process) { return ListAfter(process, node, nodes, edges, count); });
}
ASHLAR_SURFACE int cuGraphAddDependencies_v2(void* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                             std::size_t count) {
  return Driven([&](Process& process) { return AddEdges(process, graph, from, to, count); });
}
ASHLAR_SURFACE int cuGraphRemoveDependencies_v2(void* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                                std::size_t count) {
  return Driven([&](Process& process) { return RemoveEdges(process, graph, from, to, count); });
}
// Without the edges' data: what the plain names were before version 2.
ASHLAR_SURFACE int cuGraphGetEdges(void* graph, GraphNode** from, GraphNode** to, std::size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}
ASHLAR_SURFACE int cuGraphNodeGetDependencies(GraphNode* node, GraphNode** nodes, std::size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}
ASHLAR_SURFACE int cuGraphNodeGetDependentNodes(GraphNode* node, GraphNode** nodes, std::size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}
ASHLAR_SURFACE int cuGraphAddDependencies(void* graph, GraphNode* const* from, GraphNode* const* to,
                                          std::size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
ASHLAR_SURFACE int cuGraphRemoveDependencies(void* graph, GraphNode* const* from, GraphNode* const* to,
                                             std::size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

ASHLAR_SURFACE int cuGraphDestroyNode(GraphNode* node) {
  return Driven([&](Process& process) { return RemoveNode(process, node); });
}
ASHLAR_SURFACE int cuGraphNodeSetEnabled(void* exec, GraphNode* node, unsigned is_enabled) {
  return Driven([&](Process& process) { return SetEnabled(process, exec, node, is_enabled); });
}
ASHLAR_SURFACE int cuGraphNodeGetEnabled(void* exec, GraphNode* node, unsigned* is_enabled) {
  return Driven([&](Process& process) { return GetEnabled(process, exec, node, is_enabled); });
}

ASHLAR_SURFACE int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  return Driven([&](Process& process) { return Instantiate(process, exec, graph, flags); });
}
// (exec, graph, error node, log, bytes of the log)
ASHLAR_SURFACE int cuGraphInstantiate(void** exec, void* graph, void** error_node, char*, std::size_t) {
  ASHLAR_NEEDS_INIT();
  if (error_node != nullptr) *error_node = nullptr;
  return cuGraphInstantiateWithFlags(exec, graph, 0);
}
ASHLAR_SAME(cuGraphInstantiate_v2, cuGraphInstantiate);

ASHLAR_SURFACE int cuGraphInstantiateWithParams(void** exec, void* graph, abi::InstantiateParams* params) {
  ASHLAR_NEEDS_INIT();
  if (params == nullptr) return Number(Error::kInvalidValue);
  params->error_node = nullptr;
  const int status = cuGraphInstantiateWithFlags(exec, graph, params->flags);
  params->result = status == 0 ? 0 : 1;  // success, error
  return status;
}
ASHLAR_SURFACE int cuGraphExecUpdate_v2(void* exec, void* graph, abi::UpdateResult* info) {
  ASHLAR_NEEDS_INIT();
  int result = 0;
  const int status = Driven([&](Process& process) { return UpdateExec(process, exec, graph, &result); });
  if (info != nullptr) *info = {result, nullptr, nullptr};
  return status;
}
ASHLAR_SURFACE int cuGraphExecUpdate(void* exec, void* graph, void** error_node, int* result) {
  ASHLAR_NEEDS_INIT();
  abi::UpdateResult info = {};
  const int status = cuGraphExecUpdate_v2(exec, graph, &info);
  if (error_node != nullptr) *error_node = nullptr;
  if (result != nullptr) *result = info.result;
  return status;
}

ASHLAR_SURFACE int cuGraphExecGetFlags(void* exec, unsigned long long* flags) {
  return Driven([&](Process& process) { return GetExecFlags(process, exec, flags); });
}
ASHLAR_SURFACE int cuGraphExecDestroy(void* exec) {
  return Driven([&](Process& process) { return DestroyExec(process, exec); });
}
ASHLAR_SURFACE int cuGraphUpload(void* exec, void*) {
  return Driven([&](Process& process) { return CheckExec(process, exec); });
}
ASHLAR_SURFACE int cuGraphLaunch(void* exec, void* stream) {
  return AfterInit([=] { return LaunchGraph(exec, stream); });
}

ASHLAR_SURFACE int cuUserObjectCreate(void** object, void* data, void (*destroy)(void*), unsigned count, unsigned) {
  return Driven([&](Process&) { return CreateUserObject(object, data, destroy, count); });
}
ASHLAR_SURFACE int cuUserObjectRetain(void* object, unsigned count) {
  return Driven([&](Process&) { return RetainUserObject(object, count); });
}
ASHLAR_SURFACE int cuUserObjectRelease(void* object, unsigned count) {
  return Driven([&](Process&) { return ReleaseUserObject(object, count); });
}
ASHLAR_SURFACE int cuGraphRetainUserObject(void* graph, void* object, unsigned count, unsigned flags) {
  return Driven([&](Process& process) { return GraphRetain(process, graph, object, count, flags); });
}
ASHLAR_SURFACE int cuGraphReleaseUserObject(void* graph, void* object, unsigned count) {
  return Driven([&](Process& process) { return GraphRelease(process, graph, object, count); });
}

ASHLAR_SAME(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams);
ASHLAR_SAME(cuGraphUpload_ptsz, cuGraphUpload);
ASHLAR_SAME(cuGraphLaunch_ptsz, cuGraphLaunch);
