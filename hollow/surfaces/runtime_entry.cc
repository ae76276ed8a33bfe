// CUDA's runtime: functions of the driver by name. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and
// 13.0.
#include <cstdint>

#include "hollow/surfaces/driver_entry.h"
#include "hollow/surfaces/runtime_call.h"

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

ASHLAR_SAME(cudaGetDriverEntryPoint_ptsz, cudaGetDriverEntryPoint);
ASHLAR_SAME(cudaGetDriverEntryPointByVersion_ptsz, cudaGetDriverEntryPointByVersion);
