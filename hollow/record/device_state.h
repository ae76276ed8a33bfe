// Asks the driver about the calling thread's device, by the real functions: nothing of it is recorded.
#ifndef ASHLAR_HOLLOW_RECORD_DEVICE_STATE_H_
#define ASHLAR_HOLLOW_RECORD_DEVICE_STATE_H_

#include <cstdint>

namespace ashlar::record {

int CurrentDevice();  // 0 where nobody can tell

struct DeviceMemory {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;  // 0: not known
};
DeviceMemory MemoryOfDevice();

}  // namespace ashlar::record

#endif  // ASHLAR_HOLLOW_RECORD_DEVICE_STATE_H_
