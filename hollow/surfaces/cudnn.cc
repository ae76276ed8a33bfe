// cuDNN: the handle, versions and statuses. Layers are work for the device (names/cudnn.inc).
//
// Signatures: cudnn_graph.h of 9.24, cudnn_ops_infer.h of 8.9.
#include "hollow/surfaces/cudnn.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "hollow/surfaces/launches.h"
#include "hollow/surfaces/objects.h"
#include "hollow/surfaces/real_library.h"
#include "hollow/surfaces/surface.h"

extern "C" int cudaFree(void* address);

namespace ashlar::hollow {
namespace {

constinit Objects<CudnnHandle> cudnn_handles(0xD0);
constinit std::atomic<int> cudnn_major{0};  // 0: not looked yet

// The version that the program brought, 9 where none is loaded yet.
int CudnnMajor() {
  int major = cudnn_major.load(std::memory_order_relaxed);
  if (major != 0) return major;
  major = RealMajor("libcudnn.so.");
  if (major == 0) return 9;
  cudnn_major.store(major, std::memory_order_relaxed);
  return major;
}

const char* CudnnStatusName(int status) {
  switch (status) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case 1:
    case 1001:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case 3:
    case 2000:
      return "CUDNN_STATUS_BAD_PARAM";
    case 9:
    case 3000:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_UNKNOWN";
  }
}

struct CudnnCallback {
  std::atomic<unsigned> mask{0};
  std::atomic<void*> data{nullptr};
  std::atomic<void*> function{nullptr};
};
constinit CudnnCallback cudnn_callback;

}  // namespace

int CudnnBadParam() { return CudnnMajor() < 9 ? 3 : 2000; }
int CudnnNotSupported() { return CudnnMajor() < 9 ? 9 : 3000; }
int CudnnNotInitialized() { return CudnnMajor() < 9 ? 1 : 1001; }

CudnnHandle* FindCudnn(const void* handle) { return cudnn_handles.Find(handle); }

int LaunchCudnn(void* handle) {
  const CudnnHandle* mine = FindCudnn(handle);
  if (mine == nullptr) return CudnnBadParam();
  CountLaunch(mine->stream);
  return kCudnnSuccess;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cudnnCreate(void** handle) {
  if (handle == nullptr) return CudnnBadParam();
  if (cudaFree(nullptr) != 0) return CudnnNotInitialized();  // it makes the device's context, as the library does
  *handle = cudnn_handles.Make();
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnDestroy(void* handle) {
  return cudnn_handles.Destroy(handle) ? kCudnnSuccess : CudnnNotInitialized();
}
ASHLAR_SURFACE int cudnnSetStream(void* handle, void* stream) {
  CudnnHandle* mine = FindCudnn(handle);
  if (mine == nullptr) return CudnnBadParam();
  mine->stream = stream;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetStream(void* handle, void** stream) {
  const CudnnHandle* mine = FindCudnn(handle);
  if (mine == nullptr || stream == nullptr) return CudnnBadParam();
  *stream = mine->stream;
  return kCudnnSuccess;
}

// 9.24.0, where the program brought none.
ASHLAR_SURFACE std::size_t cudnnGetVersion() {
  const auto real = reinterpret_cast<std::size_t (*)()>(RealFunction("libcudnn.so.", "cudnnGetVersion"));
  return real == nullptr ? 92'400 : real();
}
ASHLAR_SURFACE std::size_t cudnnGetCudartVersion() {
  const auto real = reinterpret_cast<std::size_t (*)()>(RealFunction("libcudnn.so.", "cudnnGetCudartVersion"));
  return real == nullptr ? 13'000 : real();
}
// The newest architecture that the library has kernels for: no bound here.
ASHLAR_SURFACE std::size_t cudnnGetMaxDeviceVersion() { return 9'999; }
ASHLAR_SURFACE int cudnnGetProperty(int type, int* value) {
  return RealProperty("libcudnn.so.", "cudnnGetProperty", 92'400, type, value) ? kCudnnSuccess : CudnnBadParam();
}
ASHLAR_SURFACE const char* cudnnGetErrorString(int status) {
  return RealText("libcudnn.so.", "cudnnGetErrorString", status, CudnnStatusName(status));
}
ASHLAR_SURFACE void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (message == nullptr || size == 0) return;
  std::snprintf(message, size, "the hollow device keeps no message of cuDNN");
}
// A kernel never runs, so that none fails.
ASHLAR_SURFACE int cudnnQueryRuntimeError(void* handle, int* status, int, void*) {
  if (FindCudnn(handle) == nullptr || status == nullptr) return CudnnBadParam();
  *status = kCudnnSuccess;
  return kCudnnSuccess;
}

// The parts of the library are of one version: they are all this one.
ASHLAR_SURFACE int cudnnGraphVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnOpsVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnCnnVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnAdvVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnOpsInferVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnOpsTrainVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnCnnInferVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnCnnTrainVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnAdvInferVersionCheck() { return kCudnnSuccess; }
ASHLAR_SURFACE int cudnnAdvTrainVersionCheck() { return kCudnnSuccess; }

// There is nothing to log: the settings are kept, and the function is never called.
ASHLAR_SURFACE int cudnnSetCallback(unsigned mask, void* data, void* function) {
  cudnn_callback.mask = mask;
  cudnn_callback.data = data;
  cudnn_callback.function = function;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetCallback(unsigned* mask, void** data, void** function) {
  if (mask != nullptr) *mask = cudnn_callback.mask;
  if (data != nullptr) *data = cudnn_callback.data;
  if (function != nullptr) *function = cudnn_callback.function;
  return kCudnnSuccess;
}
