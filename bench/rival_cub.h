// A rival: cub::CachingDeviceAllocator of the CUDA toolkit that the build found, unchanged, over a CUDA of our own
// whose calls cost nothing or, for those on events, a given time. It keeps power-of-`growth` bins, neither splits nor
// merges, and records an event at every free. The cache is unlimited unless told (CUB's default object keeps 6 MB and
// goes to the driver for the rest).
//
//   RivalCub cub({.growth = 2, .min_bin = 9, .max_bin = 31});  // 512 B to 2 GiB
//   cub.Free(cub.Allocate(300 * kKiB, Stream{0}));
//
// Thread-safe, as CUB is. Built only where the toolkit is found (ASHLAR_BENCH_CUB).
#ifndef ASHLAR_BENCH_RIVAL_CUB_H_
#define ASHLAR_BENCH_RIVAL_CUB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "allocator/base/units.h"

namespace ashlar::bench {

struct RivalCubOptions {
  unsigned growth = 2;
  unsigned min_bin = 9;
  unsigned max_bin = 31;
  int event_ns = 0;                                     // of each record and query; of the latest object, for all
  std::uint64_t most_cached_bytes = ~std::uint64_t{0};  // free blocks beyond it go back to the driver
  std::uint64_t capacity_bytes = ~std::uint64_t{0};     // of the device; of the latest object, for all
};

class RivalCub {
 public:
  explicit RivalCub(RivalCubOptions options);
  ~RivalCub();
  RivalCub(const RivalCub&) = delete;
  RivalCub& operator=(const RivalCub&) = delete;

  // bytes > 0. 0 where the device has no memory left.
  std::uint64_t Allocate(std::uint64_t bytes, Stream stream);
  // `address` is that of a live block.
  void Free(std::uint64_t address);

  // "300001" is 3.0.1.
  static std::string Version();
  // Sum of the bins' sizes.
  std::int64_t live_bytes() const;
  // What CUB holds of the device, and its calls for that; of the latest object.
  static std::uint64_t reserved_bytes();
  static std::uint64_t peak_reserved_bytes();
  static std::uint64_t driver_calls();
  // The size of the bin for a request.
  std::uint64_t BinBytes(std::uint64_t bytes) const;

 private:
  struct Impl;
  const RivalCubOptions options_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_RIVAL_CUB_H_
