// The virtual memory of the fake CUDA.
#include <sys/mman.h>

#include <iterator>
#include <string>

#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kMaxAddressSpace = std::uint64_t{1} << 47;

}  // namespace

void FakeCuda::RequirePlace(const char* call, const CudaLocation& location) const {
  Require(location.type == kCudaLocationDevice, call, "the memory is not a device's");
  Require(location.ordinal >= 0 && location.ordinal < options_.device_count, call, "there is no such device");
}

void FakeCuda::RequireKind(const char* call, const CudaAllocation& kind) const {
  RequirePlace(call, kind.location);
  const bool is_plain = kind.type == kCudaAllocationPinned && kind.win32_attributes == nullptr &&
                        kind.compression == 0 && kind.usage == 0 &&
                        (kind.handle_types & ~(kCudaHandlePosixFd | kCudaHandleFabric)) == 0;
  Require(is_plain, call, "this is no plain pinned memory");
}

int FakeCuda::MemGetGranularity(std::uint64_t* size_bytes, const CudaAllocation& kind, int option) {
  if (const auto code = Fails("cuMemGetAllocationGranularity")) return *code;
  RequireKind("cuMemGetAllocationGranularity", kind);
  Require(option == kCudaGranularityMinimum, "cuMemGetAllocationGranularity", "the option is not the minimum");
  last_kind_ = kind;
  *size_bytes = options_.granularity_bytes;
  return kCudaSuccess;
}

int FakeCuda::MemAddressReserve(std::uint64_t* address, std::uint64_t size_bytes, std::uint64_t alignment) {
  if (const auto code = Fails("cuMemAddressReserve")) return *code;
  Require(alignment == 0, "cuMemAddressReserve", "the alignment is not the default");
  if (size_bytes == 0 || size_bytes % options_.granularity_bytes != 0) return kCudaErrorInvalidValue;
  if (size_bytes > kMaxAddressSpace - next_address_) return kCudaErrorOutOfMemory;
  *address = next_address_;
  next_address_ += size_bytes + options_.granularity_bytes;
  reservations_[*address] = size_bytes;
  return kCudaSuccess;
}

int FakeCuda::MemAddressFree(std::uint64_t address, std::uint64_t size_bytes) {
  if (const auto code = Fails("cuMemAddressFree")) return *code;
  const auto it = reservations_.find(address);
  const bool is_whole = it != reservations_.end() && it->second == size_bytes;
  Require(is_whole, "cuMemAddressFree", "this is not a range that was reserved");
  const auto mapped = mappings_.lower_bound(address);
  const bool has_mapping = mapped != mappings_.end() && mapped->first < address + size_bytes;
  Require(!has_mapping, "cuMemAddressFree", "memory is still mapped in the range");
  reservations_.erase(it);
  return kCudaSuccess;
}

int FakeCuda::MemCreate(CudaHandle* handle, std::uint64_t size_bytes, const CudaAllocation& kind) {
  if (const auto code = Fails("cuMemCreate")) return *code;
  RequireKind("cuMemCreate", kind);
  last_kind_ = kind;
  if (size_bytes == 0 || size_bytes % options_.granularity_bytes != 0) return kCudaErrorInvalidValue;
  if (!Charge(kind.location.ordinal, size_bytes)) return kCudaErrorOutOfMemory;
  *handle = CudaHandle{next_id_++};
  memory_[*handle] = {size_bytes, kind.location.ordinal, false, 0, kind.handle_types};
  return kCudaSuccess;
}

// The memory goes when it is released and mapped nowhere, as CUDA's does.
void FakeCuda::Drop(CudaHandle handle) {
  const Memory& memory = memory_.at(handle);
  if (!memory.is_released || memory.map_count > 0) return;
  At(memory.ordinal).used_bytes -= memory.size_bytes;
  memory_.erase(handle);
}

int FakeCuda::MemExport(int* file, CudaHandle handle, int handle_type) {
  if (const auto code = Fails("cuMemExportToShareableHandle")) return *code;
  const auto it = memory_.find(handle);
  const bool may_be = it != memory_.end() && (it->second.handle_types & handle_type) == kCudaHandlePosixFd;
  Require(may_be, "cuMemExportToShareableHandle", "this memory was not made for it");
  *file = memfd_create("fake-cuda-memory", MFD_CLOEXEC);
  return *file < 0 ? kCudaErrorOutOfMemory : kCudaSuccess;
}

int FakeCuda::MemRelease(CudaHandle handle) {
  if (const auto code = Fails("cuMemRelease")) return *code;
  const auto it = memory_.find(handle);
  const bool is_live = it != memory_.end() && !it->second.is_released;
  Require(is_live, "cuMemRelease", "this handle does not exist, or was released");
  Require(it->second.map_count == 0, "cuMemRelease", "the handle's memory is still mapped");
  it->second.is_released = true;
  Drop(handle);
  return kCudaSuccess;
}

int FakeCuda::MemMap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t offset, CudaHandle handle) {
  if (const auto code = Fails("cuMemMap")) return *code;
  Require(offset == 0, "cuMemMap", "the driver maps a handle from its begin only");
  const auto memory = memory_.find(handle);
  const bool is_live = memory != memory_.end() && !memory->second.is_released;
  Require(is_live, "cuMemMap", "this handle does not exist, or was released");
  Require(memory->second.size_bytes == size_bytes, "cuMemMap", "the handle has another size");
  auto reservation = reservations_.upper_bound(address);
  Require(reservation != reservations_.begin(), "cuMemMap", "the range is not reserved");
  --reservation;
  Require(address + size_bytes <= reservation->first + reservation->second, "cuMemMap", "the range is not reserved");
  const auto behind = mappings_.lower_bound(address);
  Require(behind == mappings_.end() || behind->first >= address + size_bytes, "cuMemMap", "the range is mapped");
  const bool is_apart =
      behind == mappings_.begin() || std::prev(behind)->first + std::prev(behind)->second.size_bytes <= address;
  Require(is_apart, "cuMemMap", "the range is mapped");
  mappings_[address] = {size_bytes, handle, false};
  ++memory->second.map_count;
  return kCudaSuccess;
}

int FakeCuda::MemUnmap(std::uint64_t address, std::uint64_t size_bytes) {
  if (const auto code = Fails("cuMemUnmap")) return *code;
  RequireNoCapture("cuMemUnmap");
  const auto it = mappings_.find(address);
  const bool is_mapped = it != mappings_.end() && it->second.size_bytes == size_bytes;
  Require(is_mapped, "cuMemUnmap", "this range is not mapped as a whole");
  const CudaHandle handle = it->second.handle;
  mappings_.erase(it);
  --memory_.at(handle).map_count;
  Drop(handle);
  return kCudaSuccess;
}

int FakeCuda::MemSetAccess(std::uint64_t address, std::uint64_t size_bytes, const CudaAccess& access) {
  if (const auto code = Fails("cuMemSetAccess")) return *code;
  RequirePlace("cuMemSetAccess", access.location);
  Require(access.flags == kCudaAccessReadWrite, "cuMemSetAccess", "the device would not read and write");
  std::uint64_t at = address;
  while (at < address + size_bytes) {
    const auto it = mappings_.find(at);
    Require(it != mappings_.end(), "cuMemSetAccess", "a part of the range is not mapped");
    it->second.has_access = true;
    at += it->second.size_bytes;
  }
  Require(at == address + size_bytes, "cuMemSetAccess", "the range ends inside a mapping");
  return kCudaSuccess;
}

bool FakeCuda::IsAccessible(std::uint64_t address) const {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return false;
  --it;
  return address < it->first + it->second.size_bytes && it->second.has_access;
}

}  // namespace ashlar::device
