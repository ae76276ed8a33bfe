// CUDA's runtime: registration of device code, launches, attributes of functions, occupancy.
// Source of the signatures: cuda_runtime_api.h and crt/host_runtime.h of CUDA 11.8, 12.4 and 13.0.
#include <algorithm>
#include <cstring>
#include <vector>

#include "hollow/api/cuda/device_code.h"
#include "hollow/api/cuda/loaded_code.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/api/runtime/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

// What <<<...>>> hands from the call site to the stub of the kernel.
struct Configuration {
  abi::Dim3 grid, block;
  std::size_t shared_bytes;
  void* stream;
};
thread_local std::vector<Configuration> configurations;

bool IsLaunchable(const abi::Dim3& grid, const abi::Dim3& block) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool has_blocks = grid.x > 0 && grid.y > 0 && grid.z > 0;
  return has_blocks && threads > 0 && threads <= 1024 && grid.y <= 65535 && grid.z <= 65535;
}

constexpr int kInvalidConfiguration = 9;  // cudaErrorInvalidConfiguration
int Launch(const abi::Dim3& grid, const abi::Dim3& block, void* stream) {
  if (!IsLaunchable(grid, block)) return Last(static_cast<Error>(kInvalidConfiguration));
  return Last(GiveKernel(stream));
}

}  // namespace

ASHLAR_SURFACE void** __cudaRegisterFatBinary(void* code) {
  void** handle = new void*(code);
  RegisterDeviceCode(handle, code);
  return handle;
}
ASHLAR_SURFACE void __cudaRegisterFatBinaryEnd(void**) {}
ASHLAR_SURFACE void __cudaUnregisterFatBinary(void** handle) {
  ForgetDeviceCode(handle);
  delete handle;
}
ASHLAR_SURFACE void __cudaRegisterFunction(void** handle, const char* kernel, char*, const char*, int, void*, void*,
                                           void*, void*, int*) {
  RegisterKernel(handle, kernel);
}
ASHLAR_SURFACE void __cudaRegisterVar(void** handle, char* symbol, char*, const char* name, int, std::size_t bytes, int,
                                      int) {
  RegisterSymbol(handle, symbol, name, bytes);
}
ASHLAR_SURFACE void __cudaRegisterManagedVar(void** handle, void** symbol, char*, const char* name, int,
                                             std::size_t bytes, int, int) {
  RegisterSymbol(handle, symbol, name, bytes);
  *symbol = SymbolAddress(symbol);
}
ASHLAR_SURFACE void __cudaRegisterTexture(void**, const void*, const void**, const char*, int, int, int) {}
ASHLAR_SURFACE void __cudaRegisterSurface(void**, const void*, const void**, const char*, int, int) {}
ASHLAR_SURFACE void __cudaRegisterHostVar(void**, const char*, char*, std::size_t) {}
ASHLAR_SURFACE char __cudaInitModule(void**) { return 1; }

ASHLAR_SURFACE unsigned __cudaPushCallConfiguration(abi::Dim3 grid, abi::Dim3 block, std::size_t shared_bytes,
                                                    void* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

ASHLAR_SURFACE int __cudaPopCallConfiguration(abi::Dim3* grid, abi::Dim3* block, std::size_t* shared_bytes,
                                              void* stream) {
  if (configurations.empty()) return Last(static_cast<Error>(52));  // cudaErrorMissingConfiguration
  const Configuration& last = configurations.back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<void**>(stream) = last.stream;
  configurations.pop_back();
  return 0;
}

ASHLAR_SURFACE int cudaLaunchKernel(const void*, abi::Dim3 grid, abi::Dim3 block, void**, std::size_t, void* stream) {
  return Launch(grid, block, stream);
}

ASHLAR_SURFACE int cudaLaunchCooperativeKernel(const void*, abi::Dim3 grid, abi::Dim3 block, void**, std::size_t,
                                               void* stream) {
  return Launch(grid, block, stream);
}

ASHLAR_SURFACE int cudaLaunchKernelExC(const abi::LaunchConfig* config, const void*, void**) {
  if (config == nullptr) return Last(Error::kInvalidValue);
  return Launch(config->grid, config->block, config->stream);
}

// A kernel's handle is the address of its stub.
ASHLAR_SURFACE int __cudaGetKernel(void** kernel, const void* function) {
  (void)StartedProcess();
  *kernel = const_cast<void*>(function);
  return 0;
}
ASHLAR_SURFACE int __cudaLaunchKernel(const void*, abi::Dim3 grid, abi::Dim3 block, void**, std::size_t, void* stream) {
  return Launch(grid, block, stream);
}
ASHLAR_SURFACE int cudaGetKernel(void** kernel, const void* function) { return __cudaGetKernel(kernel, function); }
ASHLAR_SURFACE int cudaGetFuncBySymbol(void** function, const void* symbol) {
  return __cudaGetKernel(function, symbol);
}

ASHLAR_SURFACE int cudaFuncGetAttributes(abi::FuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return Last(Error::kInvalidValue);
  abi::FuncAttributes known = FunctionAttributes(StartedProcess().settings, function);
  // The fields of clusters are there since CUDA 12.
  const std::size_t bytes = RuntimeMajor() >= 12 ? sizeof(known) : offsetof(abi::FuncAttributes, cluster_must_be_set);
  std::memcpy(attributes, &known, bytes);
  return 0;
}
ASHLAR_OF_VERSIONS(cudaFuncGetAttributes, cudaFuncGetAttributes,
                   (abi::FuncAttributes * attributes, const void* function), (attributes, function))

ASHLAR_SURFACE int cudaFuncSetAttribute(const void* function, int attribute, int value) {
  constexpr int kMaxDynamicShared = 8;
  if (attribute == kMaxDynamicShared) {
    if (value < 0 || static_cast<std::uint64_t>(value) > StartedProcess().settings.shared_per_block_optin) {
      return Last(Error::kInvalidValue);
    }
    SetMaxDynamicShared(function, value);
  }
  return 0;
}

ASHLAR_SURFACE int cudaKernelSetAttributeForDevice(void* kernel, int attribute, int value, int) {
  return cudaFuncSetAttribute(kernel, attribute, value);
}
ASHLAR_IGNORED(cudaFuncSetCacheConfig, "a hint of how a kernel shares its cache: no kernel runs")
ASHLAR_IGNORED(cudaFuncSetSharedMemConfig, "a hint of how a kernel uses its banks: no kernel runs")

ASHLAR_SURFACE int cudaFuncGetName(const char** name, const void*) {
  if (name == nullptr) return Last(Error::kInvalidValue);
  *name = "kernel";
  return 0;
}

ASHLAR_SURFACE int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads,
                                                                          std::size_t shared_bytes, unsigned) {
  if (blocks == nullptr || threads < 1) return Last(Error::kInvalidValue);
  *blocks = BlocksPerMultiprocessor(StartedProcess().settings, threads, shared_bytes);
  return 0;
}

ASHLAR_SURFACE int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                                 std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared_bytes, 0);
}

ASHLAR_SURFACE int cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void*, int blocks, int) {
  if (bytes == nullptr || blocks < 1) return Last(Error::kInvalidValue);
  *bytes = std::min(StartedProcess().settings.shared_per_sm / static_cast<unsigned>(blocks),
                    StartedProcess().settings.shared_per_block_optin);
  return 0;
}

ASHLAR_SURFACE int cudaOccupancyMaxPotentialClusterSize(int* size, const void*, const abi::LaunchConfig*) {
  if (size == nullptr) return Last(Error::kInvalidValue);
  *size = StartedProcess().settings.compute_major >= 9 ? 8 : 1;  // the portable size, CUDA C++ Programming Guide
  return 0;
}

ASHLAR_SURFACE int cudaOccupancyMaxActiveClusters(int* clusters, const void*, const abi::LaunchConfig* config) {
  if (clusters == nullptr || config == nullptr) return Last(Error::kInvalidValue);
  *clusters = std::max(1, StartedProcess().settings.sm_count / 8);
  return 0;
}

// Code that a program loads itself: a handle for each, whose kernels are handles as well.
ASHLAR_SURFACE int cudaLibraryLoadData(void** library, const void* code, int*, void**, unsigned, int*, void**,
                                       unsigned) {
  if (library == nullptr || code == nullptr) return Last(Error::kInvalidValue);
  *library = LoadCode(code);
  return 0;
}
ASHLAR_SURFACE int cudaLibraryLoadFromFile(void** library, const char* file, int*, void**, unsigned, int*, void**,
                                           unsigned) {
  if (library == nullptr || file == nullptr) return Last(Error::kInvalidValue);
  *library = LoadCodeOfFile(file);
  return 0;
}
ASHLAR_SURFACE int cudaLibraryUnload(void* library) {
  if (library == nullptr) return 0;
  return Locked([&](Process& process) {
    UnloadCode(process, library);
    return Error::kNone;
  });
}
ASHLAR_SURFACE int cudaLibraryGetGlobal(void** address, std::size_t* bytes, void* library, const char* name) {
  return Locked([&](Process& process) { return FindVariable(process, library, name, address, bytes); });
}
ASHLAR_SURFACE int cudaLibraryGetManaged(void** address, std::size_t* bytes, void* library, const char* name) {
  return cudaLibraryGetGlobal(address, bytes, library, name);
}
ASHLAR_SURFACE int cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  if (kernel == nullptr || library == nullptr || name == nullptr) return Last(Error::kInvalidValue);
  *kernel = NamedKernel(name);
  return 0;
}

ASHLAR_SAME(cudaLaunchKernel_ptsz, cudaLaunchKernel);
ASHLAR_SAME(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel);
ASHLAR_SAME(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC);
ASHLAR_SAME(__cudaLaunchKernel_ptsz, __cudaLaunchKernel);
