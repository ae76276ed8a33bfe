// CUDA's driver: its functions by name and version, and the private tables that we do not have.

#include "hollow/api/cuda/entry.h"

#include <dlfcn.h>

#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hollow/api/driver/call.h"
#include "hollow/api/runtime/call.h"

namespace ashlar::hollow {
namespace {

// The version of CUDA from which on a plain name means _v2, _v3 and so on, where that is later than 4.0: a second
// version without a line has meant the name since then. Source: cudaTypedefs.h of CUDA 11.8, 12.4, 13.0 and 13.5, whose
// types carry these versions.
const std::map<std::string_view, std::vector<int>>& Versions() {
  static const auto* versions = new std::map<std::string_view, std::vector<int>>{
      {"cuCtxCreate", {3020, 11040, 12050}},
      {"cuCtxGetDevice", {13000}},
      {"cuCtxSynchronize", {13000}},
      {"cuDeviceGetUuid", {11040}},
      {"cuDevicePrimaryCtxRelease", {11000}},
      {"cuDevicePrimaryCtxReset", {11000}},
      {"cuDevicePrimaryCtxSetFlags", {11000}},
      {"cuEventElapsedTime", {12080}},
      {"cuGetProcAddress", {12000}},
      {"cuGraphAddDependencies", {12030}},
      {"cuGraphAddKernelNode", {12000}},
      {"cuGraphAddNode", {12030}},
      {"cuGraphExecKernelNodeSetParams", {12000}},
      {"cuGraphExecUpdate", {12000}},
      {"cuGraphGetEdges", {12030}},
      {"cuGraphInstantiate", {11000, 12000}},  // from 12 on it is cuGraphInstantiateWithFlags
      {"cuGraphKernelNodeGetParams", {12000}},
      {"cuGraphKernelNodeSetParams", {12000}},
      {"cuGraphNodeGetDependencies", {12030}},
      {"cuGraphNodeGetDependentNodes", {12030}},
      {"cuGraphRemoveDependencies", {12030}},
      {"cuGraphicsResourceSetMapFlags", {6050}},
      {"cuIpcOpenMemHandle", {11000}},
      {"cuLaunchHostFunc", {13010}},
      {"cuLinkAddData", {6050}},
      {"cuLinkAddFile", {6050}},
      {"cuLinkCreate", {6050}},
      {"cuMemAdvise", {12020}},
      {"cuMemHostRegister", {6050}},
      {"cuMemPrefetchAsync", {12020}},
      {"cuMemcpy3DBatchAsync", {13000}},
      {"cuMemcpyBatchAsync", {13000}},
      {"cuMulticastBindAddr", {13010}},
      {"cuMulticastBindMem", {13010}},
      {"cuStreamBatchMemOp", {11070}},
      {"cuStreamBeginCapture", {10010}},
      {"cuStreamGetCaptureInfo", {11030, 12030}},
      {"cuStreamGetCtx", {12050}},
      {"cuStreamUpdateCaptureDependencies", {12030}},
      {"cuStreamWaitValue32", {11070}},
      {"cuStreamWaitValue64", {11070}},
      {"cuStreamWriteValue32", {11070}},
      {"cuStreamWriteValue64", {11070}},
  };
  return *versions;
}

void* Exported(const std::string& name) { return dlsym(RTLD_DEFAULT, name.c_str()); }

bool IsDriverName(const char* name) {
  return std::strncmp(name, "cu", 2) == 0 && std::isupper(static_cast<unsigned char>(name[2])) != 0;
}

// What a library that asks for tables without a header wants with them; nullptr: it asks in vain, and does without, as
// NVIDIA's libraries do whose functions are answered here.
const char* WhyPrivateTables(const char* file) {
  for (const char* silent : {"/libnvrtc", "/libnvJitLink", "/libcudnn", "/libcublas", "/libcusolver", "/libcusparse",
                             "/libcufft", "/libnvblas", "/libnccl", "/libnvshmem"}) {
    if (std::strstr(file, silent) != nullptr) return nullptr;
  }
  if (std::strstr(file, "/libcupti") != nullptr) {
    return "profiles a GPU by the driver's private tables, which a hollow device does not have";
  }
  return "has a CUDA runtime linked in that is stripped of names, which a hollow device does not serve: link it "
         "without "
         "-s, or with nvcc -cudart shared";
}

void TellOfPrivateTables(const void* caller) {
  static std::atomic<bool> was_told = false;
  Dl_info info = {};
  const bool is_known = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  const char* file = is_known ? info.dli_fname : "the program";
  const char* why = WhyPrivateTables(file);
  if (why == nullptr || was_told.exchange(true)) return;
  std::fprintf(stderr, "ashlar: %s %s\n", file, why);
}

}  // namespace

void* DriverFunction(const char* name, int cuda_version) {
  if (!IsDriverName(name)) return nullptr;
  const auto it = Versions().find(name);
  if (it == Versions().end()) {
    void* second = Exported(std::string(name) + "_v2");
    return second != nullptr ? second : Exported(name);
  }
  std::size_t number = 1;
  for (const int since : it->second) number += cuda_version >= since ? 1U : 0U;
  if (number == 1) return Exported(name);
  if (std::strcmp(name, "cuGraphInstantiate") == 0 && number == 3) return Exported("cuGraphInstantiateWithFlags");
  return Exported(std::string(name) + "_v" + std::to_string(number));
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

// Whether a stream is each thread's own makes no difference, so that the flags are not looked at.
ASHLAR_SURFACE int cuGetProcAddress_v2(const char* name, void** function, int cuda_version, std::uint64_t,
                                       int* status) {
  if (name == nullptr || function == nullptr) return Number(Error::kInvalidValue);
  *function = DriverFunction(name, cuda_version);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;  // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  return 0;  // a function that is not found is null, as an H200's driver answers
}
ASHLAR_SURFACE int cuGetProcAddress(const char* name, void** function, int cuda_version, std::uint64_t) {
  if (name == nullptr || function == nullptr) return Number(Error::kInvalidValue);
  void* found = DriverFunction(name, cuda_version);
  if (found == nullptr) return Number(Error::kNotFound);
  *function = found;
  return 0;
}
ASHLAR_SAME(cuGetProcAddress_v2_ptsz, cuGetProcAddress_v2);
ASHLAR_SAME(cuGetProcAddress_ptsz, cuGetProcAddress);

ASHLAR_SURFACE int cuGetExportTable(const void** table, const void*) {
  if (table != nullptr) *table = nullptr;
  TellOfPrivateTables(__builtin_return_address(0));
  CountRefused("cuGetExportTable");
  return Number(Error::kNotSupported);
}

// Where the auditor (hollow/audit) sends a runtime's function that no surface here has.
ASHLAR_SURFACE int ashlar_not_supported() {
  CountRefused("a newer function of a CUDA runtime that is linked in");
  return Number(Error::kNotSupported);
}

// CUDA's runtime: functions of the driver by name. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and
// 13.0.

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaRuntimeGetVersion(int* version);

// CUDA answers success and a status where it has no such function.
ASHLAR_SURFACE int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned cuda_version,
                                                    std::uint64_t, int* status) {
  (void)StartedProcess();
  if (name == nullptr || function == nullptr) return Last(Error::kInvalidValue);
  *function = DriverFunction(name, static_cast<int>(cuda_version));
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;  // cudaDriverEntryPointSymbolNotFound
  return *function == nullptr && status == nullptr ? Last(Error::kNotFound) : 0;
}

// The status came with CUDA 12.
ASHLAR_SURFACE int cudaGetDriverEntryPoint(const char* name, void** function, std::uint64_t flags, int* status) {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return cudaGetDriverEntryPointByVersion(name, function, static_cast<unsigned>(version), flags,
                                          RuntimeMajor() >= 12 ? status : nullptr);
}

namespace {

// As a runtime that is linked in asks: which of its major version it is, is not known, so that it is the last one. By
// the first of that name, as the program would call it.
int EntryPointOfLinked(const char* name, void** function, std::uint64_t flags, int* status) {
  constexpr int kLastMinor = 990;
  const auto by_version =
      reinterpret_cast<decltype(&cudaGetDriverEntryPointByVersion)>(Exported("cudaGetDriverEntryPointByVersion"));
  const int major = RuntimeMajor();
  return by_version(name, function, static_cast<unsigned>(major * 1000 + kLastMinor), flags,
                    major >= 12 ? status : nullptr);
}

}  // namespace

#define ASHLAR_ENTRY_POINT(name)                                                              \
  ASHLAR_OF_VERSIONS(name, EntryPointOfLinked,                                                \
                     (const char* symbol, void** function, std::uint64_t flags, int* status), \
                     (symbol, function, flags, status))
ASHLAR_ENTRY_POINT(cudaGetDriverEntryPoint)
ASHLAR_ENTRY_POINT(cudaGetDriverEntryPoint_ptsz)

ASHLAR_SAME(cudaGetDriverEntryPoint_ptsz, cudaGetDriverEntryPoint);
ASHLAR_SAME(cudaGetDriverEntryPointByVersion_ptsz, cudaGetDriverEntryPointByVersion);
