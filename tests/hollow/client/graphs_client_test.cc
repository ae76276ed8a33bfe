// Graphs, captured and built node by node: what is real of them happens at each launch.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

using GraphsClientTest = InHollowTest;

void* Instantiate(void* graph) {
  void* exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), kSuccess);
  return exec;
}

void* NewGraph() {
  void* out = nullptr;
  EXPECT_EQ(cudaGraphCreate(&out, 0), kSuccess);
  return out;
}

void* AddFill(void* graph, void* to, unsigned value, std::size_t bytes) {
  const abi::MemsetNodeParams params = {to, bytes, value, 1, bytes, 1};
  void* node = nullptr;
  EXPECT_EQ(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params), kSuccess);
  return node;
}

TEST_F(GraphsClientTest, CapturedCopiesAreRealAtEachLaunch) {
  Run({}, [] {
    void *from = Malloc(10), *to = Malloc(10), *stream = NewStream(), *graph = nullptr;
    WriteText(from, "first");
    WriteText(to, ".....");
    EXPECT_EQ(cudaStreamBeginCapture(stream, 0), kSuccess);
    EXPECT_EQ(cudaMemcpyAsync(to, from, 5, kDefaultCopy, stream), kSuccess);
    EXPECT_EQ(Launch(stream), kSuccess);
    EXPECT_EQ(cudaMemsetAsync(static_cast<char*>(to) + 5, 'x', 2, stream), kSuccess);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), kSuccess);
    EXPECT_EQ(ReadText(to, 5), ".....") << "a capture runs nothing";
    void* exec = Instantiate(graph);
    EXPECT_EQ(cudaGraphDestroy(graph), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, stream), kSuccess);
    EXPECT_EQ(ReadText(to, 7), "firstxx");
    WriteText(from, "again");
    EXPECT_EQ(cudaGraphLaunch(exec, stream), kSuccess);
    EXPECT_EQ(ReadText(to, 7), "againxx");
    EXPECT_EQ(cudaGraphExecDestroy(exec), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, stream), kInvalidValue);
  });
}

TEST_F(GraphsClientTest, NodesRunAfterThoseThatTheyComeAfter) {
  Run({}, [] {
    void *bytes = Malloc(10), *graph = NewGraph(), *copy = nullptr;
    std::string host = "....";
    void* fill = AddFill(graph, bytes, 'a', 4);
    EXPECT_EQ(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, host.data(), bytes, 4, kDefaultCopy), kSuccess);
    void* later = AddFill(graph, bytes, 'b', 4);
    // First the last fill, then the copy, then the first fill.
    void* const from[] = {later, copy};
    void* const to[] = {copy, fill};
    EXPECT_EQ(cudaGraphAddDependencies(graph, from, to, nullptr, 2), kSuccess);
    std::size_t count = 0;
    EXPECT_EQ(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), kSuccess);
    EXPECT_EQ(count, 2U);
    void* exec = Instantiate(graph);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), kSuccess);
    EXPECT_EQ(host, "bbbb");
    EXPECT_EQ(ReadText(bytes, 4), "aaaa");
    EXPECT_EQ(cudaGraphAddDependencies(graph, &fill, &later, nullptr, 1), kSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), kInvalidValue) << "a circle";
  });
}

TEST_F(GraphsClientTest, AGraphIsPrintedWithTheKindsOfItsNodes) {
  Run({}, [] {
    void *graph = NewGraph(), *to = Malloc(4), *empty = nullptr;
    void* fill = AddFill(graph, to, 1, 4);
    EXPECT_EQ(cudaGraphAddEmptyNode(&empty, graph, &fill, 1), kSuccess);
    const std::string path = testing::TempDir() + "hollow_graph.dot";
    EXPECT_EQ(cudaGraphDebugDotPrint(graph, path.c_str(), 0), kSuccess);
    std::ifstream file(path);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(text.find("[label=\"MEMSET\"]"), std::string::npos) << text;
    EXPECT_NE(text.find("[label=\"EMPTY\"]"), std::string::npos) << text;
    EXPECT_NE(text.find("\" -> \""), std::string::npos) << text;
    std::remove(path.c_str());
  });
}

TEST_F(GraphsClientTest, AnExecutableIsChangedAndItsNodesAreSwitched) {
  Run({}, [] {
    void *bytes = Malloc(10), *graph = NewGraph();
    void* fill = AddFill(graph, bytes, 'a', 2);
    void* exec = Instantiate(graph);
    const abi::MemsetNodeParams other = {bytes, 2, 'c', 1, 2, 1};
    EXPECT_EQ(cudaGraphExecMemsetNodeSetParams(exec, fill, &other), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(ReadText(bytes, 2), "cc");
    WriteText(bytes, "--");
    EXPECT_EQ(cudaGraphNodeSetEnabled(exec, fill, 0), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(ReadText(bytes, 2), "--");
    EXPECT_EQ(cudaGraphNodeSetEnabled(exec, fill, 1), kSuccess);
    void* same = NewGraph();
    AddFill(same, bytes, 'u', 2);
    abi::UpdateResult result = {9, nullptr, nullptr};
    EXPECT_EQ(cudaGraphExecUpdate(exec, same, &result), kSuccess);
    EXPECT_EQ(result.result, 0);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(ReadText(bytes, 2), "uu");
    void* node = nullptr;
    EXPECT_EQ(cudaGraphAddEmptyNode(&node, same, nullptr, 0), kSuccess);
    EXPECT_EQ(cudaGraphExecUpdate(exec, same, &result), kUpdateFailure);
    EXPECT_EQ(result.result, 2) << "the topology";
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess) << "as it was";
  });
}

TEST_F(GraphsClientTest, NodesAreListedAndFoundInAClone) {
  Run({}, [] {
    void *graph = NewGraph(), *kernel = nullptr, *clone = nullptr, *found = nullptr;
    abi::KernelNodeParams params = {};
    params.block.x = 77;
    EXPECT_EQ(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &params), kSuccess);
    void* nodes[3] = {graph, graph, graph};
    std::size_t count = 3;
    EXPECT_EQ(cudaGraphGetNodes(graph, nodes, &count), kSuccess);
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(nodes[0], kernel);
    EXPECT_EQ(nodes[1], nullptr);
    int kind = 9;
    EXPECT_EQ(cudaGraphNodeGetType(kernel, &kind), kSuccess);
    EXPECT_EQ(kind, 0);
    abi::KernelNodeParams read = {};
    EXPECT_EQ(cudaGraphKernelNodeGetParams(kernel, &read), kSuccess);
    EXPECT_EQ(read.block.x, 77U);
    EXPECT_EQ(cudaGraphClone(&clone, graph), kSuccess);
    EXPECT_EQ(cudaGraphNodeFindInClone(&found, kernel, clone), kSuccess);
    EXPECT_NE(found, kernel);
    EXPECT_EQ(cudaGraphDestroy(graph), kSuccess);
    EXPECT_EQ(cudaGraphNodeGetType(kernel, &kind), kInvalidValue);
    EXPECT_EQ(cudaGraphNodeGetType(found, &kind), kSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), kInvalidValue);
  });
}

TEST_F(GraphsClientTest, AChildRunsInItsPlace) {
  Run({}, [] {
    void *bytes = Malloc(10), *child = NewGraph(), *graph = NewGraph(), *node = nullptr;
    AddFill(child, bytes, 'k', 3);
    EXPECT_EQ(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child), kSuccess);
    EXPECT_EQ(cudaGraphDestroy(child), kSuccess) << "a copy is in the graph";
    EXPECT_EQ(cudaGraphLaunch(Instantiate(graph), nullptr), kSuccess);
    EXPECT_EQ(ReadText(bytes, 3), "kkk");
    EXPECT_EQ(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, graph), kInvalidValue);
  });
}

// The captures of PyTorch's graphs take no memory by nodes; those of cudaMallocAsync do.
TEST_F(GraphsClientTest, MemoryOfANodeStaysWithTheLastGraphThatHasIt) {
  Run({}, [] {
    void *stream = NewStream(), *block = nullptr, *graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream, 0), kSuccess);
    EXPECT_EQ(cudaMallocAsync(&block, 40 * kMiB, stream), kSuccess);
    EXPECT_EQ(cudaFreeAsync(block, stream), kSuccess);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), kSuccess);
    EXPECT_EQ(UsedBytes(), 64 * kMiB);
    void* exec = Instantiate(graph);
    EXPECT_EQ(cudaGraphDestroy(graph), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, stream), kSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), kSuccess);
    EXPECT_EQ(UsedBytes(), 64 * kMiB) << "it is there for the next launch";
    EXPECT_EQ(cudaGraphExecDestroy(exec), kSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), kSuccess);
    EXPECT_EQ(UsedBytes(), 0U);
  });
}

TEST_F(GraphsClientTest, MemoryNodesByHand) {
  Run({}, [] {
    void *graph = NewGraph(), *made = nullptr, *freed = nullptr;
    abi::MemAllocNodeParams params = {};
    params.props.location = {1, 0};
    params.bytes = 1000;
    EXPECT_EQ(cudaGraphAddMemAllocNode(&made, graph, nullptr, 0, &params), kSuccess);
    ASSERT_NE(params.address, nullptr);
    EXPECT_EQ(cudaGraphAddMemFreeNode(&freed, graph, &made, 1, params.address), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(Instantiate(graph), nullptr), kSuccess);
    params.props.location = {1, 7};
    EXPECT_EQ(cudaGraphAddMemAllocNode(&made, graph, nullptr, 0, &params), kInvalidDevice);
    params.bytes = 0;
    EXPECT_EQ(cudaGraphAddMemAllocNode(&made, graph, nullptr, 0, &params), kInvalidValue);
  });
}

constexpr unsigned kExternal = 1;  // cudaEventRecordExternal, cudaEventWaitExternal

using RecordEvent = int (*)(void* event, void* stream, unsigned flags);
using WaitForEvent = int (*)(void* stream, void* event, unsigned flags);

// An external event of a capture is recorded at each launch, so that it can be asked for, waited for and measured.
void ExpectExternalEvents(RecordEvent record, WaitForEvent wait) {
  void *stream = NewStream(), *begin = NewEvent(), *end = NewEvent(), *inside = NewEvent(), *graph = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(stream, 0), kSuccess);
  EXPECT_EQ(record(begin, stream, kExternal), kSuccess);
  EXPECT_EQ(Launch(stream), kSuccess);
  EXPECT_EQ(record(inside, stream, 0), kSuccess);
  EXPECT_EQ(wait(stream, end, kExternal), kSuccess);
  EXPECT_EQ(record(end, stream, kExternal), kSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), kSuccess);
  float ms = 0, again_ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), kInvalidHandle) << "a capture records nothing";
  void* exec = Instantiate(graph);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), kSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), kSuccess);
  EXPECT_EQ(cudaEventQuery(begin), kSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), kSuccess);
  EXPECT_GT(ms, 0.0F);
  EXPECT_EQ(cudaEventQuery(inside), kInvalidValue) << "it is of a capture that has ended";
  void* before = NewEvent();
  EXPECT_EQ(cudaEventRecord(before, stream), kSuccess);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), kSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&again_ms, before, begin), kSuccess);
  EXPECT_GT(again_ms, 0.0F) << "the second launch records it again";
}

TEST_F(GraphsClientTest, ExternalEventsOfACaptureAreRecordedAtEachLaunch) {
  Run({}, [] { ExpectExternalEvents(cudaEventRecordWithFlags, cudaStreamWaitEvent); });
  Run({}, [] { ExpectExternalEvents(cuEventRecordWithFlags, cuStreamWaitEvent); });
}

TEST_F(GraphsClientTest, ExternalEventsAreOfCapturesOnly) {
  Run({}, [] {
    void *stream = NewStream(), *event = NewEvent();
    EXPECT_EQ(cudaEventRecordWithFlags(event, stream, kExternal), kIllegalState);
    EXPECT_EQ(cudaStreamWaitEvent(stream, event, kExternal), kIllegalState);
    EXPECT_EQ(cudaEventRecordWithFlags(event, stream, 2), kInvalidValue);
    EXPECT_EQ(cudaEventRecordWithFlags(event, stream, 0), kSuccess);
    EXPECT_EQ(cudaEventQuery(event), kSuccess);
  });
}

void CountDown(void* count) { --*static_cast<std::atomic<int>*>(count); }
void AddOne(void* count) { ++*static_cast<std::atomic<int>*>(count); }

TEST_F(GraphsClientTest, HostNodesRunAndUserObjectsGoWithTheGraph) {
  Run({}, [] {
    std::atomic<int> runs = 0, objects = 1;
    void *graph = NewGraph(), *node = nullptr, *object = nullptr;
    const abi::HostNodeParams host = {AddOne, &runs};
    EXPECT_EQ(cudaGraphAddHostNode(&node, graph, nullptr, 0, &host), kSuccess);
    EXPECT_EQ(cudaUserObjectCreate(&object, &objects, CountDown, 1, 1), kSuccess);
    EXPECT_EQ(cudaGraphRetainUserObject(graph, object, 1, 1), kSuccess) << "moved to the graph";
    void* exec = Instantiate(graph);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), kSuccess);
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(cudaGraphDestroy(graph), kSuccess);
    EXPECT_EQ(cudaLaunchHostFunc(nullptr, AddOne, &runs), kSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), kSuccess);
    EXPECT_EQ(objects, 1) << "the executable has it";
    EXPECT_EQ(cudaGraphExecDestroy(exec), kSuccess);
    EXPECT_EQ(cudaLaunchHostFunc(nullptr, AddOne, &runs), kSuccess);  // after it, on the same thread
    EXPECT_EQ(cudaDeviceSynchronize(), kSuccess);
    EXPECT_EQ(objects, 0);
  });
}

// CUgraphNodeParams: its kind, three reserved words, and the parameters of that kind.
struct AnyNode {
  explicit AnyNode(int kind) { std::memcpy(bytes, &kind, sizeof(kind)); }
  template <typename Params>
  AnyNode(int kind, const Params& params) : AnyNode(kind) {
    std::memcpy(bytes + 16, &params, sizeof(params));
  }
  alignas(8) char bytes[256] = {};
};

TEST_F(GraphsClientTest, NodesOfAnyKindByOneStructure) {
  Run({}, [] {
    static int calls = 0;
    void *target = Malloc(8), *graph = NewGraph(), *child = NewGraph(), *event = NewEvent();
    WriteText(target, "........");
    AddFill(child, static_cast<char*>(target) + 4, 'c', 2);
    auto add = [graph, last = std::vector<void*>()](AnyNode node) mutable {
      void* added = nullptr;
      EXPECT_EQ(cuGraphAddNode_v2(&added, graph, last.data(), nullptr, last.size(), node.bytes), kSuccess);
      last = {added};
      int kind = -1, wanted = 0;
      EXPECT_EQ(cudaGraphNodeGetType(added, &kind), kSuccess);
      std::memcpy(&wanted, node.bytes, sizeof(wanted));
      EXPECT_EQ(kind, wanted);
    };
    abi::KernelNodeParamsV2 kernel = {};
    add(AnyNode(0, kernel));
    add(AnyNode(2, abi::MemsetNodeParams{target, 4, 'f', 1, 4, 1}));
    add(AnyNode(3, abi::HostNodeParams{[](void* count) { ++*static_cast<int*>(count); }, &calls}));
    add(AnyNode(4, child));
    add(AnyNode(5));
    add(AnyNode(7, event));
    abi::MemcpyNodeParams copy = {};
    copy.copy.src_type = copy.copy.dst_type = 2;
    copy.copy.src_device = reinterpret_cast<std::uint64_t>(target);
    copy.copy.dst_device = reinterpret_cast<std::uint64_t>(target) + 6;
    copy.copy.width_bytes = 2;
    copy.copy.height = copy.copy.depth = 1;
    add(AnyNode(1, copy));
    EXPECT_EQ(cudaGraphLaunch(Instantiate(graph), nullptr), kSuccess);
    EXPECT_EQ(ReadText(target, 8), "ffffccff");
    EXPECT_EQ(calls, 1);
    void* node = nullptr;
    AnyNode condition(13);
    EXPECT_EQ(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, condition.bytes), kNotSupported);
  });
  EXPECT_EQ(Report()["refused"][0]["name"], "cuGraphAddNode of semaphores, batches and conditions");
}

TEST_F(GraphsClientTest, NodesOfAnyKindByTheRuntimesStructure) {
  Run({}, [] {
    static int calls = 0;
    void *target = Malloc(8), *graph = NewGraph(), *child = NewGraph(), *event = NewEvent();
    WriteText(target, "........");
    AddFill(child, static_cast<char*>(target) + 4, 'c', 2);
    std::vector<void*> last;
    const auto add = [&](AnyNode node) {
      void* added = nullptr;
      EXPECT_EQ(cudaGraphAddNode(&added, graph, last.data(), nullptr, last.size(), node.bytes), kSuccess);
      last = {added};
      int kind = -1, wanted = 0;
      EXPECT_EQ(cudaGraphNodeGetType(added, &kind), kSuccess);
      std::memcpy(&wanted, node.bytes, sizeof(wanted));
      EXPECT_EQ(kind, wanted);
      return added;
    };
    const auto copy_of = [&](std::size_t from, std::size_t to) {
      abi::RuntimeMemcpyNodeParams copy = {};
      copy.copy.src_ptr = {static_cast<char*>(target) + from, 8, 8, 1};
      copy.copy.dst_ptr = {static_cast<char*>(target) + to, 8, 8, 1};
      copy.copy.extent = {2, 1, 1};
      copy.copy.kind = 3;
      return AnyNode(1, copy);
    };
    add(AnyNode(0, abi::KernelNodeParams{}));
    void* const fill = add(AnyNode(2, abi::MemsetNodeParams{target, 4, 'f', 1, 4, 1}));
    add(AnyNode(3, abi::HostNodeParams{[](void* count) { ++*static_cast<int*>(count); }, &calls}));
    add(AnyNode(4, child));
    add(AnyNode(5));
    add(AnyNode(7, event));
    void* const copied = add(copy_of(0, 6));
    AnyNode changed = copy_of(4, 6);
    EXPECT_EQ(cudaGraphNodeSetParams(copied, changed.bytes), kSuccess);
    void* const exec = Instantiate(graph);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(ReadText(target, 8), "ffffcccc");
    AnyNode other(2, abi::MemsetNodeParams{target, 4, 'e', 1, 4, 1});
    EXPECT_EQ(cudaGraphExecNodeSetParams(exec, fill, other.bytes), kSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
    EXPECT_EQ(ReadText(target, 8), "eeeecccc");
    EXPECT_EQ(calls, 2);
    void* node = nullptr;
    AnyNode condition(13);
    EXPECT_EQ(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, condition.bytes), kNotSupported);
    AnyNode empty(5);
    using AddsOfCuda12 = int (*)(void**, void*, void* const*, std::size_t, void*);
    const auto of_cuda_12 = reinterpret_cast<AddsOfCuda12>(dlsym(RTLD_DEFAULT, "ashlar_12_cudaGraphAddNode"));
    ASSERT_NE(of_cuda_12, nullptr);
    EXPECT_EQ(of_cuda_12(&node, graph, last.data(), 1, empty.bytes), kSuccess);
  });
  EXPECT_EQ(Report()["refused"][0]["name"], "cudaGraphAddNode of semaphores and conditions");
}

}  // namespace
}  // namespace ashlar::hollow::client
