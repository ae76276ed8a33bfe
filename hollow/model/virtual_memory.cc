#include "hollow/model/virtual_memory.h"

#include <iterator>
#include <utility>

namespace ashlar::hollow {

using device::MemoryVerdict;

Error VirtualMemory::Create(int device, std::uint64_t size_bytes, std::uint64_t* handle) {
  if (size_bytes == 0 || size_bytes % (2 * kMiB) != 0) return Error::kInvalidValue;
  if (device != kHostMemory) {
    if (const Error error = devices_[device]->Charge(size_bytes); error != Error::kNone) return error;
  }
  *handle = next_handle_++;
  handles_.emplace(*handle, Handle{{device, size_bytes}});
  return Error::kNone;
}

std::uint64_t VirtualMemory::Import(int device, std::uint64_t size_bytes) {
  handles_.emplace(next_handle_, Handle{{device, size_bytes}, 1, 0, true});
  return next_handle_++;
}

Error VirtualMemory::Retain(std::uint64_t address, std::uint64_t* handle) {
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin()) return Error::kInvalidValue;
  --mapping;
  if (address - mapping->first >= mapping->second.size_bytes) return Error::kInvalidValue;
  ++handles_.at(mapping->second.handle).references;
  *handle = mapping->second.handle;
  return Error::kNone;
}

Error VirtualMemory::Release(std::uint64_t handle) {
  const auto it = handles_.find(handle);
  if (it == handles_.end() || it->second.references == 0) return Error::kInvalidValue;
  --it->second.references;
  ReturnIfUnused(it);
  return Error::kNone;
}

void VirtualMemory::ReturnIfUnused(std::map<std::uint64_t, Handle>::iterator handle) {
  const Handle& known = handle->second;
  if (known.references > 0 || known.mappings > 0) return;
  if (!known.is_imported && known.info.device != kHostMemory) {
    devices_[known.info.device]->Discharge(known.info.size_bytes);
  }
  handles_.erase(handle);
}

Error VirtualMemory::Reserve(int device, std::uint64_t size_bytes, std::uint64_t alignment_bytes,
                             std::uint64_t* address) {
  if (size_bytes == 0 || (alignment_bytes & (alignment_bytes - 1)) != 0) return Error::kInvalidValue;
  const device::PlacedMemory placed =
      devices_[device]->addresses().Reserve(size_bytes, alignment_bytes == 0 ? 1 : alignment_bytes);
  if (placed.verdict != MemoryVerdict::kDone) return Error::kOutOfMemory;
  *address = placed.address;
  reservations_.emplace(placed.address, Reservation{size_bytes, device});
  return Error::kNone;
}

Error VirtualMemory::FreeReservation(std::uint64_t address, std::uint64_t size_bytes) {
  const auto it = reservations_.find(address);
  if (it == reservations_.end() || it->second.size_bytes != size_bytes) return Error::kInvalidValue;
  const MemoryVerdict verdict = devices_[it->second.device]->addresses().ReleaseReservation(address);
  if (verdict != MemoryVerdict::kDone) return Error::kInvalidValue;
  reservations_.erase(it);
  return Error::kNone;
}

const VirtualMemory::Reservation* VirtualMemory::Holding(std::uint64_t address) const {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return nullptr;
  --it;
  return address - it->first < it->second.size_bytes ? &it->second : nullptr;
}

Error VirtualMemory::Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t offset, std::uint64_t handle) {
  const auto it = handles_.find(handle);
  const Reservation* reservation = Holding(address);
  if (it == handles_.end() || it->second.references == 0 || reservation == nullptr) return Error::kInvalidValue;
  Handle& known = it->second;
  const bool fits = offset <= known.info.size_bytes && size_bytes <= known.info.size_bytes - offset;
  if (!fits || size_bytes == 0) return Error::kInvalidValue;
  const MemoryVerdict verdict = devices_[reservation->device]->addresses().TakePages(address, size_bytes);
  if (verdict != MemoryVerdict::kDone) return Error::kInvalidValue;
  ++known.mappings;
  mappings_.emplace(address, Mapping{size_bytes, handle, {}});
  allocations_.Add({address, size_bytes, MemoryKind::kMapped, known.info.device, 0, handle});
  return Error::kNone;
}

std::pair<std::map<std::uint64_t, VirtualMemory::Mapping>::iterator,
          std::map<std::uint64_t, VirtualMemory::Mapping>::iterator>
VirtualMemory::Whole(std::uint64_t address, std::uint64_t size_bytes) {
  const std::uint64_t end = address + size_bytes;
  const auto first = mappings_.find(address);
  std::uint64_t reached = address;
  auto it = first;
  for (; it != mappings_.end() && it->first == reached && reached < end; ++it) reached += it->second.size_bytes;
  if (reached != end) return {mappings_.end(), mappings_.end()};
  return {first, it};
}

Error VirtualMemory::Unmap(std::uint64_t address, std::uint64_t size_bytes) {
  const Reservation* reservation = Holding(address);
  if (size_bytes == 0 || reservation == nullptr) return Error::kInvalidValue;
  const std::uint64_t end = address + size_bytes;
  auto first = mappings_.upper_bound(address);
  if (first != mappings_.begin()) {
    const auto before = std::prev(first);
    if (before->first == address) {
      first = before;
    } else if (before->first + before->second.size_bytes > address) {
      return Error::kInvalidValue;  // a part of a mapping
    }
  }
  auto last = first;
  for (; last != mappings_.end() && last->first < end; ++last) {
    if (last->first + last->second.size_bytes > end) return Error::kInvalidValue;
  }
  for (auto it = first; it != last; it = mappings_.erase(it)) {
    devices_[reservation->device]->addresses().GivePages(it->first, it->second.size_bytes);
    allocations_.Remove(it->first);
    const auto handle = handles_.find(it->second.handle);
    --handle->second.mappings;
    ReturnIfUnused(handle);
  }
  return Error::kNone;
}

Error VirtualMemory::SetAccess(std::uint64_t address, std::uint64_t size_bytes, int device, int flags) {
  const auto [first, last] = Whole(address, size_bytes);
  if (first == last) return Error::kInvalidValue;
  for (auto it = first; it != last; ++it) it->second.access[device] = flags;
  return Error::kNone;
}

Error VirtualMemory::GetAccess(std::uint64_t address, int device, int* flags) const {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return Error::kInvalidValue;
  --it;
  if (address - it->first >= it->second.size_bytes) return Error::kInvalidValue;
  const auto access = it->second.access.find(device);
  *flags = access == it->second.access.end() ? 0 : access->second;
  return Error::kNone;
}

Error VirtualMemory::Describe(std::uint64_t handle, HandleInfo* info) const {
  const auto it = handles_.find(handle);
  if (it == handles_.end()) return Error::kInvalidValue;
  *info = it->second.info;
  return Error::kNone;
}

void VirtualMemory::DropDevice(int device) {
  for (auto it = mappings_.begin(); it != mappings_.end();) {
    const int place = Holding(it->first)->device;
    const auto handle = handles_.find(it->second.handle);
    if (handle->second.info.device != device && place != device) {
      ++it;
      continue;
    }
    devices_[place]->addresses().GivePages(it->first, it->second.size_bytes);
    allocations_.Remove(it->first);
    --handle->second.mappings;
    if (handle->second.info.device != device) ReturnIfUnused(handle);
    it = mappings_.erase(it);
  }
  std::erase_if(reservations_, [&](const auto& entry) { return entry.second.device == device; });
  std::erase_if(handles_, [&](const auto& entry) { return entry.second.info.device == device; });
}

}  // namespace ashlar::hollow
