// CUDA's driver: memory of devices and of the host, and what an address is. Source of the signatures: cuda.h of CUDA
// 11.8, 12.4 and 13.0.
#include <cstring>

#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/cuda_pools.h"
#include "hollow/surfaces/cuda_streams.h"
#include "hollow/surfaces/driver_call.h"
#include "hollow/surfaces/stream_work.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cuMemAlloc_v2(void** pointer, std::size_t bytes) {
  ASHLAR_NEEDS_INIT();
  if (bytes == 0) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) { return Allocate(process, bytes, MemoryKind::kDevice, pointer); });
}

ASHLAR_SURFACE int cuMemAllocManaged(void** pointer, std::size_t bytes, unsigned) {
  ASHLAR_NEEDS_INIT();
  if (bytes == 0) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) { return Allocate(process, bytes, MemoryKind::kManaged, pointer); });
}

ASHLAR_SURFACE int cuMemAllocPitch_v2(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height,
                                      unsigned) {
  return Driven([&](Process& process) { return AllocatePitched(process, width, height, pointer, pitch); });
}

ASHLAR_SURFACE int cuMemFree_v2(void* pointer) {
  ASHLAR_NEEDS_INIT();
  if (!SettleDevice(CurrentDevice())) return Number(Error::kLaunchFailure);
  return Driven([&](Process& process) { return Free(process, pointer); });
}

ASHLAR_SURFACE int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return Driven([&](Process& process) { return GetMemoryInfo(process, free_bytes, total_bytes); });
}

ASHLAR_SURFACE int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return Driven([&](Process& process) { return AllocateHost(process, bytes, flags, pointer); });
}
ASHLAR_SURFACE int cuMemAllocHost_v2(void** pointer, std::size_t bytes) { return cuMemHostAlloc(pointer, bytes, 0); }

ASHLAR_SURFACE int cuMemFreeHost(void* pointer) {
  return Driven([&](Process& process) { return FreeHost(process, pointer); });
}

ASHLAR_SURFACE int cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned flags) {
  return Driven([&](Process& process) { return RegisterHost(process, pointer, bytes, flags); });
}
ASHLAR_SAME(cuMemHostRegister, cuMemHostRegister_v2);

ASHLAR_SURFACE int cuMemHostUnregister(void* pointer) {
  return Driven([&](Process& process) { return UnregisterHost(process, pointer); });
}

ASHLAR_SURFACE int cuMemHostGetDevicePointer_v2(void** device_pointer, void* host, unsigned) {
  return Driven([&](Process& process) {
    const Allocation* allocation = process.allocations.Holding(AddressOf(host));
    if (device_pointer == nullptr || allocation == nullptr || !allocation->is_on_host()) return Error::kInvalidValue;
    *device_pointer = host;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuMemHostGetFlags(unsigned* flags, void* host) {
  return Driven([&](Process& process) {
    const Allocation* allocation = process.allocations.Holding(AddressOf(host));
    if (flags == nullptr || allocation == nullptr || !allocation->is_on_host()) return Error::kInvalidValue;
    *flags = static_cast<unsigned>(allocation->part);
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuMemGetAddressRange_v2(std::uint64_t* base, std::size_t* bytes, std::uint64_t address) {
  return Driven([&](Process& process) {
    const Allocation* allocation = process.allocations.Holding(address);
    if (allocation == nullptr) return Error::kNotFound;
    if (base != nullptr) *base = allocation->address;
    if (bytes != nullptr) *bytes = allocation->size_bytes;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuIpcGetMemHandle(abi::IpcHandle* handle, void* pointer) {
  return Driven([&](Process& process) { return ExportMemory(process, pointer, handle); });
}
ASHLAR_SURFACE int cuIpcOpenMemHandle_v2(void** pointer, abi::IpcHandle handle, unsigned) {
  return Driven([&](Process& process) { return ImportMemory(process, handle, pointer); });
}
ASHLAR_SAME(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2);
ASHLAR_SURFACE int cuIpcCloseMemHandle(void* pointer) {
  return Driven([&](Process& process) { return CloseImport(process, pointer); });
}

// Where managed memory lies makes no difference to what it takes.
ASHLAR_SURFACE int cuMemPrefetchAsync(const void*, std::size_t, ...) {
  return AfterInit([=] { return GiveKernel(nullptr); });
}
ASHLAR_SURFACE int cuMemPrefetchAsync_v2(const void*, std::size_t, ...) {
  return AfterInit([=] { return GiveKernel(nullptr); });
}
ASHLAR_IGNORED_AFTER_INIT(cuMemAdvise, "a hint of where managed memory should lie: it stays where it is")
ASHLAR_IGNORED_AFTER_INIT(cuMemAdvise_v2, "a hint of where managed memory should lie: it stays where it is")

namespace {

// CUpointer_attribute.
enum PointerAttribute : int {
  kContext = 1,
  kMemoryType = 2,  // CUmemorytype: 1 host, 2 device
  kDevicePointer = 3,
  kHostPointer = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kMapped = 13,
  kHandleTypes = 14,
  kIsRdmaCapable = 15,
  kAccessFlags = 16,
  kPool = 17,
  kMappingSize = 18,
  kMappingBase = 19,
  kMemoryBlockId = 20,
};

template <typename Value>
Error Put(void* data, Value value) {
  std::memcpy(data, &value, sizeof(value));
  return Error::kNone;
}

Error GetAttribute(Process& process, void* data, int attribute, std::uint64_t address) {
  const Allocation* allocation = process.allocations.Holding(address);
  if (attribute == kMapped) return Put(data, static_cast<unsigned char>(allocation != nullptr));
  if (allocation == nullptr) return Error::kInvalidValue;
  const Allocation& found = *allocation;
  const bool is_managed = found.kind == MemoryKind::kManaged;
  switch (attribute) {
    case kContext:
      return Put(data, PrimaryContext(process, found.device < 0 ? 0 : found.device));
    case kMemoryType:
      return Put(data, found.is_on_host() ? 1U : 2U);
    case kDevicePointer:
      return Put(data, address);
    case kHostPointer:
      return found.is_on_host() || is_managed ? Put(data, address) : Error::kInvalidValue;
    case kSyncMemops:
      return Put(data, 1U);  // copies are done when they are given
    case kBufferId:
    case kMemoryBlockId:
      return Put(data, found.id);
    case kIsManaged:
      return Put(data, static_cast<unsigned char>(is_managed));
    case kDeviceOrdinal:
      return Put(data, found.device);
    case kIsIpcCapable:
      return Put(data, static_cast<unsigned char>(found.kind == MemoryKind::kDevice));
    case kRangeStart:
    case kMappingBase:
      return Put(data, found.address);
    case kRangeSize:
    case kMappingSize:
      return Put(data, found.size_bytes);
    case kHandleTypes:
      return Put(data, std::uint64_t{0});
    case kIsRdmaCapable:
      return Put(data, static_cast<unsigned char>(0));
    case kAccessFlags:
      return Put(data, 3U);  // read and write
    case kPool:
      return Put(data, found.kind == MemoryKind::kPool ? PoolHandle(found.part) : nullptr);
    default:
      return Error::kNotSupported;
  }
}

}  // namespace

ASHLAR_SURFACE int cuPointerGetAttribute(void* data, int attribute, std::uint64_t address) {
  ASHLAR_NEEDS_INIT();
  if (data == nullptr) return Number(Error::kInvalidValue);
  const int error = Driven([&](Process& process) { return GetAttribute(process, data, attribute, address); });
  if (error == Number(Error::kNotSupported)) CountRefused("cuPointerGetAttribute");
  return error;
}

// An attribute that an address has not is zero (cuPointerGetAttributes).
ASHLAR_SURFACE int cuPointerGetAttributes(unsigned count, const int* attributes, void** data, std::uint64_t address) {
  ASHLAR_NEEDS_INIT();
  if (attributes == nullptr || data == nullptr) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) {
    for (unsigned i = 0; i < count; ++i) {
      const bool is_wide = attributes[i] == kContext || attributes[i] == kDevicePointer ||
                           attributes[i] == kHostPointer || attributes[i] == kBufferId ||
                           attributes[i] == kRangeStart || attributes[i] == kRangeSize;
      if (GetAttribute(process, data[i], attributes[i], address) == Error::kNone) continue;
      std::memset(data[i], 0, is_wide ? 8 : 4);
    }
    return Error::kNone;
  });
}

// Copies are done when they are given, with and without CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
ASHLAR_SURFACE int cuPointerSetAttribute(const void*, int attribute, std::uint64_t) {
  return AfterInit([=] { return attribute == kSyncMemops ? Error::kNone : Error::kInvalidValue; });
}
