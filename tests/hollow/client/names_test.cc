// Every public name of NVIDIA's libraries resolves, in the library and through the files that are opened by name.
#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

#define ASHLAR_REFUSED(name, status) #name,
#define ASHLAR_LAUNCHED(name) #name,
#define ASHLAR_SIZED(name, ...) #name,
const char* const kDriverNames[] = {
#include "hollow/api/names/driver.inc"
};
const char* const kNvmlNames[] = {
#include "hollow/api/names/nvml.inc"
};
const char* const kOtherNames[] = {
#include "hollow/api/names/cublas.inc"
#include "hollow/api/names/cublaslt.inc"
#include "hollow/api/names/cudnn.inc"
#include "hollow/api/names/cufft.inc"
#include "hollow/api/names/curand.inc"
#include "hollow/api/names/cusolver.inc"
#include "hollow/api/names/cusparse.inc"
#include "hollow/api/names/cusparselt.inc"
#include "hollow/api/names/nccl.inc"
#include "hollow/api/names/runtime.inc"
};
#undef ASHLAR_REFUSED
#undef ASHLAR_LAUNCHED
#undef ASHLAR_SIZED

using NamesTest = InHollowTest;

std::string FileOf(const void* function) {
  Dl_info info = {};
  if (function == nullptr || dladdr(function, &info) == 0) return "nowhere";
  return std::strrchr(info.dli_fname, '/') == nullptr ? info.dli_fname : std::strrchr(info.dli_fname, '/') + 1;
}

template <std::size_t kCount>
void ExpectAll(const char* const (&names)[kCount], void* library) {
  for (const char* name : names) EXPECT_EQ(FileOf(dlsym(library, name)), "libashlar_hollow.so") << name;
}

TEST_F(NamesTest, AllAreInThePreloadedLibrary) {
  ExpectAll(kDriverNames, RTLD_DEFAULT);
  ExpectAll(kNvmlNames, RTLD_DEFAULT);
  ExpectAll(kOtherNames, RTLD_DEFAULT);
  EXPECT_EQ(FileOf(dlsym(RTLD_DEFAULT, "cuNoSuchName")), "nowhere");
}

TEST_F(NamesTest, LibrariesOpenedByNameHaveTheirs) {
  const auto open = [](const char* name) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  };
  ExpectAll(kDriverNames, open("libcuda.so.1"));
  ExpectAll(kNvmlNames, open("libnvidia-ml.so.1"));
}

// JAX asks CUPTI for its version before it takes a device, and for nothing else.
TEST_F(NamesTest, CuptiHasAVersion) {
  Run({}, [] {
    const auto ask = reinterpret_cast<int (*)(unsigned*)>(dlsym(RTLD_DEFAULT, "cuptiGetVersion"));
    ASSERT_NE(ask, nullptr);
    unsigned version = 0;
    EXPECT_EQ(ask(&version), 0);
    EXPECT_GE(version, 18U);
    EXPECT_EQ(ask(nullptr), 1);
  });
}

// What no surface serves is not taken for a result, and is told by name.
TEST_F(NamesTest, WhatIsNotModelledIsRefusedAndCounted) {
  Run({}, [] {
    const auto call = [](const char* name) { return reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name))(); };
    EXPECT_EQ(cuInit(0), kSuccess);
    EXPECT_EQ(call("cuGraphicsMapResources"), kNotSupported);
    EXPECT_EQ(call("cudaGraphicsMapResources"), kNotSupported);
    EXPECT_EQ(call("cudaGraphicsMapResources"), kNotSupported);
    constexpr int kNvmlNotSupported = 3;
    EXPECT_EQ(call("nvmlDeviceGetFanSpeed"), kNvmlNotSupported);
  });
  std::vector<std::string> refused;
  const nlohmann::json report = Report();
  for (const nlohmann::json& one : report["refused"]) {
    refused.push_back(one["name"].get<std::string>() + " " + std::to_string(one["count"].get<int>()));
  }
  EXPECT_THAT(refused, testing::ElementsAre("cuGraphicsMapResources 1", "cudaGraphicsMapResources 2",
                                            "nvmlDeviceGetFanSpeed 1"));
}

TEST_F(NamesTest, NvmlTellsTheMemoryOfAllProcesses) {
  Run({"total_bytes=104857600", "name=A card"}, [] {
    void* device = nullptr;
    unsigned count = 0;
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), 1) << "not initialised";
    EXPECT_EQ(nvmlInit_v2(), 0);
    EXPECT_EQ(nvmlDeviceGetCount_v2(&count), 0);
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &device), 0);
    char name[96] = {};
    EXPECT_EQ(nvmlDeviceGetName(device, name, sizeof(name)), 0);
    EXPECT_STREQ(name, "A card");
    Malloc(3 * kMiB);
    std::uint64_t memory[3] = {};
    EXPECT_EQ(nvmlDeviceGetMemoryInfo(device, memory), 0);
    EXPECT_EQ(memory[0], 100 * kMiB);
    EXPECT_EQ(memory[1], 96 * kMiB);
    EXPECT_EQ(memory[2], 4 * kMiB);
    EXPECT_EQ(nvmlShutdown(), 0);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
