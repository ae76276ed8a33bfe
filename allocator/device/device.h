// The device seam (ashlar/device.h), by the names that the devices behind it use.
#ifndef ASHLAR_ALLOCATOR_DEVICE_DEVICE_H_
#define ASHLAR_ALLOCATOR_DEVICE_DEVICE_H_

#include "allocator/base/units.h"
#include "ashlar/device.h"  // IWYU pragma: export

namespace ashlar::device {

using ashlar::Device;
using ashlar::DeviceEvent;
using ashlar::MemoryInfo;

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_DEVICE_H_
