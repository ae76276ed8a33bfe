// CUDA's driver: modules, kernels, launches, occupancy. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.
//
// Of device code the variables are read: each module is a handle, each kernel one by its name, and every launch passes.
#include <algorithm>
#include <cstring>
#include <string>

#include "hollow/api/cuda/device_code.h"
#include "hollow/api/cuda/loaded_code.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/api/driver/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

Error Load(void** module, const void* code) {
  if (module == nullptr || code == nullptr) return Error::kInvalidValue;
  *module = LoadCode(code);
  return Error::kNone;
}

// What a linker's state is loaded of: nothing that is read.
constexpr char kNoCode[64] = {};

Error LoadFile(void** module, const char* file) {
  if (module == nullptr || file == nullptr) return Error::kInvalidValue;
  *module = LoadCodeOfFile(file);
  return Error::kNone;
}

Error Unload(Process& process, void* module) {
  if (module == nullptr) return Error::kInvalidHandle;
  UnloadCode(process, module);
  return Error::kNone;
}

Error Find(void** kernel, const void* module, const char* name) {
  if (kernel == nullptr || name == nullptr) return Error::kInvalidValue;
  if (module == nullptr) return Error::kInvalidHandle;
  *kernel = NamedKernel(name);
  return Error::kNone;
}

bool IsLaunchable(unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y, unsigned threads_z) {
  const std::uint64_t threads = std::uint64_t{threads_x} * threads_y * threads_z;
  return x > 0 && y > 0 && z > 0 && y <= 65'535 && z <= 65'535 && threads > 0 && threads <= 1024;
}

// CUfunction_attribute, in its order from 0 to 9.
Error GetAttribute(int* value, int attribute, const void* kernel) {
  const abi::FuncAttributes known = FunctionAttributes(TheSettings(), kernel);
  const int numbers[] = {known.max_threads,
                         static_cast<int>(known.shared_bytes),
                         static_cast<int>(known.const_bytes),
                         static_cast<int>(known.local_bytes),
                         known.registers,
                         known.ptx_version,
                         known.binary_version,
                         known.cache_mode_ca,
                         known.max_dynamic_shared_bytes,
                         known.carveout};
  constexpr int kLast = 15;  // 10 to 15 are of clusters, which no kernel asks for
  if (value == nullptr || attribute < 0 || attribute > kLast) return Error::kInvalidValue;
  *value = attribute < static_cast<int>(std::size(numbers)) ? numbers[attribute] : 0;
  return Error::kNone;
}

Error SetAttribute(const void* kernel, int attribute, int value) {
  constexpr int kMaxDynamicShared = 8;
  if (attribute != kMaxDynamicShared) return Error::kNone;  // hints, and clusters, of which launches tell again
  if (value < 0 || static_cast<std::uint64_t>(value) > TheSettings().shared_per_block_optin) {
    return Error::kInvalidValue;
  }
  SetMaxDynamicShared(kernel, value);
  return Error::kNone;
}

}  // namespace

ASHLAR_SURFACE int cuModuleLoad(void** module, const char* file) {
  return AfterInit([=] { return LoadFile(module, file); });
}
ASHLAR_SURFACE int cuModuleLoadData(void** module, const void* code) {
  return AfterInit([=] { return Load(module, code); });
}
ASHLAR_SURFACE int cuModuleLoadDataEx(void** module, const void* code, unsigned, int*, void**) {
  return AfterInit([=] { return Load(module, code); });
}
ASHLAR_SURFACE int cuModuleLoadFatBinary(void** module, const void* code) {
  return AfterInit([=] { return Load(module, code); });
}
ASHLAR_SURFACE int cuModuleUnload(void* module) {
  return Driven([=](Process& process) { return Unload(process, module); });
}
ASHLAR_SURFACE int cuModuleGetFunction(void** kernel, void* module, const char* name) {
  return AfterInit([=] { return Find(kernel, module, name); });
}
ASHLAR_SURFACE int cuModuleGetGlobal_v2(void** address, std::size_t* bytes, void* module, const char* name) {
  return Driven([=](Process& process) { return FindVariable(process, module, name, address, bytes); });
}
ASHLAR_SURFACE int cuModuleGetLoadingMode(int* mode) {
  ASHLAR_NEEDS_INIT();
  if (mode == nullptr) return Number(Error::kInvalidValue);
  *mode = 2;  // CU_MODULE_LAZY_LOADING
  return 0;
}

ASHLAR_SURFACE int cuLibraryLoadData(void** library, const void* code, int*, void**, unsigned, int*, void**, unsigned) {
  return AfterInit([=] { return Load(library, code); });
}
ASHLAR_SURFACE int cuLibraryLoadFromFile(void** library, const char* file, int*, void**, unsigned, int*, void**,
                                         unsigned) {
  return AfterInit([=] { return LoadFile(library, file); });
}
ASHLAR_SURFACE int cuLibraryUnload(void* library) {
  return Driven([=](Process& process) { return Unload(process, library); });
}
ASHLAR_SURFACE int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return AfterInit([=] { return Find(kernel, library, name); });
}
ASHLAR_SURFACE int cuLibraryGetGlobal(void** address, std::size_t* bytes, void* library, const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}
ASHLAR_SURFACE int cuLibraryGetManaged(void** address, std::size_t* bytes, void* library, const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}
ASHLAR_SURFACE int cuLibraryGetModule(void** module, void* library) {
  ASHLAR_NEEDS_INIT();
  if (module == nullptr || library == nullptr) return Number(Error::kInvalidValue);
  *module = library;
  return 0;
}
ASHLAR_SURFACE int cuKernelGetFunction(void** function, void* kernel) {
  ASHLAR_NEEDS_INIT();
  if (function == nullptr || kernel == nullptr) return Number(Error::kInvalidValue);
  *function = kernel;
  return 0;
}

// What is linked is loaded and launched, and never run: its image is a header without a content.
ASHLAR_SURFACE int cuLinkCreate_v2(unsigned, int*, void**, void** state) {
  return AfterInit([=] { return Load(state, kNoCode); });
}
ASHLAR_SURFACE int cuLinkAddData_v2(void* state, int, void* data, std::size_t, const char*, unsigned, int*, void**) {
  return AfterInit([=] { return state == nullptr || data == nullptr ? Error::kInvalidValue : Error::kNone; });
}
ASHLAR_SURFACE int cuLinkAddFile_v2(void* state, int, const char* path, unsigned, int*, void**) {
  return AfterInit([=] { return state == nullptr || path == nullptr ? Error::kInvalidValue : Error::kNone; });
}
ASHLAR_SURFACE int cuLinkComplete(void* state, void** image, std::size_t* bytes) {
  ASHLAR_NEEDS_INIT();
  static char elf[64] =
      "\x7f"
      "ELF";
  if (state == nullptr || image == nullptr) return Number(Error::kInvalidValue);
  *image = elf;
  if (bytes != nullptr) *bytes = sizeof(elf);
  return 0;
}
ASHLAR_SURFACE int cuLinkDestroy(void* state) {
  return Driven([=](Process& process) { return Unload(process, state); });
}
ASHLAR_SAME(cuLinkCreate, cuLinkCreate_v2);
ASHLAR_SAME(cuLinkAddData, cuLinkAddData_v2);
ASHLAR_SAME(cuLinkAddFile, cuLinkAddFile_v2);

ASHLAR_SURFACE int cuFuncGetAttribute(int* value, int attribute, void* kernel) {
  return AfterInit([=] { return GetAttribute(value, attribute, kernel); });
}
ASHLAR_SURFACE int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return AfterInit([=] { return GetAttribute(value, attribute, kernel); });
}
ASHLAR_SURFACE int cuFuncSetAttribute(void* kernel, int attribute, int value) {
  return AfterInit([=] { return SetAttribute(kernel, attribute, value); });
}
ASHLAR_SURFACE int cuKernelSetAttribute(int attribute, int value, void* kernel, int) {
  return AfterInit([=] { return SetAttribute(kernel, attribute, value); });
}
ASHLAR_IGNORED_AFTER_INIT(cuFuncSetCacheConfig, "a hint of how a kernel shares its cache: no kernel runs")
ASHLAR_IGNORED_AFTER_INIT(cuFuncSetSharedMemConfig, "a hint of how a kernel uses its banks: no kernel runs")
ASHLAR_IGNORED_AFTER_INIT(cuKernelSetCacheConfig, "a hint of how a kernel shares its cache: no kernel runs")
ASHLAR_IGNORED_AFTER_INIT(cuFuncLoad, "kernels are loaded from the start")
ASHLAR_SURFACE int cuFuncIsLoaded(int* state, void*) {
  ASHLAR_NEEDS_INIT();
  if (state == nullptr) return Number(Error::kInvalidValue);
  *state = 1;  // CU_FUNCTION_LOADING_STATE_LOADED
  return 0;
}
ASHLAR_SURFACE int cuFuncGetName(const char** name, void* kernel) {
  ASHLAR_NEEDS_INIT();
  if (name == nullptr) return Number(Error::kInvalidValue);
  const char* known = NameOfKernel(kernel);
  *name = known == nullptr ? "kernel" : known;
  return 0;
}
ASHLAR_SURFACE int cuKernelGetName(const char** name, void* kernel) { return cuFuncGetName(name, kernel); }

ASHLAR_SURFACE int cuLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                                  unsigned threads_y, unsigned threads_z, unsigned, void* stream, void**, void**) {
  ASHLAR_NEEDS_INIT();
  if (kernel == nullptr) return Number(Error::kInvalidHandle);
  if (!IsLaunchable(x, y, z, threads_x, threads_y, threads_z)) return Number(Error::kInvalidValue);
  return Number(GiveKernel(stream));
}
ASHLAR_SURFACE int cuLaunchCooperativeKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                                             unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                                             void* stream, void** params) {
  return cuLaunchKernel(kernel, x, y, z, threads_x, threads_y, threads_z, shared_bytes, stream, params, nullptr);
}
ASHLAR_SURFACE int cuLaunchKernelEx(const abi::DriverLaunchConfig* config, void* kernel, void** params, void** extra) {
  ASHLAR_NEEDS_INIT();
  if (config == nullptr) return Number(Error::kInvalidValue);
  return cuLaunchKernel(kernel, config->grid_x, config->grid_y, config->grid_z, config->block_x, config->block_y,
                        config->block_z, config->shared_bytes, config->stream, params, extra);
}

ASHLAR_SURFACE int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void*, int threads,
                                                                        std::size_t shared_bytes, unsigned) {
  ASHLAR_NEEDS_INIT();
  if (blocks == nullptr || threads < 1) return Number(Error::kInvalidValue);
  *blocks = BlocksPerMultiprocessor(TheSettings(), threads, shared_bytes);
  return 0;
}
ASHLAR_SURFACE int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* kernel, int threads,
                                                               std::size_t shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared_bytes, 0);
}

// The most threads of a block, on every multiprocessor.
ASHLAR_SURFACE int cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, void*,
                                                             std::size_t (*shared_of_block)(int),
                                                             std::size_t shared_bytes, int limit, unsigned) {
  ASHLAR_NEEDS_INIT();
  if (grid == nullptr || block == nullptr) return Number(Error::kInvalidValue);
  *block = limit <= 0 ? 1024 : std::min(limit, 1024);
  const std::size_t shared = shared_of_block == nullptr ? shared_bytes : shared_of_block(*block);
  *grid = TheSettings().sm_count * BlocksPerMultiprocessor(TheSettings(), *block, shared);
  return 0;
}
ASHLAR_SURFACE int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void* kernel,
                                                    std::size_t (*shared_of_block)(int), std::size_t shared_bytes,
                                                    int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, kernel, shared_of_block, shared_bytes, limit, 0);
}
ASHLAR_SURFACE int cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, void*, int blocks, int) {
  ASHLAR_NEEDS_INIT();
  if (bytes == nullptr || blocks < 1) return Number(Error::kInvalidValue);
  *bytes = std::min(TheSettings().shared_per_sm / static_cast<unsigned>(blocks), TheSettings().shared_per_block_optin);
  return 0;
}
ASHLAR_SURFACE int cuOccupancyMaxPotentialClusterSize(int* size, void*, const abi::DriverLaunchConfig*) {
  ASHLAR_NEEDS_INIT();
  if (size == nullptr) return Number(Error::kInvalidValue);
  *size = TheSettings().compute_major >= 9 ? 8 : 1;  // the portable size, CUDA C++ Programming Guide
  return 0;
}
ASHLAR_SURFACE int cuOccupancyMaxActiveClusters(int* clusters, void*, const abi::DriverLaunchConfig*) {
  ASHLAR_NEEDS_INIT();
  if (clusters == nullptr) return Number(Error::kInvalidValue);
  *clusters = std::max(1, TheSettings().sm_count / 8);
  return 0;
}

// A descriptor of a tensor, which only kernels read: its bytes are zero.
ASHLAR_SURFACE int cuTensorMapEncodeTiled(void* map, int, unsigned rank, void* address, const std::uint64_t*,
                                          const std::uint64_t*, const unsigned*, const unsigned*, int, int, int, int) {
  ASHLAR_NEEDS_INIT();
  constexpr std::size_t kMapBytes = 128;  // CUtensorMap
  if (map == nullptr || address == nullptr || rank < 1 || rank > 5) return Number(Error::kInvalidValue);
  std::memset(map, 0, kMapBytes);
  return 0;
}

ASHLAR_SAME(cuLaunchKernel_ptsz, cuLaunchKernel);
ASHLAR_SAME(cuLaunchKernelEx_ptsz, cuLaunchKernelEx);
ASHLAR_SAME(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel);
