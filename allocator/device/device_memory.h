// The memory of one device that is not there, as a model: capacity, granularity, addresses, virtual memory. The
// simulated device and the hollow one keep theirs here, so that both answer by the same rules.
//
//   AllocateSegment(n)  n rounded up to the granularity is charged against the capacity; the address is the first
//                       fit of AddressOrder at or above `base_address`; of `driver`, what driver_addresses.h says
//   Reserve(n)          the same rule, always ascending, at or above `base_address` + `reservations_offset`; charges
//                       nothing
//   Charge(n)           memory without an address: what is mapped, contexts
//   TakePages           pages of a reservation get memory behind them; charges nothing, since handles are charged
//
// A refused call changes nothing. Errors are verdicts, which the owner turns into a status, a CUDA error or an abort.
// Thread rule: not thread-safe. Built of the standard library alone, since programs that bring other libraries load it.
#ifndef ASHLAR_ALLOCATOR_DEVICE_DEVICE_MEMORY_H_
#define ASHLAR_ALLOCATOR_DEVICE_DEVICE_MEMORY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "allocator/device/address_space.h"
#include "allocator/device/driver_addresses.h"
#include "ashlar/units.h"

namespace ashlar::device {

struct DeviceMemoryOptions {
  std::uint64_t capacity_bytes = std::uint64_t{80} * kGiB;
  std::uint64_t granularity_bytes = 2 * kMiB;
  std::uint64_t base_address = 0x7f0000000000;
  std::uint64_t reservations_offset = std::uint64_t{1} << 44;
  std::uint64_t end_address = std::uint64_t{1} << 62;
  AddressOrder address_order = AddressOrder::kAscending;
  // Where the next segment or reservation goes, for replays of recorded addresses; nothing = the rule above. With it,
  // kDriver is kDescending: recorded addresses say where the driver's regions were.
  std::function<std::optional<std::uint64_t>(std::uint64_t size_bytes)> recorded_address = {};
};

enum class MemoryVerdict : std::uint8_t {
  kDone,
  kOutOfMemory,     // more than is free
  kOutOfAddresses,  // no range has room
  kTaken,           // of an exact place: outside the space, or not free
  kUnknown,         // no such segment or reservation, or not all of the range is in one
  kInUse,           // pages lie in the reservation
};

struct PlacedMemory {
  MemoryVerdict verdict = MemoryVerdict::kDone;
  std::uint64_t address = 0;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(DeviceMemoryOptions options);

  PlacedMemory AllocateSegment(std::uint64_t size_bytes);
  MemoryVerdict FreeSegment(std::uint64_t address);
  // The address is a multiple of `alignment_bytes`, a power of two.
  PlacedMemory Reserve(std::uint64_t size_bytes, std::uint64_t alignment_bytes = 1);
  MemoryVerdict ReleaseReservation(std::uint64_t address);
  MemoryVerdict TakePages(std::uint64_t address, std::uint64_t size_bytes);
  MemoryVerdict GivePages(std::uint64_t address, std::uint64_t size_bytes);
  MemoryVerdict Charge(std::uint64_t size_bytes);
  // Addresses that the driver takes for itself among its segments, charged by nobody here; nothing where the order is
  // not the driver's. They are given back as they were taken.
  std::optional<std::uint64_t> HoldAddresses(std::uint64_t size_bytes);
  void ReturnAddresses(std::uint64_t address, std::uint64_t size_bytes);
  void Discharge(std::uint64_t size_bytes) { used_ -= size_bytes; }

  // What is there before a replay begins: charged at its recorded place, also beyond the capacity. Not of a driver's
  // order.
  MemoryVerdict AdoptSegment(std::uint64_t address, std::uint64_t size_bytes);
  MemoryVerdict AdoptReservation(std::uint64_t address, std::uint64_t size_bytes);
  MemoryVerdict AdoptPages(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes);

  void SetCapacity(std::uint64_t bytes) { options_.capacity_bytes = bytes; }
  std::uint64_t capacity_bytes() const { return options_.capacity_bytes; }
  std::uint64_t granularity_bytes() const { return options_.granularity_bytes; }
  std::uint64_t used_bytes() const { return used_; }
  // 0 where what was adopted is more than the capacity.
  std::uint64_t FreeBytes() const { return used_ > options_.capacity_bytes ? 0 : options_.capacity_bytes - used_; }

 private:
  struct Reservation {
    std::uint64_t size_bytes = 0;
    std::uint64_t mapped_bytes = 0;
    AddressSpace unmapped;
  };
  void AddReservation(std::uint64_t address, std::uint64_t size_bytes);
  Reservation* FindReservation(std::uint64_t address, std::uint64_t size_bytes);
  PlacedMemory Place(AddressSpace& space, std::uint64_t size_bytes, std::uint64_t lowest,
                     std::uint64_t alignment_bytes);
  PlacedMemory PlaceByDriver(std::uint64_t size_bytes);

  DeviceMemoryOptions options_;
  AddressSpace segments_space_;
  std::optional<DriverAddresses> driver_;  // instead of segments_space_
  AddressSpace reservations_space_;
  std::map<std::uint64_t, std::uint64_t> segments_;  // address -> charged bytes
  std::map<std::uint64_t, Reservation> reservations_;
  std::uint64_t used_ = 0;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_DEVICE_MEMORY_H_
