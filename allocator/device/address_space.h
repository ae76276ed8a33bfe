// A set of free address ranges with first fit from one end: the documented address rule of the simulated device.
//
//   ascending    the lowest free address that has room
//   descending   the highest: the top of the highest free range that has room
//   driver       not a space's: driver_addresses.h
#ifndef ASHLAR_ALLOCATOR_DEVICE_ADDRESS_SPACE_H_
#define ASHLAR_ALLOCATOR_DEVICE_ADDRESS_SPACE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace ashlar::device {

enum class AddressOrder : std::uint8_t { kAscending, kDescending, kDriver };
// By the names above; nothing where it is none of them.
std::optional<AddressOrder> AddressOrderNamed(std::string_view name);

class AddressSpace {
 public:
  // All of [begin, end) is free.
  AddressSpace(std::uint64_t begin, std::uint64_t end, AddressOrder order);

  // The address taken, at or above `lowest` and a multiple of `alignment_bytes`, a power of two; nothing when no free
  // range has room there.
  std::optional<std::uint64_t> Take(std::uint64_t size_bytes, std::uint64_t lowest = 0,
                                    std::uint64_t alignment_bytes = 1);
  // Takes exactly [address, address + size_bytes); false when any of it is taken or outside the space.
  bool TakeAt(std::uint64_t address, std::uint64_t size_bytes);
  void Give(std::uint64_t address, std::uint64_t size_bytes);

 private:
  void TakeFrom(std::map<std::uint64_t, std::uint64_t>::iterator range, std::uint64_t address,
                std::uint64_t size_bytes);

  std::map<std::uint64_t, std::uint64_t> free_;  // begin -> end
  AddressOrder order_;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_ADDRESS_SPACE_H_
