// The device seam (ashlar/device.h), by the names that the devices behind it use.
#ifndef ASHLAR_ALLOCATOR_DEVICE_DEVICE_H_
#define ASHLAR_ALLOCATOR_DEVICE_DEVICE_H_

#include <cstdint>

#include "allocator/base/units.h"
#include "ashlar/device.h"  // IWYU pragma: export

namespace ashlar::device {

using ashlar::CapturePoint;
using ashlar::Device;
using ashlar::DeviceEvent;
using ashlar::MemoryInfo;

// Counts how often this process has come out of a fork as the child. A device that was opened before the last fork
// belongs to the parent.

// Counts the forks since the first call in any ancestor; any thread.
std::uint64_t ForkCount();

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_DEVICE_H_
