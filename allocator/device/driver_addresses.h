// Where NVIDIA's driver puts the memory of cudaMalloc, as 11 recorded runs of PyTorch on an H200 show (driver
// 580.159.04; docs/measurements/h200.md says how many of their addresses this rule gives):
//
//   region    addresses are taken in regions of a multiple of 32 MiB, as many as the segment needs, that begin on one:
//             the top of the highest free range that has room for the region and for what aligning it may waste
//   segment   the lowest place of all regions that has room, else in a new region; it never crosses regions
//   freed     a region with nothing in it goes back, and may become part of another
//   context   begins with a region of 512 MiB at the top. The driver holds 78 MiB near its end, and until the first
//             segment is there all before that; then it takes 26 MiB more, and gives those back
//
//      low                                                                                       high
//      ...| region: 20 | 12 free | region: 38 | 26 free | held: 26 | 6 free | context: 412 free | held | 20 free |
//
// The driver's own memory lies among it: its owner takes what is known of it as a segment. What a program's libraries
// and threads map on the host lies between regions: it moves them, and leaves their order but for holes. Thread rule:
// not thread-safe.
#ifndef ASHLAR_ALLOCATOR_DEVICE_DRIVER_ADDRESSES_H_
#define ASHLAR_ALLOCATOR_DEVICE_DRIVER_ADDRESSES_H_

#include <cstdint>
#include <map>
#include <optional>

#include "allocator/device/address_space.h"

namespace ashlar::device {

class DriverAddresses {
 public:
  // All of [begin, end) is the device's.
  DriverAddresses(std::uint64_t begin, std::uint64_t end);

  // The address taken; nothing when no free range has room. `size_bytes` is a multiple of the device's granularity.
  std::optional<std::uint64_t> Take(std::uint64_t size_bytes);
  // What Take gave, as it gave it.
  void Give(std::uint64_t address, std::uint64_t size_bytes);

 private:
  struct Region {
    std::uint64_t end = 0;
    std::uint64_t free_bytes = 0;
  };
  using Regions = std::map<std::uint64_t, Region>;  // by their begin

  std::optional<std::uint64_t> PlaceIn(const Regions::value_type& region, std::uint64_t size_bytes) const;
  // A region of at least so many bytes, at the top; end() where there is no room.
  Regions::iterator Grow(std::uint64_t size_bytes);
  void Put(Regions::iterator region, std::uint64_t address, std::uint64_t size_bytes);

  AddressSpace free_;  // of regions
  Regions regions_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // begin -> end
  std::optional<std::uint64_t> held_at_first_;    // until the first segment is there
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_DRIVER_ADDRESSES_H_
