// The fake CUDA as a library: libcuda.so.1, with the names of CUDA's driver of version FAKE_CUDA_VERSION. It takes
// nothing but the standard library, so that it brings no second Abseil into the program that opens it.
//
// A driver has several versions of a call. Those with other arguments than CudaDevice's abort.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "allocator/device/cuda_types.h"
#include "tests/fake_cuda/fake_cuda.h"

#define DRIVER extern "C" __attribute__((visibility("default"))) int

namespace ashlar::device {
namespace {

FakeCuda& Fake() { return FakeCuda::Called(); }

int Wrong(const char* call) {
  std::fprintf(stderr, "fake CUDA: %s is not what CudaDevice means\n", call);
  std::abort();
}

const char* NameOf(int code) {
  switch (code) {
    case kCudaErrorOutOfMemory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case kCudaErrorNoDevice:
      return "CUDA_ERROR_NO_DEVICE";
    default:
      return nullptr;
  }
}

}  // namespace

int FakeCudaVersion() { return FAKE_CUDA_VERSION; }

DRIVER cuInit(unsigned flags) { return flags == 0 ? Fake().Init() : Wrong("cuInit with flags"); }
DRIVER cuDriverGetVersion(int* version) {
  *version = FAKE_CUDA_VERSION;
  return kCudaSuccess;
}
DRIVER cuGetErrorName(int code, const char** name) {
  *name = NameOf(code);
  return *name == nullptr ? kCudaErrorInvalidValue : kCudaSuccess;
}
DRIVER cuGetErrorString(int code, const char** text) {
  if (NameOf(code) == nullptr) return kCudaErrorInvalidValue;
  *text = code == kCudaErrorOutOfMemory ? "out of memory" : "no CUDA-capable device is detected";
  return kCudaSuccess;
}
DRIVER cuDeviceGetCount(int* count) { return Fake().DeviceGetCount(count); }
DRIVER cuDeviceGet(CudaDeviceId* device, int ordinal) { return Fake().DeviceGet(device, ordinal); }
DRIVER cuDeviceGetAttribute(int* value, CudaAttribute attribute, CudaDeviceId device) {
  return Fake().DeviceGetAttribute(value, attribute, device);
}
DRIVER cuDevicePrimaryCtxRetain(CudaContext* context, CudaDeviceId device) {
  return Fake().PrimaryRetain(context, device);
}
DRIVER cuDevicePrimaryCtxRelease(CudaDeviceId) { return Wrong("cuDevicePrimaryCtxRelease of CUDA 7.0"); }
DRIVER cuDevicePrimaryCtxGetState(CudaDeviceId device, unsigned* flags, int* is_active) {
  return Fake().PrimaryGetState(device, flags, is_active);
}
DRIVER cuCtxGetCurrent(CudaContext* context) { return Fake().ContextGetCurrent(context); }
DRIVER cuCtxPushCurrent(CudaContext) { return Wrong("cuCtxPushCurrent of CUDA 2.0"); }
DRIVER cuCtxPushCurrent_v2(CudaContext context) { return Fake().ContextPush(context); }
DRIVER cuCtxPopCurrent(CudaContext*) { return Wrong("cuCtxPopCurrent of CUDA 2.0"); }
DRIVER cuCtxPopCurrent_v2(CudaContext* context) { return Fake().ContextPop(context); }
DRIVER cuCtxSynchronize() { return Fake().ContextSynchronize(); }
DRIVER cuMemAlloc(unsigned*, unsigned) { return Wrong("cuMemAlloc of CUDA 2.0"); }
DRIVER cuMemAlloc_v2(std::uint64_t* address, std::uint64_t size_bytes) { return Fake().MemAlloc(address, size_bytes); }
DRIVER cuMemFree(unsigned) { return Wrong("cuMemFree of CUDA 2.0"); }
DRIVER cuMemFree_v2(std::uint64_t address) { return Fake().MemFree(address); }
DRIVER cuMemGetInfo(unsigned*, unsigned*) { return Wrong("cuMemGetInfo of CUDA 2.0"); }
DRIVER cuMemGetInfo_v2(std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  return Fake().MemGetInfo(free_bytes, total_bytes);
}
DRIVER cuEventCreate(CudaEvent* event, unsigned flags) { return Fake().EventCreate(event, flags); }
DRIVER cuEventDestroy(CudaEvent) { return Wrong("cuEventDestroy of CUDA 2.0"); }
DRIVER cuEventDestroy_v2(CudaEvent event) { return Fake().EventDestroy(event); }
DRIVER cuEventRecord(CudaEvent event, CudaStream stream) { return Fake().EventRecord(event, stream); }
DRIVER cuEventQuery(CudaEvent event) { return Fake().EventQuery(event); }
DRIVER cuEventSynchronize(CudaEvent event) { return Fake().EventSynchronize(event); }
DRIVER cuStreamSynchronize(CudaStream stream) { return Fake().StreamSynchronize(stream); }
#if FAKE_CUDA_VERSION >= 12030
DRIVER cuStreamGetCaptureInfo_v3(CudaStream stream, int* status, std::uint64_t* id, void** /*graph*/,
                                 const CudaNode** nodes, const CudaEdge** edges, std::size_t* count) {
  return Fake().StreamGetCaptureInfo(stream, status, id, nodes, edges, count);
}
DRIVER cuGraphNodeGetDependencies_v2(CudaNode node, CudaNode* nodes, CudaEdge* edges, std::size_t* count) {
  return Fake().GraphNodeGetDependencies(node, nodes, edges, count);
}
#endif
DRIVER cuStreamWaitEvent(CudaStream stream, CudaEvent event, unsigned flags) {
  return Fake().StreamWaitEvent(stream, event, flags);
}
DRIVER cuThreadExchangeStreamCaptureMode(CudaCaptureMode* mode) { return Fake().ExchangeCaptureMode(mode); }

#if !defined(FAKE_CUDA_NO_VIRTUAL_MEMORY)
DRIVER cuMemGetAllocationGranularity(std::uint64_t* size_bytes, const CudaAllocation* kind, int option) {
  return Fake().MemGetGranularity(size_bytes, *kind, option);
}
DRIVER cuMemAddressReserve(std::uint64_t* address, std::uint64_t size_bytes, std::uint64_t alignment, std::uint64_t,
                           std::uint64_t) {
  return Fake().MemAddressReserve(address, size_bytes, alignment);
}
DRIVER cuMemAddressFree(std::uint64_t address, std::uint64_t size_bytes) {
  return Fake().MemAddressFree(address, size_bytes);
}
DRIVER cuMemCreate(CudaHandle* handle, std::uint64_t size_bytes, const CudaAllocation* kind, std::uint64_t) {
  return Fake().MemCreate(handle, size_bytes, *kind);
}
DRIVER cuMemRelease(CudaHandle handle) { return Fake().MemRelease(handle); }
DRIVER cuMemExportToShareableHandle(void* exported, CudaHandle handle, int handle_type, std::uint64_t) {
  return Fake().MemExport(static_cast<int*>(exported), handle, handle_type);
}
DRIVER cuMemMap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t offset, CudaHandle handle,
                std::uint64_t) {
  return Fake().MemMap(address, size_bytes, offset, handle);
}
DRIVER cuMemUnmap(std::uint64_t address, std::uint64_t size_bytes) { return Fake().MemUnmap(address, size_bytes); }
DRIVER cuMemSetAccess(std::uint64_t address, std::uint64_t size_bytes, const CudaAccess* access, std::uint64_t count) {
  return count == 1 ? Fake().MemSetAccess(address, size_bytes, *access) : Wrong("cuMemSetAccess for several");
}
#endif
#if FAKE_CUDA_VERSION >= 11000
DRIVER cuDevicePrimaryCtxRelease_v2(CudaDeviceId device) { return Fake().PrimaryRelease(device); }
DRIVER cuDevicePrimaryCtxReset_v2(CudaDeviceId device) { return Fake().PrimaryReset(device); }
#endif
#if FAKE_CUDA_VERSION >= 12000
DRIVER cuCtxGetId(CudaContext context, std::uint64_t* id) { return Fake().ContextGetId(context, id); }
#endif
#if FAKE_CUDA_VERSION >= 13000
DRIVER cuCtxSynchronize_v2(CudaContext) { return Wrong("cuCtxSynchronize of CUDA 13.0"); }
#endif

#if FAKE_CUDA_VERSION >= 11030
namespace {

struct Export {
  const char* name;
  int version;
  void* function;
};

template <typename Function>
void* AddressOf(Function* function) {
  return reinterpret_cast<void*>(function);
}

// Oldest version first.
const Export kExports[] = {
    {"cuInit", 2000, AddressOf(cuInit)},
    {"cuDriverGetVersion", 2020, AddressOf(cuDriverGetVersion)},
    {"cuGetErrorName", 6000, AddressOf(cuGetErrorName)},
    {"cuGetErrorString", 6000, AddressOf(cuGetErrorString)},
    {"cuDeviceGetCount", 2000, AddressOf(cuDeviceGetCount)},
    {"cuDeviceGet", 2000, AddressOf(cuDeviceGet)},
    {"cuDeviceGetAttribute", 2000, AddressOf(cuDeviceGetAttribute)},
    {"cuDevicePrimaryCtxRetain", 7000, AddressOf(cuDevicePrimaryCtxRetain)},
    {"cuDevicePrimaryCtxRelease", 7000, AddressOf(cuDevicePrimaryCtxRelease)},
    {"cuDevicePrimaryCtxRelease", 11000, AddressOf(cuDevicePrimaryCtxRelease_v2)},
    {"cuDevicePrimaryCtxReset", 11000, AddressOf(cuDevicePrimaryCtxReset_v2)},
    {"cuDevicePrimaryCtxGetState", 7000, AddressOf(cuDevicePrimaryCtxGetState)},
    {"cuCtxGetCurrent", 4000, AddressOf(cuCtxGetCurrent)},
    {"cuCtxPushCurrent", 2000, AddressOf(cuCtxPushCurrent)},
    {"cuCtxPushCurrent", 4000, AddressOf(cuCtxPushCurrent_v2)},
    {"cuCtxPopCurrent", 2000, AddressOf(cuCtxPopCurrent)},
    {"cuCtxPopCurrent", 4000, AddressOf(cuCtxPopCurrent_v2)},
    {"cuCtxSynchronize", 2000, AddressOf(cuCtxSynchronize)},
    {"cuMemAlloc", 2000, AddressOf(cuMemAlloc)},
    {"cuMemAlloc", 3020, AddressOf(cuMemAlloc_v2)},
    {"cuMemFree", 2000, AddressOf(cuMemFree)},
    {"cuMemFree", 3020, AddressOf(cuMemFree_v2)},
    {"cuMemGetInfo", 2000, AddressOf(cuMemGetInfo)},
    {"cuMemGetInfo", 3020, AddressOf(cuMemGetInfo_v2)},
    {"cuEventCreate", 2000, AddressOf(cuEventCreate)},
    {"cuEventDestroy", 2000, AddressOf(cuEventDestroy)},
    {"cuEventDestroy", 4000, AddressOf(cuEventDestroy_v2)},
    {"cuEventRecord", 2000, AddressOf(cuEventRecord)},
    {"cuEventQuery", 2000, AddressOf(cuEventQuery)},
    {"cuEventSynchronize", 2000, AddressOf(cuEventSynchronize)},
    {"cuStreamSynchronize", 2000, AddressOf(cuStreamSynchronize)},
    {"cuStreamWaitEvent", 3020, AddressOf(cuStreamWaitEvent)},
    {"cuThreadExchangeStreamCaptureMode", 10010, AddressOf(cuThreadExchangeStreamCaptureMode)},
#if !defined(FAKE_CUDA_NO_VIRTUAL_MEMORY)
    {"cuMemGetAllocationGranularity", 10020, AddressOf(cuMemGetAllocationGranularity)},
    {"cuMemAddressReserve", 10020, AddressOf(cuMemAddressReserve)},
    {"cuMemAddressFree", 10020, AddressOf(cuMemAddressFree)},
    {"cuMemCreate", 10020, AddressOf(cuMemCreate)},
    {"cuMemRelease", 10020, AddressOf(cuMemRelease)},
    {"cuMemExportToShareableHandle", 10020, AddressOf(cuMemExportToShareableHandle)},
    {"cuMemMap", 10020, AddressOf(cuMemMap)},
    {"cuMemUnmap", 10020, AddressOf(cuMemUnmap)},
    {"cuMemSetAccess", 10020, AddressOf(cuMemSetAccess)},
#endif
#if FAKE_CUDA_VERSION >= 12000
    {"cuCtxGetId", 12000, AddressOf(cuCtxGetId)},
#endif
#if FAKE_CUDA_VERSION >= 12030
    {"cuStreamGetCaptureInfo", 12030, AddressOf(cuStreamGetCaptureInfo_v3)},
    {"cuGraphNodeGetDependencies", 12030, AddressOf(cuGraphNodeGetDependencies_v2)},
#endif
#if FAKE_CUDA_VERSION >= 13000
    {"cuCtxSynchronize", 13000, AddressOf(cuCtxSynchronize_v2)},
#endif
};

// The newest of `name` that a program of CUDA `version` knows.
int Look(const char* name, void** function, int version, std::uint64_t flags) {
  if (flags != 1) Wrong("cuGetProcAddress for another default stream");
  *function = nullptr;
  if (version > FAKE_CUDA_VERSION) return kCudaErrorInvalidValue;
  for (const Export& row : kExports) {
    if (std::string(name) == row.name && row.version <= version) *function = row.function;
  }
  return kCudaSuccess;
}

}  // namespace

DRIVER cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  const int code = Look(name, function, version, flags);
  return code == kCudaSuccess && *function == nullptr ? kCudaErrorNotFound : code;
}
#endif
#if FAKE_CUDA_VERSION >= 12000
DRIVER cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags, int* status) {
  const int code = Look(name, function, version, flags);
  *status = *function == nullptr ? 1 : 0;
  return code;
}
#endif

}  // namespace ashlar::device
