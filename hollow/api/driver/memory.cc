// CUDA's driver: memory of devices and of the host, and what an address is. Source of the signatures: cuda.h of CUDA
// 11.8, 12.4 and 13.0.

#include "hollow/api/cuda/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "hollow/api/cuda/stream_work.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/api/driver/call.h"
#include "hollow/model/calling_library.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cuMemAlloc_v2(void** pointer, std::size_t bytes) {
  const CallFrom call(ASHLAR_CALLER);
  ASHLAR_NEEDS_INIT();
  if (bytes == 0) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) { return Allocate(process, bytes, MemoryKind::kDevice, pointer); });
}

ASHLAR_SURFACE int cuMemAllocManaged(void** pointer, std::size_t bytes, unsigned) {
  const CallFrom call(ASHLAR_CALLER);
  ASHLAR_NEEDS_INIT();
  if (bytes == 0) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) { return Allocate(process, bytes, MemoryKind::kManaged, pointer); });
}

ASHLAR_SURFACE int cuMemAllocPitch_v2(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height,
                                      unsigned) {
  const CallFrom call(ASHLAR_CALLER);
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
      return Put(data, is_managed ? 1U : 0U);  // CUDA's static runtime reads a word
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

// CUDA's driver: memory pools, ordered by streams. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cuMemAllocAsync(void** pointer, std::size_t bytes, void* stream) {
  const CallFrom call(ASHLAR_CALLER);
  return Driven([&](Process& process) {
    return AllocateFromPool(process, process.current_pools[CurrentDevice()], bytes, stream, pointer);
  });
}

ASHLAR_SURFACE int cuMemAllocFromPoolAsync(void** pointer, std::size_t bytes, void* pool, void* stream) {
  const CallFrom call(ASHLAR_CALLER);
  return Driven([&](Process& process) {
    const PoolModel* known = PoolOf(process, pool);
    if (known == nullptr) return Error::kInvalidValue;
    return AllocateFromPool(process, known->id(), bytes, stream, pointer);
  });
}

ASHLAR_SURFACE int cuMemFreeAsync(void* pointer, void* stream) {
  return Driven([&](Process& process) { return FreeAsync(process, pointer, stream); });
}

ASHLAR_SURFACE int cuMemPoolCreate(void** pool, const abi::PoolProps* props) {
  ASHLAR_NEEDS_INIT();
  if (props == nullptr) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) { return MakePool(process, *props, pool); });
}

ASHLAR_SURFACE int cuMemPoolDestroy(void* pool) {
  return Driven([&](Process& process) { return DestroyPool(process, pool); });
}

ASHLAR_SURFACE int cuMemPoolTrimTo(void* pool, std::size_t keep_bytes) {
  return Driven([&](Process& process) { return TrimPool(process, pool, keep_bytes); });
}

ASHLAR_SURFACE int cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return Driven([&](Process& process) { return SetPoolAttribute(process, pool, attribute, value); });
}

ASHLAR_SURFACE int cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return Driven([&](Process& process) { return GetPoolAttribute(process, pool, attribute, value); });
}

ASHLAR_SURFACE int cuMemPoolSetAccess(void* pool, const abi::AccessDesc* access, std::size_t count) {
  return Driven([&](Process& process) { return SetPoolAccess(process, pool, access, count); });
}

ASHLAR_SURFACE int cuMemPoolGetAccess(int* flags, void* pool, const abi::Location* location) {
  return Driven([&](Process& process) { return GetPoolAccess(process, pool, location, flags); });
}

ASHLAR_SURFACE int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return Driven([&](Process& process) { return DefaultPool(process, device, pool); });
}

ASHLAR_SURFACE int cuDeviceGetMemPool(void** pool, int device) {
  return Driven([&](Process& process) { return CurrentPool(process, device, pool); });
}

ASHLAR_SURFACE int cuDeviceSetMemPool(int device, void* pool) {
  return Driven([&](Process& process) { return SetCurrentPool(process, device, pool); });
}

ASHLAR_SURFACE int cuDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return Driven([&](Process& process) { return GetGraphMemory(process, device, attribute, value); });
}

ASHLAR_SURFACE int cuDeviceSetGraphMemAttribute(int device, int attribute, void*) {
  return Driven([&](Process& process) { return ResetGraphMemory(process, device, attribute); });
}

ASHLAR_SURFACE int cuDeviceGraphMemTrim(int device) {
  return Driven([&](Process& process) { return TrimGraphMemory(process, device); });
}

ASHLAR_SAME(cuMemAllocAsync_ptsz, cuMemAllocAsync);
ASHLAR_SAME(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);
ASHLAR_SAME(cuMemFreeAsync_ptsz, cuMemFreeAsync);

// CUDA's driver: virtual memory. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;  // minimum and recommended, of all devices so far
constexpr int kDeviceLocation = 1;                          // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kPinned = 1;                                  // CU_MEM_ALLOCATION_TYPE_PINNED
constexpr int kFileDescriptor = 1;                          // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr int kNoHandle = 0;                                // CU_MEM_HANDLE_TYPE_NONE

// What a file of an exported handle holds.
struct ExportedHandle {
  int device = 0;
  std::uint64_t size_bytes = 0;
};

}  // namespace

ASHLAR_SURFACE int cuMemGetAllocationGranularity(std::size_t* bytes, const abi::AllocationProp* prop, int option) {
  ASHLAR_NEEDS_INIT();
  if (bytes == nullptr || prop == nullptr || option < 0 || option > 1) return Number(Error::kInvalidValue);
  *bytes = kGranularity;
  return 0;
}

ASHLAR_SURFACE int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const abi::AllocationProp* prop,
                               unsigned long long flags) {
  return Driven([&](Process& process) {
    if (handle == nullptr || prop == nullptr || flags != 0 || prop->type != kPinned) return Error::kInvalidValue;
    const bool is_on_device = prop->location.type == kDeviceLocation;
    if (is_on_device && !IsDevice(process, prop->location.id)) return Error::kInvalidDevice;
    if (prop->handle_types != kNoHandle && prop->handle_types != kFileDescriptor) return Error::kNotSupported;
    const int device = is_on_device ? prop->location.id : kHostMemory;
    if (is_on_device) {
      if (const Error error = UseDevice(process, device); error != Error::kNone) return error;
    }
    const Error error = process.virtual_memory.Create(device, bytes, handle);
    if (is_on_device) process.TellCall("create", device, bytes, error == Error::kNone ? *handle : 0, error);
    return error;
  });
}

ASHLAR_SURFACE int cuMemRelease(std::uint64_t handle) {
  return Driven([&](Process& process) {
    VirtualMemory::HandleInfo info;
    const bool is_known = process.virtual_memory.Describe(handle, &info) == Error::kNone;
    const Error error = process.virtual_memory.Release(handle);
    if (is_known && info.device != kHostMemory)
      process.TellCall("release", info.device, info.size_bytes, handle, error);
    return error;
  });
}

ASHLAR_SURFACE int cuMemRetainAllocationHandle(std::uint64_t* handle, std::uint64_t address) {
  return Driven([&](Process& process) {
    return handle == nullptr ? Error::kInvalidValue : process.virtual_memory.Retain(address, handle);
  });
}

ASHLAR_SURFACE int cuMemAddressReserve(std::uint64_t* address, std::size_t bytes, std::size_t alignment, std::uint64_t,
                                       unsigned long long flags) {
  return Driven([&](Process& process) {
    if (address == nullptr || flags != 0) return Error::kInvalidValue;
    const Error error = process.virtual_memory.Reserve(CurrentDevice(), bytes, alignment, address);
    process.TellCall("reserve", CurrentDevice(), bytes, error == Error::kNone ? *address : 0, error);
    return error;
  });
}

ASHLAR_SURFACE int cuMemAddressFree(std::uint64_t address, std::size_t bytes) {
  return Driven([&](Process& process) {
    const Error error = process.virtual_memory.FreeReservation(address, bytes);
    process.TellCall("unreserve", CurrentDevice(), bytes, address, error);
    return error;
  });
}

ASHLAR_SURFACE int cuMemMap(std::uint64_t address, std::size_t bytes, std::size_t offset, std::uint64_t handle,
                            unsigned long long flags) {
  const CallFrom call(ASHLAR_CALLER);
  ASHLAR_NEEDS_INIT();
  if (flags != 0) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) {
    const Error error = process.virtual_memory.Map(address, bytes, offset, handle);
    process.TellCall("map", CurrentDevice(), bytes, address, error);
    return error;
  });
}

ASHLAR_SURFACE int cuMemUnmap(std::uint64_t address, std::size_t bytes) {
  return Driven([&](Process& process) {
    const Error error = process.virtual_memory.Unmap(address, bytes);
    if (error == Error::kNone) ForgetBytes(process, address, bytes);
    process.TellCall("unmap", CurrentDevice(), bytes, address, error);
    return error;
  });
}

ASHLAR_SURFACE int cuMemSetAccess(std::uint64_t address, std::size_t bytes, const abi::AccessDesc* access,
                                  std::size_t count) {
  return Driven([&](Process& process) {
    if (access == nullptr || count == 0) return Error::kInvalidValue;
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_device = access[i].location.type == kDeviceLocation;
      if (is_device && !IsDevice(process, access[i].location.id)) return Error::kInvalidDevice;
      const int device = is_device ? access[i].location.id : kHostMemory;
      const Error error = process.virtual_memory.SetAccess(address, bytes, device, access[i].flags);
      if (is_device) process.TellCall("set_access", device, bytes, address, error);
      if (error != Error::kNone) return error;
    }
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuMemGetAccess(unsigned long long* flags, const abi::Location* location, std::uint64_t address) {
  return Driven([&](Process& process) {
    if (flags == nullptr || location == nullptr) return Error::kInvalidValue;
    int known = 0;
    const Error error = process.virtual_memory.GetAccess(address, location->id, &known);
    if (error == Error::kNone) *flags = static_cast<unsigned long long>(known);
    return error;
  });
}

ASHLAR_SURFACE int cuMemGetAllocationPropertiesFromHandle(abi::AllocationProp* prop, std::uint64_t handle) {
  return Driven([&](Process& process) {
    if (prop == nullptr) return Error::kInvalidValue;
    VirtualMemory::HandleInfo info;
    if (const Error error = process.virtual_memory.Describe(handle, &info); error != Error::kNone) return error;
    *prop = {};
    prop->type = kPinned;
    prop->handle_types = kFileDescriptor;
    prop->location = {info.device == kHostMemory ? 2 : kDeviceLocation, info.device == kHostMemory ? 0 : info.device};
    return Error::kNone;
  });
}

// A file that says how large the memory is and of which device: whoever is given it may map the same.
ASHLAR_SURFACE int cuMemExportToShareableHandle(int* file, std::uint64_t handle, int type, unsigned long long flags) {
  ASHLAR_NEEDS_INIT();
  if (type != kFileDescriptor) {
    CountRefused("cuMemExportToShareableHandle");
    return Number(Error::kNotSupported);
  }
  return Driven([&](Process& process) {
    if (file == nullptr || flags != 0) return Error::kInvalidValue;
    VirtualMemory::HandleInfo info;
    if (const Error error = process.virtual_memory.Describe(handle, &info); error != Error::kNone) return error;
    const ExportedHandle exported = {info.device, info.size_bytes};
    const int made = memfd_create("ashlar-hollow-memory", MFD_CLOEXEC);
    if (made < 0) return Error::kUnknown;
    if (pwrite(made, &exported, sizeof(exported), 0) != sizeof(exported)) {
      close(made);
      return Error::kUnknown;
    }
    *file = made;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuMemImportFromShareableHandle(std::uint64_t* handle, void* file, int type) {
  ASHLAR_NEEDS_INIT();
  if (type != kFileDescriptor) {
    CountRefused("cuMemImportFromShareableHandle");
    return Number(Error::kNotSupported);
  }
  return Driven([&](Process& process) {
    ExportedHandle exported;
    const int from = static_cast<int>(AddressOf(file));
    if (handle == nullptr || pread(from, &exported, sizeof(exported), 0) != sizeof(exported)) {
      return Error::kInvalidValue;
    }
    *handle = process.virtual_memory.Import(exported.device, exported.size_bytes);
    return Error::kNone;
  });
}
