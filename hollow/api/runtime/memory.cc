// CUDA's runtime: memory. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.

#include "hollow/api/cuda/memory.h"

#include <cstring>

#include "hollow/api/cuda/stream_work.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/api/runtime/call.h"
#include "hollow/model/calling_library.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaMalloc(void** pointer, std::size_t bytes) {
  const CallFrom call(ASHLAR_CALLER);
  return Locked([&](Process& process) { return Allocate(process, bytes, MemoryKind::kDevice, pointer); });
}

ASHLAR_SURFACE int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  const CallFrom call(ASHLAR_CALLER);
  return Locked([&](Process& process) { return Allocate(process, bytes, MemoryKind::kManaged, pointer); });
}

ASHLAR_SURFACE int cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  const CallFrom call(ASHLAR_CALLER);
  return Locked([&](Process& process) { return AllocatePitched(process, width, height, pointer, pitch); });
}

ASHLAR_SURFACE int cudaMalloc3D(abi::PitchedPtr* pointer, abi::Extent extent) {
  const CallFrom call(ASHLAR_CALLER);
  if (pointer == nullptr) return Last(Error::kInvalidValue);
  return Locked([&](Process& process) {
    const std::size_t rows = extent.height * extent.depth;
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return AllocatePitched(process, extent.width, rows, &pointer->ptr, &pointer->pitch);
  });
}

// It waits for the device, where other ranks may still write.
ASHLAR_SURFACE int cudaFree(void* pointer) {
  if (pointer != nullptr && !SettleDevice(CurrentDevice())) return Last(Error::kLaunchFailure);
  return Locked([&](Process& process) { return Free(process, pointer); });
}

ASHLAR_SURFACE int cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return Locked([&](Process& process) { return AllocateHost(process, bytes, flags, pointer); });
}
ASHLAR_SURFACE int cudaMallocHost(void** pointer, std::size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

ASHLAR_SURFACE int cudaFreeHost(void* pointer) {
  return Locked([&](Process& process) { return FreeHost(process, pointer); });
}

ASHLAR_SURFACE int cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return Locked([&](Process& process) { return RegisterHost(process, pointer, bytes, flags); });
}

ASHLAR_SURFACE int cudaHostUnregister(void* pointer) {
  return Locked([&](Process& process) { return UnregisterHost(process, pointer); });
}

ASHLAR_SURFACE int cudaHostGetDevicePointer(void** device_pointer, void* host, unsigned) {
  return Locked([&](Process& process) {
    const Allocation* allocation = process.allocations.Holding(AddressOf(host));
    if (device_pointer == nullptr || allocation == nullptr || !allocation->is_on_host()) return Error::kInvalidValue;
    *device_pointer = host;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaHostGetFlags(unsigned* flags, void* host) {
  return Locked([&](Process& process) {
    const Allocation* allocation = process.allocations.Holding(AddressOf(host));
    if (flags == nullptr || allocation == nullptr || !allocation->is_on_host()) return Error::kInvalidValue;
    *flags = static_cast<unsigned>(allocation->part);
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return Locked([&](Process& process) { return GetMemoryInfo(process, free_bytes, total_bytes); });
}

ASHLAR_SURFACE int cudaPointerGetAttributes(abi::PointerAttributes* attributes, const void* pointer) {
  return Locked([&](Process& process) {
    if (attributes == nullptr) return Error::kInvalidValue;
    const Allocation* allocation = process.allocations.Holding(AddressOf(pointer));
    *attributes = {};
    attributes->host_pointer = const_cast<void*>(pointer);
    attributes->device = -2;  // cudaInvalidDeviceId
    if (allocation == nullptr) return Error::kNone;
    const bool is_managed = allocation->kind == MemoryKind::kManaged;
    attributes->type = allocation->is_on_host() ? 1 : is_managed ? 3 : 2;
    attributes->device = allocation->device;
    attributes->device_pointer = const_cast<void*>(pointer);
    if (attributes->type == 2) attributes->host_pointer = nullptr;
    return Error::kNone;
  });
}

// Where managed memory lies makes no difference to what it takes.
ASHLAR_SURFACE int cudaMemPrefetchAsync(const void*, std::size_t, ...) { return Last(GiveKernel(nullptr)); }
ASHLAR_SURFACE int cudaMemPrefetchAsync_v2(const void*, std::size_t, ...) { return Last(GiveKernel(nullptr)); }
ASHLAR_IGNORED(cudaMemAdvise, "a hint of where managed memory should lie: it stays where it is")
ASHLAR_IGNORED(cudaMemAdvise_v2, "a hint of where managed memory should lie: it stays where it is")

ASHLAR_SURFACE int cudaIpcGetMemHandle(abi::IpcHandle* handle, void* pointer) {
  return Locked([&](Process& process) { return ExportMemory(process, pointer, handle); });
}

ASHLAR_SURFACE int cudaIpcOpenMemHandle(void** pointer, abi::IpcHandle handle, unsigned) {
  return Locked([&](Process& process) { return ImportMemory(process, handle, pointer); });
}

ASHLAR_SURFACE int cudaIpcCloseMemHandle(void* pointer) {
  return Locked([&](Process& process) { return CloseImport(process, pointer); });
}

// CUDA's runtime: memory pools, ordered by streams. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and
// 13.0.

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream) {
  const CallFrom call(ASHLAR_CALLER);
  return Locked([&](Process& process) {
    return AllocateFromPool(process, process.current_pools[CurrentDevice()], bytes, stream, pointer);
  });
}

ASHLAR_SURFACE int cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, void* pool, void* stream) {
  const CallFrom call(ASHLAR_CALLER);
  return Locked([&](Process& process) {
    const PoolModel* known = PoolOf(process, pool);
    if (known == nullptr) return Error::kInvalidValue;
    return AllocateFromPool(process, known->id(), bytes, stream, pointer);
  });
}

ASHLAR_SURFACE int cudaFreeAsync(void* pointer, void* stream) {
  return Locked([&](Process& process) { return FreeAsync(process, pointer, stream); });
}

ASHLAR_SURFACE int cudaMemPoolCreate(void** pool, const abi::PoolProps* props) {
  if (props == nullptr) return Last(Error::kInvalidValue);
  return Locked([&](Process& process) { return MakePool(process, *props, pool); });
}

ASHLAR_SURFACE int cudaMemPoolDestroy(void* pool) {
  return Locked([&](Process& process) { return DestroyPool(process, pool); });
}

ASHLAR_SURFACE int cudaMemPoolTrimTo(void* pool, std::size_t keep_bytes) {
  return Locked([&](Process& process) { return TrimPool(process, pool, keep_bytes); });
}

ASHLAR_SURFACE int cudaMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return Locked([&](Process& process) { return SetPoolAttribute(process, pool, attribute, value); });
}

ASHLAR_SURFACE int cudaMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return Locked([&](Process& process) { return GetPoolAttribute(process, pool, attribute, value); });
}

ASHLAR_SURFACE int cudaMemPoolSetAccess(void* pool, const abi::AccessDesc* access, std::size_t count) {
  return Locked([&](Process& process) { return SetPoolAccess(process, pool, access, count); });
}

ASHLAR_SURFACE int cudaMemPoolGetAccess(int* flags, void* pool, const abi::Location* location) {
  return Locked([&](Process& process) { return GetPoolAccess(process, pool, location, flags); });
}

ASHLAR_SURFACE int cudaDeviceGetDefaultMemPool(void** pool, int device) {
  return Locked([&](Process& process) { return DefaultPool(process, device, pool); });
}

ASHLAR_SURFACE int cudaDeviceGetMemPool(void** pool, int device) {
  return Locked([&](Process& process) { return CurrentPool(process, device, pool); });
}

ASHLAR_SURFACE int cudaDeviceSetMemPool(int device, void* pool) {
  return Locked([&](Process& process) { return SetCurrentPool(process, device, pool); });
}

ASHLAR_SURFACE int cudaDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return Locked([&](Process& process) { return GetGraphMemory(process, device, attribute, value); });
}

ASHLAR_SURFACE int cudaDeviceSetGraphMemAttribute(int device, int attribute, void*) {
  return Locked([&](Process& process) { return ResetGraphMemory(process, device, attribute); });
}

ASHLAR_SURFACE int cudaDeviceGraphMemTrim(int device) {
  return Locked([&](Process& process) { return TrimGraphMemory(process, device); });
}

ASHLAR_SAME(cudaMallocAsync_ptsz, cudaMallocAsync);
ASHLAR_SAME(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync);
ASHLAR_SAME(cudaFreeAsync_ptsz, cudaFreeAsync);
