#include "hollow/serve/driver.h"

namespace ashlar::serve {

constinit Driver cuda;

int DriverDevice(int ordinal) {
  int device = -1;
  return cuda.device_get(&device, ordinal) == 0 ? device : -1;
}

int OrdinalOf(int driver_device) {
  int count = 0;
  if (cuda.device_get_count(&count) != 0) return -1;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (DriverDevice(ordinal) == driver_device) return ordinal;
  }
  return -1;
}

int DeviceOf(Driver::Context context) {
  const ContextScope scope(context);
  int device = 0;
  if (scope.result() != 0 || cuda.context_get_device(&device) != 0) return -1;
  return OrdinalOf(device);
}

}  // namespace ashlar::serve
