// CUDA's runtime: memory. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
#include <cstring>

#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/cuda_streams.h"
#include "hollow/surfaces/runtime_call.h"
#include "hollow/surfaces/stream_work.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaMalloc(void** pointer, std::size_t bytes) {
  return Locked([&](Process& process) { return Allocate(process, bytes, MemoryKind::kDevice, pointer); });
}

ASHLAR_SURFACE int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return Locked([&](Process& process) { return Allocate(process, bytes, MemoryKind::kManaged, pointer); });
}

ASHLAR_SURFACE int cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  return Locked([&](Process& process) { return AllocatePitched(process, width, height, pointer, pitch); });
}

ASHLAR_SURFACE int cudaMalloc3D(abi::PitchedPtr* pointer, abi::Extent extent) {
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
