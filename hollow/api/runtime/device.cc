// CUDA's runtime: devices, versions, errors. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "hollow/api/cuda/device_properties.h"
#include "hollow/api/cuda/error_names.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/api/real_library.h"
#include "hollow/api/runtime/call.h"

namespace ashlar::hollow {
namespace {

int& LastError() {
  thread_local int error = 0;
  return error;
}

bool IsDevice(const Process& process, int device) { return device >= 0 && device < process.settings.devices; }

unsigned& DeviceFlags() {
  static unsigned flags = 0;
  return flags;
}

}  // namespace

int Last(Error error) {
  if (error != Error::kNone) LastError() = static_cast<int>(error);
  return static_cast<int>(error);
}

namespace {

thread_local int runtime_of_caller = 0;  // 0: the process's

}  // namespace

AsRuntime::AsRuntime(int major) : before_(std::exchange(runtime_of_caller, major)) {}
AsRuntime::~AsRuntime() { runtime_of_caller = before_; }

int RuntimeMajor() {
  if (runtime_of_caller != 0) return runtime_of_caller;
  static const int major = [] {
    const int found = RealMajor("libcudart.so.");
    return found == 0 ? 13 : found;
  }();
  return major;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Last(Error::kInvalidValue);
  *count = StartedProcess().settings.devices;
  return 0;
}

ASHLAR_SURFACE int cudaGetDevice(int* device) {
  if (device == nullptr) return Last(Error::kInvalidValue);
  (void)StartedProcess();
  *device = CurrentDevice();
  return 0;
}

ASHLAR_SURFACE int cudaSetDevice(int device) {
  return Locked([&](Process& process) {
    if (!IsDevice(process, device)) return Error::kInvalidDevice;
    CurrentDevice() = device;
    // Since CUDA 12.0 this makes the context (CUDA 12.0 release notes).
    return RuntimeMajor() >= 12 ? UseDevice(process, device) : Error::kNone;
  });
}
ASHLAR_OF_VERSIONS(cudaSetDevice, cudaSetDevice, (int device), (device))

ASHLAR_SURFACE int cudaInitDevice(int device, unsigned, unsigned) {
  return Locked(
      [&](Process& process) { return IsDevice(process, device) ? UseDevice(process, device) : Error::kInvalidDevice; });
}

ASHLAR_IGNORED(cudaSetValidDevices, "every device that is there is valid")

ASHLAR_SURFACE int cudaChooseDevice(int* device, const void*) {
  if (device == nullptr) return Last(Error::kInvalidValue);
  *device = 0;
  return 0;
}

ASHLAR_SURFACE int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  Process& process = StartedProcess();
  if (!IsDevice(process, device)) return Last(Error::kInvalidDevice);
  const std::optional<int> known = DeviceAttribute(process.settings, attribute, device);
  if (value == nullptr || !known.has_value()) return Last(Error::kInvalidValue);
  *value = *known;
  return 0;
}

ASHLAR_SURFACE int cudaGetDeviceProperties(void* prop, int device) {
  Process& process = StartedProcess();
  if (!IsDevice(process, device)) return Last(Error::kInvalidDevice);
  if (prop == nullptr) return Last(Error::kInvalidValue);
  // CUDA 12 has this name for programs compiled with 11, and _v2 for its own.
  FillDeviceProp(process.settings, device, RuntimeMajor() >= 13 ? 13 : 11, prop);
  return 0;
}
ASHLAR_OF_VERSIONS(cudaGetDeviceProperties, cudaGetDeviceProperties, (void* prop, int device), (prop, device))

ASHLAR_SURFACE int cudaGetDeviceProperties_v2(void* prop, int device) {
  Process& process = StartedProcess();
  if (!IsDevice(process, device)) return Last(Error::kInvalidDevice);
  if (prop == nullptr) return Last(Error::kInvalidValue);
  FillDeviceProp(process.settings, device, 12, prop);
  return 0;
}

ASHLAR_SURFACE int cudaDeviceGetPCIBusId(char* text, int size, int device) {
  Process& process = StartedProcess();
  if (!IsDevice(process, device)) return Last(Error::kInvalidDevice);
  if (text == nullptr || size < 13) return Last(Error::kInvalidValue);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", static_cast<unsigned>(PciBus(device)));
  return 0;
}

ASHLAR_SURFACE int cudaDeviceGetByPCIBusId(int* device, const char* text) {
  unsigned domain = 0;
  unsigned bus = 0;
  if (device == nullptr || text == nullptr || std::sscanf(text, "%x:%x:", &domain, &bus) != 2) {
    return Last(Error::kInvalidValue);
  }
  *device = static_cast<int>(bus) - PciBus(0);
  return IsDevice(StartedProcess(), *device) && domain == 0 ? 0 : Last(Error::kInvalidDevice);
}

ASHLAR_SURFACE int cudaDeviceSynchronize() { return Last(SynchronizeDevice()); }
ASHLAR_SURFACE int cudaThreadSynchronize() { return cudaDeviceSynchronize(); }

ASHLAR_SURFACE int cudaDeviceReset() {
  return Locked([](Process& process) { return ResetDevice(process, CurrentDevice()); });
}
ASHLAR_SURFACE int cudaThreadExit() { return cudaDeviceReset(); }

ASHLAR_SURFACE int cudaSetDeviceFlags(unsigned flags) {
  (void)StartedProcess();
  DeviceFlags() = flags;
  return 0;
}

ASHLAR_SURFACE int cudaGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return Last(Error::kInvalidValue);
  *flags = DeviceFlags() | 0x08;  // cudaDeviceMapHost, which all devices do
  return 0;
}

ASHLAR_SURFACE int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  Process& process = StartedProcess();
  if (!IsDevice(process, device) || !IsDevice(process, peer)) return Last(Error::kInvalidDevice);
  if (can == nullptr) return Last(Error::kInvalidValue);
  *can = device != peer ? 1 : 0;
  return 0;
}

ASHLAR_SURFACE int cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return Locked(
      [&](Process& process) { return process.peers.Enable(CurrentDevice(), peer, process.settings.devices); });
}

ASHLAR_SURFACE int cudaDeviceDisablePeerAccess(int peer) {
  return Locked([&](Process& process) { return process.peers.Disable(CurrentDevice(), peer); });
}

ASHLAR_SURFACE int cudaDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  Process& process = StartedProcess();
  if (!IsDevice(process, device) || !IsDevice(process, peer)) return Last(Error::kInvalidDevice);
  if (value == nullptr || attribute < 1 || attribute > 5) return Last(Error::kInvalidValue);
  *value = attribute == 1 ? 0 : 1;  // performance rank 0, all else is there
  return 0;
}

ASHLAR_SURFACE int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return 0;
}

ASHLAR_SURFACE int cudaDeviceGetLimit(std::size_t* value, int limit) {
  return Locked([&](Process& process) { return GetLimit(process, limit, value); });
}
ASHLAR_SURFACE int cudaDeviceSetLimit(int limit, std::size_t value) {
  return Locked([&](Process& process) { return SetLimit(process, limit, value); });
}
ASHLAR_SURFACE int cudaDeviceGetCacheConfig(int* config) {
  if (config == nullptr) return Last(Error::kInvalidValue);
  *config = 0;
  return 0;
}
ASHLAR_IGNORED(cudaDeviceSetCacheConfig, "a hint of how a kernel shares its cache: no kernel runs")
ASHLAR_SURFACE int cudaDeviceGetSharedMemConfig(int* config) { return cudaDeviceGetCacheConfig(config); }
ASHLAR_IGNORED(cudaDeviceSetSharedMemConfig, "a hint of how a kernel uses its banks: no kernel runs")

ASHLAR_SURFACE int cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Last(Error::kInvalidValue);
  using GetVersion = int (*)(int*);
  static const GetVersion real = reinterpret_cast<GetVersion>(RealFunction("libcudart.so.", "cudaRuntimeGetVersion"));
  if (real != nullptr) return real(version);
  *version = RuntimeMajor() * 1000;
  return 0;
}

ASHLAR_SURFACE int cudaDriverGetVersion(int* version) {
  if (version == nullptr) return Last(Error::kInvalidValue);
  *version = StartedProcess().settings.driver_version;
  return 0;
}

ASHLAR_SURFACE int cudaGetLastError() {
  StartedProcess();
  return std::exchange(LastError(), 0);
}
ASHLAR_SURFACE int cudaPeekAtLastError() {
  StartedProcess();
  return LastError();
}
ASHLAR_SURFACE const char* cudaGetErrorName(int error) { return RuntimeErrorName(error); }
ASHLAR_SURFACE const char* cudaGetErrorString(int error) { return ErrorText(error); }

ASHLAR_IGNORED(cudaProfilerStart, "no profiler watches a hollow device")
ASHLAR_IGNORED(cudaProfilerStop, "no profiler watches a hollow device")
