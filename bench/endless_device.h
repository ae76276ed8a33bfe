// A simulated device that never runs out, so that the ladder's releasing rungs stay out of the measurements.
#ifndef ASHLAR_BENCH_ENDLESS_DEVICE_H_
#define ASHLAR_BENCH_ENDLESS_DEVICE_H_

#include <cstdint>

#include "allocator/device/sim_device.h"

namespace ashlar::bench {

inline device::SimDeviceOptions EndlessDevice() {
  device::SimDeviceOptions options;
  options.capacity_bytes = std::uint64_t{1} << 43;  // below the simulated device's address space of 2^44
  return options;
}

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_ENDLESS_DEVICE_H_
