// One name, other arguments and layouts: what a program that brought CUDA 11, 12 or 13 gets. Built once for each, over
// a stand-in for that runtime.
//
// Source: cuda_runtime_api.h and driver_types.h of CUDA 11.8, 12.4 and 13.0.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "hollow/abi/cuda_types.h"
#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

constexpr int kMajor = ASHLAR_TEST_CUDART / 1000;
constexpr std::size_t kPropBytes = kMajor == 11 ? 728 : kMajor == 12 ? 1032 : 1008;
constexpr std::size_t kFuncAttributesBytes = kMajor == 11 ? 56 : 144;

using VersionsTest = InHollowTest;

template <typename Function>
Function* Named(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// How many bytes of a large buffer a call wrote to.
std::size_t WrittenBytes(const std::vector<unsigned char>& bytes) {
  const auto last = std::find_if(bytes.rbegin(), bytes.rend(), [](unsigned char byte) { return byte != 0x5A; });
  return static_cast<std::size_t>(bytes.rend() - last);
}

TEST_F(VersionsTest, TheRuntimeIsTheOneThatTheProgramBrought) {
  Run({}, [] {
    int version = 0;
    EXPECT_EQ(cudaRuntimeGetVersion(&version), kSuccess);
    EXPECT_EQ(version, ASHLAR_TEST_CUDART);
  });
}

TEST_F(VersionsTest, NoByteBehindAStructIsWritten) {
  Run({"name=A card"}, [] {
    std::vector<unsigned char> bytes(4096, 0x5A);
    // Programs compiled with CUDA 12 call _v2 and ask for 12's layout.
    const char* name = kMajor == 12 ? "cudaGetDeviceProperties_v2" : "cudaGetDeviceProperties";
    EXPECT_EQ(Named<int(void*, int)>(name)(bytes.data(), 0), kSuccess);
    EXPECT_EQ(WrittenBytes(bytes), kPropBytes);
    EXPECT_STREQ(reinterpret_cast<const char*>(bytes.data()), "A card");
    std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0x5A));
    EXPECT_EQ(Named<int(void*, const void*)>("cudaFuncGetAttributes")(bytes.data(), bytes.data()), kSuccess);
    EXPECT_LE(WrittenBytes(bytes), kFuncAttributesBytes);
  });
}

// Of an object that has a runtime linked in: it has that one's layouts, whatever the process has beside it.
TEST_F(VersionsTest, ALinkedRuntimeHasLayoutsOfItsOwnVersion) {
  Run({}, [] {
    std::vector<unsigned char> bytes(4096, 0x5A);
    const auto written = [&bytes](const std::string& name, auto call) {
      std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0x5A));
      EXPECT_EQ(call(dlsym(RTLD_DEFAULT, name.c_str())), kSuccess) << name;
      return WrittenBytes(bytes);
    };
    const auto properties = [&bytes](void* function) {
      return reinterpret_cast<int (*)(void*, int)>(function)(bytes.data(), 0);
    };
    EXPECT_EQ(written("ashlar_11_cudaGetDeviceProperties", properties), 728U);
    EXPECT_EQ(written("ashlar_12_cudaGetDeviceProperties", properties), 728U)
        << "12's own is cudaGetDeviceProperties_v2";
    EXPECT_EQ(written("ashlar_13_cudaGetDeviceProperties", properties), 1008U);
    const auto attributes = [&bytes](void* function) {
      return reinterpret_cast<int (*)(void*, const void*)>(function)(bytes.data(), bytes.data());
    };
    EXPECT_LE(written("ashlar_11_cudaFuncGetAttributes", attributes), 56U);
    EXPECT_GT(written("ashlar_12_cudaFuncGetAttributes", attributes), 56U);
    if (kMajor == 13) {
      EXPECT_EQ(written("cudaGetDeviceProperties", properties), 1008U) << "the process's own again";
    }
  });
}

TEST_F(VersionsTest, EdgesAreListedWithTheArgumentsOfTheVersion) {
  Run({}, [] {
    void *graph = nullptr, *first = nullptr, *second = nullptr;
    EXPECT_EQ(cudaGraphCreate(&graph, 0), kSuccess);
    EXPECT_EQ(cudaGraphAddEmptyNode(&first, graph, nullptr, 0), kSuccess);
    EXPECT_EQ(cudaGraphAddEmptyNode(&second, graph, nullptr, 0), kSuccess);
    std::size_t count = 9;  // there is room for: what is not needed of it is set to null
    void *from[9] = {}, *to[9] = {};
    std::uint64_t data[9] = {9};
    if (kMajor < 13) {
      EXPECT_EQ(Named<int(void*, void**, void**, std::size_t)>("cudaGraphAddDependencies")(graph, &first, &second, 1),
                kSuccess);
      EXPECT_EQ(Named<int(void*, void**, void**, std::size_t*)>("cudaGraphGetEdges")(graph, from, to, &count),
                kSuccess);
    } else {
      EXPECT_EQ(cudaGraphAddDependencies(graph, &first, &second, nullptr, 1), kSuccess);
      EXPECT_EQ(cudaGraphGetEdges(graph, from, to, data, &count), kSuccess);
      EXPECT_EQ(data[0], 0U);
    }
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(from[0], first);
    EXPECT_EQ(to[0], second);
  });
}

TEST_F(VersionsTest, GraphsAreInstantiatedAndUpdatedAsTheVersionDoes) {
  Run({}, [] {
    void *graph = nullptr, *node = nullptr, *exec = nullptr, *error_node = &graph;
    EXPECT_EQ(cudaGraphCreate(&graph, 0), kSuccess);
    EXPECT_EQ(cudaGraphAddEmptyNode(&node, graph, nullptr, 0), kSuccess);
    int result = 9;
    if (kMajor == 11) {
      char log[8] = "kept";
      using Instantiate = int(void**, void*, void**, char*, std::size_t);
      EXPECT_EQ(Named<Instantiate>("cudaGraphInstantiate")(&exec, graph, &error_node, log, sizeof(log)), kSuccess);
      EXPECT_EQ(error_node, nullptr);
      using Update = int(void*, void*, void**, int*);
      EXPECT_EQ(Named<Update>("cudaGraphExecUpdate")(exec, graph, &error_node, &result), kSuccess);
    } else {
      EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), kSuccess);
      abi::UpdateResult update = {9, &graph, &graph};
      EXPECT_EQ(cudaGraphExecUpdate(exec, graph, &update), kSuccess);
      EXPECT_EQ(update.error_node, nullptr);
      result = update.result;
    }
    EXPECT_EQ(result, 0);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), kSuccess);
  });
}

TEST_F(VersionsTest, ACaptureIsToldWithTheArgumentsOfTheVersion) {
  Run({}, [] {
    void *stream = NewStream(), *graph = nullptr, *captured = nullptr;
    int status = 9;
    unsigned long long id = 0;
    EXPECT_EQ(cudaStreamBeginCapture(stream, 0), kSuccess);
    EXPECT_EQ(Launch(stream), kSuccess);
    if (kMajor < 13) {
      using Info = int(void*, int*, unsigned long long*);
      EXPECT_EQ(Named<Info>("cudaStreamGetCaptureInfo")(stream, &status, &id), kSuccess);
    } else {
      void* const* after = nullptr;
      const void* edges = nullptr;
      std::size_t count = 9;
      using Info = int(void*, int*, unsigned long long*, void**, void* const**, const void**, std::size_t*);
      EXPECT_EQ(Named<Info>("cudaStreamGetCaptureInfo")(stream, &status, &id, &captured, &after, &edges, &count),
                kSuccess);
      EXPECT_EQ(count, 1U);
    }
    EXPECT_EQ(status, 1);
    EXPECT_GT(id, 0U);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), kSuccess);
    if (kMajor >= 13) {
      EXPECT_EQ(captured, graph);
    }
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
