// CUDA's driver: start, devices, errors. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/device_properties.h"
#include "hollow/surfaces/driver_call.h"
#include "hollow/surfaces/error_names.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cuInit(unsigned flags) {
  if (flags != 0) return Number(Error::kInvalidValue);
  if (TheProcess().is_orphan) return Number(Error::kNotInitialized);
  TheProcess().Initialize();
  return 0;
}

ASHLAR_SURFACE int cuDriverGetVersion(int* version) {
  if (version == nullptr) return Number(Error::kInvalidValue);
  *version = TheSettings().driver_version;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetCount(int* count) {
  ASHLAR_NEEDS_INIT();
  if (count == nullptr) return Number(Error::kInvalidValue);
  *count = TheSettings().devices;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGet(int* device, int ordinal) {
  ASHLAR_NEEDS_INIT();
  if (device == nullptr) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), ordinal)) return Number(Error::kInvalidDevice);
  *device = ordinal;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetName(char* name, int size, int device) {
  ASHLAR_NEEDS_INIT();
  if (name == nullptr || size < 1) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  std::snprintf(name, static_cast<std::size_t>(size), "%s", TheSettings().name.c_str());
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetUuid_v2(abi::Uuid* uuid, int device) {
  ASHLAR_NEEDS_INIT();
  if (uuid == nullptr) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  *uuid = DeviceUuid(device);
  return 0;
}
ASHLAR_SAME(cuDeviceGetUuid, cuDeviceGetUuid_v2);

ASHLAR_SURFACE int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  ASHLAR_NEEDS_INIT();
  if (bytes == nullptr) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  *bytes = TotalBytes(device);
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  const std::optional<int> known = DeviceAttribute(TheSettings(), attribute, device);
  if (value == nullptr || !known.has_value()) return Number(Error::kInvalidValue);
  *value = *known;
  return 0;
}

ASHLAR_SURFACE int cuDeviceComputeCapability(int* major, int* minor, int device) {
  ASHLAR_NEEDS_INIT();
  if (major == nullptr || minor == nullptr) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  *major = TheSettings().compute_major;
  *minor = TheSettings().compute_minor;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetPCIBusId(char* text, int size, int device) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  if (text == nullptr || size < 13) return Number(Error::kInvalidValue);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", static_cast<unsigned>(PciBus(device)));
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetByPCIBusId(int* device, const char* text) {
  ASHLAR_NEEDS_INIT();
  unsigned domain = 0;
  unsigned bus = 0;
  if (device == nullptr || text == nullptr || std::sscanf(text, "%x:%x:", &domain, &bus) != 2) {
    return Number(Error::kInvalidValue);
  }
  *device = static_cast<int>(bus) - PciBus(0);
  return Number(IsDevice(TheProcess(), *device) && domain == 0 ? Error::kNone : Error::kInvalidDevice);
}

ASHLAR_SURFACE int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device) || !IsDevice(TheProcess(), peer)) return Number(Error::kInvalidDevice);
  if (can == nullptr) return Number(Error::kInvalidValue);
  *can = device != peer ? 1 : 0;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device) || !IsDevice(TheProcess(), peer)) return Number(Error::kInvalidDevice);
  if (value == nullptr || attribute < 1 || attribute > 5) return Number(Error::kInvalidValue);
  *value = attribute == 1 ? 0 : 1;  // performance rank 0, all else is there
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetExecAffinitySupport(int* supported, int, int device) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  if (supported == nullptr) return Number(Error::kInvalidValue);
  *supported = 0;
  return 0;
}

ASHLAR_SURFACE int cuGetErrorString(int error, const char** text) {
  if (text == nullptr) return Number(Error::kInvalidValue);
  *text = DriverErrorName(error) == nullptr ? nullptr : ErrorText(error);
  return Number(*text == nullptr ? Error::kInvalidValue : Error::kNone);
}

ASHLAR_SURFACE int cuGetErrorName(int error, const char** name) {
  if (name == nullptr) return Number(Error::kInvalidValue);
  *name = DriverErrorName(error);
  return Number(*name == nullptr ? Error::kInvalidValue : Error::kNone);
}

ASHLAR_IGNORED(cuProfilerStart, "no profiler watches a hollow device")
ASHLAR_IGNORED(cuProfilerStop, "no profiler watches a hollow device")

// The driver's log, which stays empty.
ASHLAR_SURFACE int cuLogsRegisterCallback(void*, void*, void** handle) {
  static char callback = 0;
  if (handle != nullptr) *handle = &callback;
  return 0;
}
ASHLAR_IGNORED(cuLogsUnregisterCallback, "no log was registered")
ASHLAR_SURFACE int cuLogsCurrent(unsigned* iterator, unsigned) {
  if (iterator == nullptr) return Number(Error::kInvalidValue);
  *iterator = 0;
  return 0;
}
ASHLAR_SURFACE int cuLogsDumpToMemory(unsigned*, char* buffer, std::size_t* size, unsigned) {
  if (size == nullptr) return Number(Error::kInvalidValue);
  if (buffer != nullptr && *size > 0) buffer[0] = 0;
  *size = 0;
  return 0;
}
