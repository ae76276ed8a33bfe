// The properties of a device: attributes by CUDA's number, and cudaDeviceProp in the layout of each version.
#ifndef ASHLAR_HOLLOW_SURFACES_DEVICE_PROPERTIES_H_
#define ASHLAR_HOLLOW_SURFACES_DEVICE_PROPERTIES_H_

#include <cstddef>
#include <optional>

#include "hollow/abi/cuda_types.h"
#include "hollow/launch/settings.h"

namespace ashlar::hollow {

// By cudaLimit, CUlimit: CUDA's defaults for stack, printf's buffer, heap, the device runtime's two, L2 granularity and
// persisting L2.
inline constexpr std::size_t kLimits[] = {1024, 1'048'576, 8'388'608, 2, 2048, 128, 0};

// CUdevice_attribute, cudaDeviceAttr; nothing where CUDA 13.0 has no such number.
std::optional<int> DeviceAttribute(const Settings& settings, int attribute, int device);
abi::Uuid DeviceUuid(int device);
// "0000:01:00.0" of device 0, and so on.
int PciBus(int device);

// Fills cudaDeviceProp as CUDA `major` lays it out: 11, 12 or 13.
void FillDeviceProp(const Settings& settings, int device, int major, void* prop);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_DEVICE_PROPERTIES_H_
