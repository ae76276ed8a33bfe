// The properties of a device: attributes by CUDA's number, and cudaDeviceProp in the layout of each version.
#ifndef ASHLAR_HOLLOW_API_CUDA_DEVICE_PROPERTIES_H_
#define ASHLAR_HOLLOW_API_CUDA_DEVICE_PROPERTIES_H_

#include <cstddef>
#include <optional>

#include "hollow/abi/cuda_types.h"
#include "hollow/process/settings.h"

namespace ashlar::hollow {

// CUdevice_attribute, cudaDeviceAttr; nothing where CUDA 13.0 has no such number.
std::optional<int> DeviceAttribute(const Settings& settings, int attribute, int device);
abi::Uuid DeviceUuid(int device);
// "0000:01:00.0" of device 0, and so on.
int PciBus(int device);

// Fills cudaDeviceProp as CUDA `major` lays it out: 11, 12 or 13.
void FillDeviceProp(const Settings& settings, int device, int major, void* prop);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_DEVICE_PROPERTIES_H_
