// The driver's calls: contexts, modules, virtual memory, functions by name and version.
#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

using DriverTest = InHollowTest;

#define ASHLAR_REFUSED(name, status) #name,
constexpr const char* kDriverFunctions[] = {
#include "hollow/api/names/driver.inc"
};
#undef ASHLAR_REFUSED

constexpr std::size_t kVmPage = 2 * kMiB;

const abi::AllocationProp kOnDevice = {.type = 1,
                                       .handle_types = 0,
                                       .location = {1, 0},
                                       .win32_attributes = nullptr,
                                       .compression = 0,
                                       .gpu_direct_rdma = 0,
                                       .usage = 0,
                                       .reserved = {}};

TEST_F(DriverTest, DevicesAreAsTheSettingsSay) {
  Run({"devices=2", "name=A card of mine", "total_bytes=1073741824", "driver_version=12080"}, [] {
    EXPECT_EQ(cuInit(0), kSuccess);
    int count = 0, device = 9, version = 0;
    EXPECT_EQ(cuDeviceGetCount(&count), kSuccess);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(cudaGetDeviceCount(&count), kSuccess);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(cuDeviceGet(&device, 1), kSuccess);
    EXPECT_EQ(cuDeviceGet(&device, 2), kInvalidDevice);
    char name[32] = {};
    EXPECT_EQ(cuDeviceGetName(name, sizeof(name), 1), kSuccess);
    EXPECT_STREQ(name, "A card of mine");
    std::size_t bytes = 0;
    EXPECT_EQ(cuDeviceTotalMem_v2(&bytes, 1), kSuccess);
    EXPECT_EQ(bytes, 1024 * kMiB);
    EXPECT_EQ(cuDriverGetVersion(&version), kSuccess);
    EXPECT_EQ(version, 12080);
    EXPECT_EQ(cudaRuntimeGetVersion(&version), kSuccess);
    EXPECT_EQ(version, 13000) << "of the runtime that the program brought";
    EXPECT_EQ(cudaSetDevice(2), kInvalidDevice);
  });
}

// What a program may call before cuInit, and what it may not. NVIDIA's driver refuses the same, but looks at arguments
// first in a third of the functions: with none it says 1 or 400 there (docs/measurements/h200.md).
TEST_F(DriverTest, NothingIsAnsweredBeforeInit) {
  Run({}, [] {
    constexpr const char* kAnyTime[] = {"cuInit",      "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString",
                                        "cuGetProc",   "cuGetExportTable",   "cuCoredump",     "cuLogs",
                                        "cuProfilerSt"};
    const auto is_for_any_time = [&](std::string_view name) {
      return std::any_of(std::begin(kAnyTime), std::end(kAnyTime),
                         [&](const char* one) { return name.starts_with(one); });
    };
    int asked = 0;
    for (const char* name : kDriverFunctions) {
      if (is_for_any_time(name)) continue;
      using Function = int (*)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*, void*);
      const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
      ASSERT_NE(function, nullptr) << name;
      EXPECT_EQ(function(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                         nullptr, nullptr),
                kNotInitialized)
          << name;
      ++asked;
    }
    EXPECT_GT(asked, 650);
    int version = 0, count = 0;
    const char* text = nullptr;
    void* function = nullptr;
    EXPECT_EQ(cuDriverGetVersion(&version), kSuccess);
    EXPECT_EQ(cuGetErrorName(kNotInitialized, &text), kSuccess);
    EXPECT_STREQ(text, "CUDA_ERROR_NOT_INITIALIZED");
    EXPECT_EQ(cuGetProcAddress_v2("cuDeviceGetCount", &function, 13000, 0, nullptr), kSuccess);
    EXPECT_EQ(cuInit(1), kInvalidValue);
    EXPECT_EQ(cuDeviceGetCount(&count), kNotInitialized);
    EXPECT_EQ(cuInit(0), kSuccess);
    EXPECT_EQ(cuDeviceGetCount(&count), kSuccess);
    EXPECT_EQ(count, 1);
  });
  EXPECT_TRUE(Reports().empty()) << "what came too early is not counted as not modelled";
}

TEST_F(DriverTest, TheRuntimeInitializesTheDriver) {
  int (*const runtime_calls[])() = {
      [] { return cudaFree(nullptr); },
      [] { return cudaSetDevice(0); },
      [] { return cudaGetLastError(); },
      [] {
        int version = 0;
        return cudaDriverGetVersion(&version);
      },
      [] { return cudaDeviceSynchronize(); },
      [] { return Launch(); },
      [] {
        int count = 0;
        return cudaGetDeviceCount(&count);
      },
      [] {
        int device = 0;
        return cudaGetDevice(&device);
      },
  };
  for (const auto call : runtime_calls) {
    Run({}, [&] {
      int device = 9, version = 0;
      EXPECT_EQ(cudaRuntimeGetVersion(&version), kSuccess);
      EXPECT_EQ(cuDeviceGet(&device, 0), kNotInitialized) << "its own version starts nothing";
      EXPECT_EQ(call(), kSuccess);
      EXPECT_EQ(cuDeviceGet(&device, 0), kSuccess);
    });
  }
}

TEST_F(DriverTest, AContextIsChargedAtItsFirstUseAndMemoryIsThePrograms) {
  Run({"context_bytes=4194304"}, [] {
    unsigned flags = 9;
    int active = 9;
    EXPECT_EQ(cuInit(0), kSuccess);
    EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), kSuccess);
    EXPECT_EQ(active, 0);
    void *primary = nullptr, *made = nullptr, *current = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&current), kSuccess);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&primary, 0), kSuccess);
    EXPECT_EQ(cuCtxSetCurrent(primary), kSuccess);
    EXPECT_EQ(cuCtxGetCurrent(&current), kSuccess);
    EXPECT_EQ(current, primary);
    std::uint64_t address = 0, base = 0;
    std::size_t bytes = 0;
    EXPECT_EQ(cuMemAlloc_v2(&address, 100), kSuccess);
    EXPECT_EQ(cuMemGetAddressRange_v2(&base, &bytes, address + 99), kSuccess);
    EXPECT_EQ(base, address);
    EXPECT_EQ(bytes, 100U);
    EXPECT_EQ(UsedBytes(), 6 * kMiB);
    EXPECT_EQ(cuCtxCreate_v4(&made, nullptr, 0, 0), kSuccess);
    EXPECT_EQ(cuCtxGetCurrent(&current), kSuccess);
    EXPECT_EQ(current, made);
    EXPECT_EQ(cuCtxPopCurrent_v2(&current), kSuccess);
    EXPECT_EQ(cuCtxGetCurrent(&current), kSuccess);
    EXPECT_EQ(current, primary);
    EXPECT_EQ(cuCtxDestroy_v2(made), kSuccess);
    EXPECT_EQ(cuCtxSetCurrent(made), kInvalidContext);
    EXPECT_EQ(cuMemFree_v2(address), kSuccess);
    EXPECT_EQ(cuMemFree_v2(address), kInvalidValue);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), kSuccess);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), kInvalidContext);
  });
}

TEST_F(DriverTest, TheLastContextCanBePopped) {
  Run({}, [] {
    void* current = nullptr;
    ASSERT_EQ(cudaFree(nullptr), kSuccess);
    EXPECT_EQ(cuCtxPopCurrent_v2(&current), kSuccess) << "the one that the runtime made current";
    EXPECT_EQ(cuCtxGetCurrent(&current), kSuccess);
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(cuCtxPopCurrent_v2(&current), kInvalidContext);
  });
}

TEST_F(DriverTest, ContextsOfOtherDevicesAreStacked) {
  Run({"devices=2"}, [] {
    void *first = nullptr, *second = nullptr, *popped = nullptr;
    int device = 9;
    EXPECT_EQ(cuInit(0), kSuccess);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&first, 0), kSuccess);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&second, 1), kSuccess);
    EXPECT_EQ(cuCtxPushCurrent_v2(first), kSuccess);
    EXPECT_EQ(cuCtxPushCurrent_v2(second), kSuccess);
    EXPECT_EQ(cuCtxGetDevice(&device), kSuccess);
    EXPECT_EQ(device, 1);
    EXPECT_EQ(cudaGetDevice(&device), kSuccess);
    EXPECT_EQ(device, 1) << "the runtime's device is the driver's";
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), kSuccess);
    EXPECT_EQ(popped, second);
    EXPECT_EQ(cuCtxGetDevice(&device), kSuccess);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(cudaSetDevice(1), kSuccess);
    EXPECT_EQ(cuCtxGetCurrent(&popped), kSuccess);
    EXPECT_EQ(popped, second) << "and the driver's the runtime's";
    EXPECT_EQ(cuCtxPushCurrent_v2(first), kSuccess);
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), kSuccess);
    EXPECT_EQ(popped, first);
    EXPECT_EQ(cudaGetDevice(&device), kSuccess);
    EXPECT_EQ(device, 1) << "what cudaSetDevice chose is current again";
  });
}

TEST_F(DriverTest, KernelsOfAModuleAreLaunchedIntoNothing) {
  Run({}, [] {
    void *module = nullptr, *function = nullptr;
    EXPECT_EQ(cudaFree(nullptr), kSuccess);
    EXPECT_EQ(cuModuleLoadData(&module, "an image"), kSuccess);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "kernel"), kSuccess);
    EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), kSuccess);
    EXPECT_NE(cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, nullptr, nullptr, nullptr), kSuccess);
    EXPECT_EQ(cuModuleUnload(module), kSuccess);
  });
  EXPECT_EQ(Report()["launches"], 1);
}

TEST_F(DriverTest, VirtualMemoryIsBackWhenReleasedAndUnmapped) {
  Run({"total_bytes=20971520"}, [] {
    EXPECT_EQ(cudaFree(nullptr), kSuccess);
    std::size_t granularity = 0;
    EXPECT_EQ(cuMemGetAllocationGranularity(&granularity, &kOnDevice, 0), kSuccess);
    EXPECT_EQ(granularity, kVmPage);
    std::uint64_t handle = 0, address = 0, none = 7;
    EXPECT_EQ(cuMemAddressReserve(&address, std::size_t{1} << 40, 0, 0, 0), kSuccess) << "addresses cost nothing";
    EXPECT_EQ(cuMemCreate(&handle, 4 * kVmPage, &kOnDevice, 0), kSuccess);
    EXPECT_EQ(cuMemCreate(&none, 7 * kVmPage, &kOnDevice, 0), kOutOfMemory);
    EXPECT_EQ(cuMemCreate(&none, kVmPage + 1, &kOnDevice, 0), kInvalidValue);
    EXPECT_EQ(UsedBytes(), 4 * kVmPage);
    EXPECT_EQ(cuMemMap(address, 4 * kVmPage, 0, handle, 0), kSuccess);
    const abi::AccessDesc access = {{1, 0}, 3};
    EXPECT_EQ(cuMemSetAccess(address, 4 * kVmPage, &access, 1), kSuccess);
    unsigned long long flags = 9;
    EXPECT_EQ(cuMemGetAccess(&flags, &access.location, address), kSuccess);
    EXPECT_EQ(flags, 3U);
    void* mapped = reinterpret_cast<void*>(address);
    WriteText(mapped, "mapped");
    EXPECT_EQ(ReadText(mapped, 6), "mapped");
    EXPECT_EQ(cuMemRelease(handle), kSuccess);
    EXPECT_EQ(UsedBytes(), 4 * kVmPage);
    EXPECT_EQ(cuMemAddressFree(address, std::size_t{1} << 40), kInvalidValue) << "memory lies in it";
    EXPECT_EQ(cuMemUnmap(address, 4 * kVmPage), kSuccess);
    EXPECT_EQ(UsedBytes(), 0U);
    EXPECT_EQ(cuMemUnmap(address, 4 * kVmPage), kSuccess) << "nothing is mapped any more";
    EXPECT_EQ(cuMemAddressFree(address, std::size_t{1} << 40), kSuccess);
    EXPECT_EQ(cuMemRelease(handle), kInvalidValue);
  });
}

TEST_F(DriverTest, AHandleThatWasExportedIsNotChargedTwice) {
  Run({}, [] {
    EXPECT_EQ(cudaFree(nullptr), kSuccess);
    abi::AllocationProp prop = kOnDevice;
    constexpr int kFile = 1;
    prop.handle_types = kFile;
    std::uint64_t handle = 0, imported = 0, address = 0;
    int file = -1;
    EXPECT_EQ(cuMemCreate(&handle, kVmPage, &prop, 0), kSuccess);
    EXPECT_EQ(cuMemExportToShareableHandle(&file, handle, kFile, 0), kSuccess);
    EXPECT_EQ(
        cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)), kFile),
        kSuccess);
    EXPECT_EQ(cuMemAddressReserve(&address, kVmPage, 0, 0, 0), kSuccess);
    EXPECT_EQ(cuMemMap(address, kVmPage, 0, imported, 0), kSuccess);
    EXPECT_EQ(UsedBytes(), kVmPage);
    EXPECT_EQ(cuMemUnmap(address, kVmPage), kSuccess);
    EXPECT_EQ(cuMemRelease(imported), kSuccess);
    EXPECT_EQ(cuMemRelease(handle), kSuccess);
    EXPECT_EQ(UsedBytes(), 0U);
  });
}

// A program that asks for a version gets the signature of that version.
TEST_F(DriverTest, FunctionsAreFoundByNameAndVersion) {
  Run({}, [] {
    const auto found = [](const char* name, int version) {
      void* function = nullptr;
      int status = 9;
      EXPECT_EQ(cuGetProcAddress_v2(name, &function, version, 0, &status), kSuccess) << name;
      EXPECT_EQ(status, 0) << name;
      return function;
    };
    const auto exported = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
    EXPECT_EQ(found("cuMemAlloc", 13000), exported("cuMemAlloc_v2"));
    EXPECT_EQ(found("cuMemCreate", 13000), exported("cuMemCreate"));
    EXPECT_EQ(found("cuCtxCreate", 11000), exported("cuCtxCreate_v2"));
    EXPECT_EQ(found("cuCtxCreate", 11080), exported("cuCtxCreate_v3"));
    EXPECT_EQ(found("cuCtxCreate", 13000), exported("cuCtxCreate_v4"));
    EXPECT_EQ(found("cuStreamGetCaptureInfo", 11000), exported("cuStreamGetCaptureInfo"));
    EXPECT_EQ(found("cuStreamGetCaptureInfo", 12020), exported("cuStreamGetCaptureInfo_v2"));
    EXPECT_EQ(found("cuStreamGetCaptureInfo", 13000), exported("cuStreamGetCaptureInfo_v3"));
    EXPECT_EQ(found("cuEventElapsedTime", 12000), exported("cuEventElapsedTime"));
    EXPECT_EQ(found("cuGetProcAddress", 11030), exported("cuGetProcAddress"));
    EXPECT_EQ(found("cuGetProcAddress", 12000), exported("cuGetProcAddress_v2"));
    void* function = exported("cuInit");
    int status = 9;
    EXPECT_EQ(cuGetProcAddress_v2("cuNoSuchThing", &function, 13000, 0, &status), kSuccess);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(status, 1);
    const auto first = reinterpret_cast<int (*)(const char*, void**, int, std::uint64_t)>(exported("cuGetProcAddress"));
    EXPECT_EQ(first("cuNoSuchThing", &function, 13000, 0), kNotFound) << "the first version says so itself";
    EXPECT_EQ(cuGetProcAddress_v2("malloc", &function, 13000, 0, &status), kSuccess);
    EXPECT_EQ(cuGetProcAddress_v2("cudaMalloc", &function, 13000, 0, &status), kSuccess) << "of the runtime";
    EXPECT_EQ(function, nullptr);
    const char* name = nullptr;
    EXPECT_EQ(cuGetErrorName(kOutOfMemory, &name), kSuccess);
    EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
  });
}

// CUDA's static runtime reads a word of what it takes for a flag.
TEST_F(DriverTest, WhetherMemoryIsManagedIsAWord) {
  Run({}, [] {
    void* managed = nullptr;
    EXPECT_EQ(cudaMallocManaged(&managed, 64, 1), kSuccess);
    constexpr int kIsManaged = 8;
    int word = -1;
    EXPECT_EQ(cuPointerGetAttribute(&word, kIsManaged, reinterpret_cast<std::uint64_t>(managed)), kSuccess);
    EXPECT_EQ(word, 1);
    word = -1;
    EXPECT_EQ(cuPointerGetAttribute(&word, kIsManaged, reinterpret_cast<std::uint64_t>(Malloc(64))), kSuccess);
    EXPECT_EQ(word, 0);
  });
}

// A plain name is its first version for who was compiled before there was a second one.
TEST_F(DriverTest, HostFunctionsOfBothVersions) {
  Run({}, [] {
    static int calls = 0;
    EXPECT_EQ(cuInit(0), kSuccess);
    void* stream = NewStream();
    const auto count = [](void* by) { calls += *static_cast<int*>(by); };
    int one = 1, ten = 10;
    void *first = nullptr, *second = nullptr;
    EXPECT_EQ(cuGetProcAddress_v2("cuLaunchHostFunc", &first, 13000, 0, nullptr), kSuccess);
    EXPECT_EQ(cuGetProcAddress_v2("cuLaunchHostFunc", &second, 13010, 0, nullptr), kSuccess);
    EXPECT_EQ(first, dlsym(RTLD_DEFAULT, "cuLaunchHostFunc"));
    EXPECT_EQ(second, dlsym(RTLD_DEFAULT, "cuLaunchHostFunc_v2"));
    using Function = void (*)(void*);
    EXPECT_EQ(reinterpret_cast<int (*)(void*, Function, void*)>(first)(stream, count, &one), kSuccess);
    EXPECT_EQ(reinterpret_cast<int (*)(void*, Function, void*, unsigned)>(second)(stream, count, &ten, 0), kSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), kSuccess);
    EXPECT_EQ(calls, 11);
  });
}

TEST_F(DriverTest, AStreamHasAllMultiprocessorsAndNoGreenContext) {
  Run({"sm_count=108"}, [] {
    EXPECT_EQ(cuInit(0), kSuccess);
    void* context = &context;
    EXPECT_EQ(cuStreamGetGreenCtx(NewStream(), &context), kSuccess);
    EXPECT_EQ(context, nullptr);
    constexpr int kMultiprocessors = 1, kWorkQueue = 10'000;
    abi::DevResource resource = {};
    EXPECT_EQ(cuStreamGetDevResource(nullptr, &resource, kMultiprocessors), kSuccess);
    EXPECT_EQ(resource.type, kMultiprocessors);
    EXPECT_EQ(resource.sm_count, 108U);
    resource = {};
    EXPECT_EQ(cuDeviceGetDevResource(0, &resource, kMultiprocessors), kSuccess);
    EXPECT_EQ(resource.sm_count, 108U);
    EXPECT_EQ(cuCtxGetDevResource(nullptr, &resource, kWorkQueue), 914) << "CUDA_ERROR_INVALID_RESOURCE_TYPE";
    EXPECT_EQ(cuDeviceGetDevResource(1, &resource, kMultiprocessors), kInvalidDevice);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
