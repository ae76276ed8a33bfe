#include "ashlar/devices.h"

#include <utility>

#include "allocator/device/cuda_device.h"
#include "allocator/device/host_device.h"
#include "allocator/device/sim_device.h"

namespace ashlar {

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(const CudaDeviceOptions& options) {
  absl::StatusOr<std::unique_ptr<device::CudaDevice>> device = device::CudaDevice::Open(options);
  if (!device.ok()) return std::move(device).status();
  return *std::move(device);
}

std::unique_ptr<Device> MakeHostDevice(const HostDeviceOptions& options) {
  return std::make_unique<device::HostDevice>(options);
}

std::unique_ptr<Device> MakeSimulatedDevice(const SimulatedDeviceOptions& options) {
  return std::make_unique<device::SimDevice>(
      device::SimDeviceOptions{.capacity_bytes = options.capacity_bytes,
                               .granularity_bytes = options.granularity_bytes,
                               .base_address = options.base_address,
                               .events_complete_immediately = options.events_complete_immediately});
}

}  // namespace ashlar
