#include "allocator/device/device_memory.h"

#include <iterator>
#include <utility>

namespace ashlar::device {
namespace {

// `value` up to a multiple of `step`; both are below 2^63.
constexpr std::uint64_t UpTo(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

// Recorded addresses may lie anywhere; invented ones start at the base address plus `offset`.
std::uint64_t LowestAddress(const DeviceMemoryOptions& options, std::uint64_t offset) {
  return options.recorded_address ? 1 : options.base_address + offset;
}

}  // namespace

DeviceMemory::DeviceMemory(DeviceMemoryOptions options)
    : options_(std::move(options)),
      segments_space_(
          LowestAddress(options_, 0),
          options_.recorded_address ? options_.end_address : options_.base_address + options_.reservations_offset,
          options_.address_order),
      reservations_space_(LowestAddress(options_, options_.reservations_offset), options_.end_address,
                          AddressOrder::kAscending) {
  if (options_.address_order != AddressOrder::kDriver || options_.recorded_address) return;
  driver_.emplace(options_.base_address, options_.base_address + options_.reservations_offset);
}

PlacedMemory DeviceMemory::Place(AddressSpace& space, std::uint64_t size_bytes, std::uint64_t lowest,
                                 std::uint64_t alignment_bytes) {
  if (options_.recorded_address) {
    const std::optional<std::uint64_t> recorded = options_.recorded_address(size_bytes);
    if (recorded.has_value() && space.TakeAt(*recorded, size_bytes)) return {MemoryVerdict::kDone, *recorded};
  }
  const std::optional<std::uint64_t> address = space.Take(size_bytes, lowest, alignment_bytes);
  if (!address.has_value()) return {MemoryVerdict::kOutOfAddresses, 0};
  return {MemoryVerdict::kDone, *address};
}

PlacedMemory DeviceMemory::PlaceByDriver(std::uint64_t size_bytes) {
  const std::optional<std::uint64_t> address = driver_->Take(size_bytes);
  if (!address.has_value()) return {MemoryVerdict::kOutOfAddresses, 0};
  return {MemoryVerdict::kDone, *address};
}

PlacedMemory DeviceMemory::AllocateSegment(std::uint64_t size_bytes) {
  const std::uint64_t free_bytes = FreeBytes();
  if (size_bytes > free_bytes || UpTo(size_bytes, options_.granularity_bytes) > free_bytes) {
    return {MemoryVerdict::kOutOfMemory, 0};
  }
  const std::uint64_t charged = UpTo(size_bytes, options_.granularity_bytes);
  const PlacedMemory placed =
      driver_.has_value() ? PlaceByDriver(charged) : Place(segments_space_, charged, options_.base_address, 1);
  if (placed.verdict != MemoryVerdict::kDone) return placed;
  used_ += charged;
  segments_.emplace(placed.address, charged);
  return placed;
}

MemoryVerdict DeviceMemory::FreeSegment(std::uint64_t address) {
  const auto it = segments_.find(address);
  if (it == segments_.end()) return MemoryVerdict::kUnknown;
  used_ -= it->second;
  if (driver_.has_value()) {
    driver_->Give(address, it->second);
  } else {
    segments_space_.Give(address, it->second);
  }
  segments_.erase(it);
  return MemoryVerdict::kDone;
}

PlacedMemory DeviceMemory::Reserve(std::uint64_t size_bytes, std::uint64_t alignment_bytes) {
  const std::uint64_t rounded = UpTo(size_bytes, options_.granularity_bytes);
  const PlacedMemory placed =
      Place(reservations_space_, rounded, options_.base_address + options_.reservations_offset, alignment_bytes);
  if (placed.verdict == MemoryVerdict::kDone) AddReservation(placed.address, rounded);
  return placed;
}

MemoryVerdict DeviceMemory::ReleaseReservation(std::uint64_t address) {
  const auto it = reservations_.find(address);
  if (it == reservations_.end()) return MemoryVerdict::kUnknown;
  if (it->second.mapped_bytes != 0) return MemoryVerdict::kInUse;
  reservations_space_.Give(address, it->second.size_bytes);
  reservations_.erase(it);
  return MemoryVerdict::kDone;
}

void DeviceMemory::AddReservation(std::uint64_t address, std::uint64_t size_bytes) {
  AddressSpace unmapped(address, address + size_bytes, AddressOrder::kAscending);
  reservations_.emplace(address, Reservation{size_bytes, 0, std::move(unmapped)});
}

DeviceMemory::Reservation* DeviceMemory::FindReservation(std::uint64_t address, std::uint64_t size_bytes) {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return nullptr;
  --it;
  const std::uint64_t offset = address - it->first;
  const bool is_inside = offset <= it->second.size_bytes && size_bytes <= it->second.size_bytes - offset;
  return is_inside ? &it->second : nullptr;
}

MemoryVerdict DeviceMemory::TakePages(std::uint64_t address, std::uint64_t size_bytes) {
  Reservation* reservation = FindReservation(address, size_bytes);
  if (reservation == nullptr) return MemoryVerdict::kUnknown;
  if (!reservation->unmapped.TakeAt(address, size_bytes)) return MemoryVerdict::kTaken;
  reservation->mapped_bytes += size_bytes;
  return MemoryVerdict::kDone;
}

MemoryVerdict DeviceMemory::GivePages(std::uint64_t address, std::uint64_t size_bytes) {
  Reservation* reservation = FindReservation(address, size_bytes);
  if (reservation == nullptr || size_bytes > reservation->mapped_bytes) return MemoryVerdict::kUnknown;
  reservation->unmapped.Give(address, size_bytes);
  reservation->mapped_bytes -= size_bytes;
  return MemoryVerdict::kDone;
}

MemoryVerdict DeviceMemory::Charge(std::uint64_t size_bytes) {
  if (size_bytes > FreeBytes()) return MemoryVerdict::kOutOfMemory;
  used_ += size_bytes;
  return MemoryVerdict::kDone;
}

std::optional<std::uint64_t> DeviceMemory::HoldAddresses(std::uint64_t size_bytes) {
  return driver_.has_value() ? driver_->Take(UpTo(size_bytes, options_.granularity_bytes)) : std::nullopt;
}

void DeviceMemory::ReturnAddresses(std::uint64_t address, std::uint64_t size_bytes) {
  driver_->Give(address, UpTo(size_bytes, options_.granularity_bytes));
}

MemoryVerdict DeviceMemory::AdoptSegment(std::uint64_t address, std::uint64_t size_bytes) {
  if (driver_.has_value() || !segments_space_.TakeAt(address, size_bytes)) return MemoryVerdict::kTaken;
  used_ += size_bytes;
  segments_.emplace(address, size_bytes);
  return MemoryVerdict::kDone;
}

MemoryVerdict DeviceMemory::AdoptReservation(std::uint64_t address, std::uint64_t size_bytes) {
  if (!reservations_space_.TakeAt(address, size_bytes)) return MemoryVerdict::kTaken;
  AddReservation(address, size_bytes);
  return MemoryVerdict::kDone;
}

MemoryVerdict DeviceMemory::AdoptPages(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  const auto after = reservations_.upper_bound(address);
  if (FindReservation(address, size_bytes) == nullptr) return MemoryVerdict::kUnknown;
  const std::uint64_t begin = std::prev(after)->first;
  if ((address - begin) % page_bytes != 0 || size_bytes % page_bytes != 0) return MemoryVerdict::kTaken;
  const MemoryVerdict verdict = TakePages(address, size_bytes);
  if (verdict == MemoryVerdict::kDone) used_ += size_bytes;
  return verdict;
}

}  // namespace ashlar::device
