// The addresses of all devices: host addresses of one reservation without backing, so that a stray read of the host
// sees zeros, and untouched memory costs nothing.
#ifndef ASHLAR_HOLLOW_LAUNCH_ARENA_H_
#define ASHLAR_HOLLOW_LAUNCH_ARENA_H_

#include <cstdint>

namespace ashlar::hollow {

struct Arena {
  std::uint64_t base_address = 0;
  std::uint64_t device_bytes = 0;  // addresses of each device
  int devices = 1;
  std::uint64_t total_bytes() const { return device_bytes * static_cast<std::uint64_t>(devices); }
};

// Reserves the addresses of `devices` devices; ends the process with one line where the system gives none.
Arena ReserveArena(int devices);

// The bytes from `address` on are zero and cost no memory any more; only whole pages are returned.
void DropPages(std::uint64_t address, std::uint64_t bytes);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_LAUNCH_ARENA_H_
