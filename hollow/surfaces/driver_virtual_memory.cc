// CUDA's driver: virtual memory. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/driver_call.h"

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
