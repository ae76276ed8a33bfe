// Shared by the runtime's and the driver's calls on graphs: building them, looking at them, launching them.
//
// A node's parameters are kept as the program gave them, and given back. Those of captured work are not known, and
// asking for them is refused. With the process's lock held, but for LaunchGraph. Source of the rules: CUDA C++
// Programming Guide, "CUDA Graphs".
#ifndef ASHLAR_HOLLOW_API_CUDA_GRAPHS_H_
#define ASHLAR_HOLLOW_API_CUDA_GRAPHS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hollow/abi/cuda_types.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/model/error.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

void* KeepGraph(Process& process, std::unique_ptr<Graph> graph);
// nullptr where the handle is none, or work is being captured into it.
std::unique_ptr<Graph> TakeGraph(Process& process, void* graph);
Graph* GraphOf(Process& process, const void* graph);

Error CreateGraph(Process& process, unsigned flags, void** graph);
Error DestroyGraph(Process& process, void* graph);
Error CloneGraph(Process& process, void** clone, void* graph);

// The first four arguments of every call that adds a node.
struct NewNode {
  void** node;
  void* graph;
  GraphNode* const* after;
  std::size_t count;
};
// A node of its own parameters, by the bytes of CUDA's struct, which nothing runs: kernels.
Error AddPlain(Process& process, const NewNode& place, NodeKind kind, const void* params, std::size_t bytes);
Error AddHost(Process& process, const NewNode& place, const abi::HostNodeParams* params);
Error AddFill(Process& process, const NewNode& place, const abi::MemsetNodeParams* params);
Error AddCopy(Process& process, const NewNode& place, const CopyWork& copy, const void* params, std::size_t bytes);
Error AddChild(Process& process, const NewNode& place, void* child);
Error AddEvent(Process& process, const NewNode& place, NodeKind kind, void* event);
Error AddMemory(Process& process, const NewNode& place, abi::MemAllocNodeParams* params);
Error AddFree(Process& process, const NewNode& place, void* address);

// Of a node, or of its copy in an instantiated graph where `exec` is not nullptr.
Error SetPlain(Process& process, void* exec, GraphNode* node, NodeKind kind, const void* params, std::size_t bytes);
Error SetHost(Process& process, void* exec, GraphNode* node, const abi::HostNodeParams* params);
Error SetFill(Process& process, void* exec, GraphNode* node, const abi::MemsetNodeParams* params);
Error SetCopy(Process& process, void* exec, GraphNode* node, const CopyWork& copy, const void* params,
              std::size_t bytes);
Error SetChild(Process& process, void* exec, GraphNode* node, void* child);
Error SetEvent(Process& process, void* exec, GraphNode* node, NodeKind kind, void* event);
Error SetEnabled(Process& process, void* exec, GraphNode* node, unsigned is_enabled);

// kNotSupported where the node was captured.
Error GetParams(Process& process, const GraphNode* node, NodeKind kind, void* params, std::size_t bytes);
Error GetEvent(Process& process, const GraphNode* node, NodeKind kind, void** event);
Error GetChild(Process& process, const GraphNode* node, void** child);
Error GetKind(Process& process, const GraphNode* node, int* kind);
Error GetEnabled(Process& process, void* exec, const GraphNode* node, unsigned* is_enabled);
Error FindInClone(Process& process, GraphNode** copy, const GraphNode* original, void* clone);

// Lists: where `nodes` is nullptr the count alone is given, else as many as `*count` says, and nullptr after the last.
// `edges`: cudaGraphEdgeData of each, plain; may be nullptr.
Error ListNodes(Process& process, void* graph, GraphNode** nodes, std::size_t* count);
Error ListRoots(Process& process, void* graph, GraphNode** nodes, std::size_t* count);
Error ListEdges(Process& process, void* graph, GraphNode** from, GraphNode** to, std::uint64_t* edges,
                std::size_t* count);
Error ListBefore(Process& process, const GraphNode* node, GraphNode** nodes, std::uint64_t* edges, std::size_t* count);
Error ListAfter(Process& process, const GraphNode* node, GraphNode** nodes, std::uint64_t* edges, std::size_t* count);

Error AddEdges(Process& process, void* graph, GraphNode* const* from, GraphNode* const* to, std::size_t count);
Error RemoveEdges(Process& process, void* graph, GraphNode* const* from, GraphNode* const* to, std::size_t count);
Error RemoveNode(Process& process, GraphNode* node);
Error PrintDot(Process& process, void* graph, const char* path);

Error Instantiate(Process& process, void** exec, void* graph, std::uint64_t flags);
// `result`: cudaGraphExecUpdateResult.
Error UpdateExec(Process& process, void* exec, void* graph, int* result);
Error DestroyExec(Process& process, void* exec);
Error GetExecFlags(Process& process, void* exec, unsigned long long* flags);
Error CheckExec(Process& process, void* exec);
// Without the lock.
Error LaunchGraph(void* exec, void* stream);

Error CreateUserObject(void** object, void* data, void (*destroy)(void*), unsigned count);
Error RetainUserObject(void* object, unsigned count);
Error ReleaseUserObject(void* object, unsigned count);
Error GraphRetain(Process& process, void* graph, void* object, unsigned count, unsigned flags);
Error GraphRelease(Process& process, void* graph, void* object, unsigned count);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_GRAPHS_H_
