// cuBLAS: handles and what is set on them. Products and solvers are work for the device (names/cublas.inc).
//
// Signatures and numbers: cublas_api.h of CUDA 11.8, 12.4 and 13.0, which agree on all that is here.
#include "hollow/surfaces/cublas.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hollow/surfaces/launches.h"
#include "hollow/surfaces/objects.h"
#include "hollow/surfaces/real_library.h"
#include "hollow/surfaces/surface.h"

extern "C" int cudaFree(void* address);

namespace ashlar::hollow {
namespace {

constinit Objects<CublasHandle> cublas_handles(0xB1);
std::atomic<void*> cublas_logger{nullptr};

// cublasStatus_t by number.
const char* CublasStatusName(int status) {
  switch (status) {
    case 0:
      return "CUBLAS_STATUS_SUCCESS";
    case 1:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case 8:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case 11:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case 13:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case 16:
      return "CUBLAS_STATUS_LICENSE_ERROR";
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

template <class Value>
int SetOnCublas(void* handle, Value CublasHandle::*field, Value value) {
  CublasHandle* mine = FindCublas(handle);
  if (mine == nullptr) return kCublasNotInitialized;
  mine->*field = value;
  return kCublasSuccess;
}

template <class Value>
int GetFromCublas(void* handle, Value CublasHandle::*field, Value* value) {
  const CublasHandle* mine = FindCublas(handle);
  if (mine == nullptr) return kCublasNotInitialized;
  if (value == nullptr) return kCublasInvalidValue;
  *value = mine->*field;
  return kCublasSuccess;
}

}  // namespace

CublasHandle* FindCublas(const void* handle) { return cublas_handles.Find(handle); }

int LaunchCublas(void* handle) {
  const CublasHandle* mine = FindCublas(handle);
  if (mine == nullptr) return kCublasNotInitialized;
  CountLaunch(mine->stream);
  return kCublasSuccess;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cublasCreate_v2(void** handle) {
  if (handle == nullptr) return kCublasInvalidValue;
  if (cudaFree(nullptr) != 0) return kCublasNotInitialized;  // it makes the device's context, as the library does
  *handle = cublas_handles.Make();
  cublas_handles.Find(*handle)->hold = HoldForCublas();
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasDestroy_v2(void* handle) {
  if (const CublasHandle* mine = FindCublas(handle)) ReturnHold(mine->hold);
  return cublas_handles.Destroy(handle) ? kCublasSuccess : kCublasNotInitialized;
}

ASHLAR_SURFACE int cublasGetProperty(int type, int* value) {
  return RealProperty("libcublas.so.", "cublasGetProperty", kCublasVersion, type, value) ? 0 : kCublasInvalidValue;
}
ASHLAR_SURFACE int cublasGetVersion_v2(void*, int* version) {  // the handle is not looked at, as in the library
  int part[3] = {};
  if (version == nullptr) return kCublasInvalidValue;
  for (int type = 0; type < 3; ++type) cublasGetProperty(type, &part[type]);
  *version = part[0] * 10000 + part[1] * 100 + part[2];  // CUBLAS_VERSION
  return kCublasSuccess;
}
ASHLAR_SURFACE std::size_t cublasGetCudartVersion() {
  const auto real = reinterpret_cast<std::size_t (*)()>(RealFunction("libcublas.so.", "cublasGetCudartVersion"));
  return real == nullptr ? 12'040 : real();
}
ASHLAR_SURFACE const char* cublasGetStatusName(int status) { return CublasStatusName(status); }
ASHLAR_SURFACE const char* cublasGetStatusString(int status) {
  return RealText("libcublas.so.", "cublasGetStatusString", status, CublasStatusName(status));
}

ASHLAR_SURFACE int cublasSetStream_v2(void* handle, void* stream) {
  if (CublasHandle* mine = FindCublas(handle)) {  // a new stream takes the caller's workspace away
    mine->workspace = nullptr;
    mine->workspace_bytes = 0;
  }
  return SetOnCublas(handle, &CublasHandle::stream, stream);
}
ASHLAR_SURFACE int cublasGetStream_v2(void* handle, void** stream) {
  return GetFromCublas(handle, &CublasHandle::stream, stream);
}
ASHLAR_SURFACE int cublasSetWorkspace_v2(void* handle, void* workspace, std::size_t bytes) {
  const int status = SetOnCublas(handle, &CublasHandle::workspace, workspace);
  return status != 0 ? status : SetOnCublas(handle, &CublasHandle::workspace_bytes, std::uint64_t{bytes});
}
ASHLAR_SURFACE int cublasSetMathMode(void* handle, int mode) {
  return SetOnCublas(handle, &CublasHandle::math_mode, mode);
}
ASHLAR_SURFACE int cublasGetMathMode(void* handle, int* mode) {
  return GetFromCublas(handle, &CublasHandle::math_mode, mode);
}
ASHLAR_SURFACE int cublasSetPointerMode_v2(void* handle, int mode) {
  if (mode != 0 && mode != 1) return kCublasInvalidValue;
  return SetOnCublas(handle, &CublasHandle::pointer_mode, mode);
}
ASHLAR_SURFACE int cublasGetPointerMode_v2(void* handle, int* mode) {
  return GetFromCublas(handle, &CublasHandle::pointer_mode, mode);
}
ASHLAR_SURFACE int cublasSetAtomicsMode(void* handle, int mode) {
  return SetOnCublas(handle, &CublasHandle::atomics_mode, mode);
}
ASHLAR_SURFACE int cublasGetAtomicsMode(void* handle, int* mode) {
  return GetFromCublas(handle, &CublasHandle::atomics_mode, mode);
}
ASHLAR_SURFACE int cublasSetSmCountTarget(void* handle, int count) {
  if (count < 0) return kCublasInvalidValue;
  return SetOnCublas(handle, &CublasHandle::sm_count_target, count);
}
ASHLAR_SURFACE int cublasGetSmCountTarget(void* handle, int* count) {
  return GetFromCublas(handle, &CublasHandle::sm_count_target, count);
}
ASHLAR_SURFACE int cublasSetEmulationStrategy(void* handle, int strategy) {
  return SetOnCublas(handle, &CublasHandle::emulation_strategy, strategy);
}
ASHLAR_SURFACE int cublasGetEmulationStrategy(void* handle, int* strategy) {
  return GetFromCublas(handle, &CublasHandle::emulation_strategy, strategy);
}

// There is nothing to log: the settings are accepted, and no line is ever written.
ASHLAR_SURFACE int cublasLoggerConfigure(int, int, int, const char*) { return kCublasSuccess; }
ASHLAR_SURFACE int cublasSetLoggerCallback(void* callback) {
  cublas_logger = callback;
  return kCublasSuccess;
}
ASHLAR_SURFACE int cublasGetLoggerCallback(void** callback) {
  if (callback == nullptr) return kCublasInvalidValue;
  *callback = cublas_logger;
  return kCublasSuccess;
}
