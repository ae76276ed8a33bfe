// Writes the counts. Without the variable nothing is counted. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SERVE_COUNTER_H_
#define ASHLAR_HOLLOW_SERVE_COUNTER_H_

#include <cstdint>

namespace ashlar::serve {

// What the serving library did in a process, in a file of its own, served-PID, of the folder that ASHLAR_SERVED names.
// It is memory of the file itself: it is there however the process ends. `ashlar run-under` reads it.
//
// Layout: kServedMagic, then the values of ServedCounts as 64 bits each, in their order.

inline constexpr char kServedMagic[16] = "ashlar-served 1";

struct ServedCounts {
  std::uint64_t served_allocations = 0;
  std::uint64_t served_frees = 0;
  std::uint64_t passed_allocations = 0;  // that went to the driver: not ours to serve, or there was no room
  std::uint64_t passed_frees = 0;
  // Of the allocators, as they were at the last request whose number is a multiple of kRefreshEvery, or at the end.
  std::uint64_t device_allocations = 0;
  std::uint64_t device_frees = 0;
  std::uint64_t allocated_bytes = 0;  // live
  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;
  std::uint64_t has_ended = 0;  // 1: by itself, so that the values above are those of the end
  std::uint64_t has_torch = 0;  // 1: PyTorch was in the process, which is left alone from then on
};

inline constexpr std::uint64_t kRefreshEvery = 256;

// One more of it.
void Count(std::uint64_t ServedCounts::*what);
// The child of a fork has a file of its own.
void CountAnew();

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_COUNTER_H_
