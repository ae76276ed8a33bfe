// The devices that come with the allocator. For another kind of memory, derive a class from Device (device.h).
//
//   absl::StatusOr<std::unique_ptr<ashlar::Device>> gpu = ashlar::OpenCudaDevice({.ordinal = 0});
//   if (!gpu.ok()) return gpu.status();   // one line: no driver, one that is too old, no such device
//
// docs/library/devices.md describes each. The allocator that owns a device's memory serialises the calls to it. A
// device outlives its allocator and every use of its memory, and returns all memory when it ends.
#ifndef ASHLAR_DEVICES_H_
#define ASHLAR_DEVICES_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ashlar/device.h"
#include "ashlar/export.h"
#include "ashlar/units.h"

namespace ashlar {

struct CudaDeviceOptions {
  int ordinal = 0;
  // How the pages of expandable segments can be shared with other processes. It is decided when a page is created:
  // a page without a handle type can never be exported.
  bool posix_fd_handles = false;
  bool fabric_handles = false;
  // As posix_fd_handles where the device has that and grants it; else pages are shared with nobody.
  bool posix_fd_handles_if_granted = false;
  // Pages that a network card may reach directly (allocFlags.gpuDirectRDMACapable).
  bool gpu_direct_rdma = false;
};

// A GPU, through its driver (libcuda.so.1, CUDA 11.0 or later), which is looked up now; it needs no toolkit and no
// runtime, and works beside whichever runtime the program has, in the device's primary context. kUnavailable: no driver
// or no GPU here; kInvalidArgument: no such device; kFailedPrecondition: it lacks what the options ask for.
ASHLAR_EXPORT absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(const CudaDeviceOptions& options);

struct HostDeviceOptions {
  std::uint64_t capacity_bytes = 4 * kGiB;
  std::uint64_t granularity_bytes = 2 * kMiB;  // a power of two of at least the system's page
  bool events_complete_immediately = true;     // false: when their stream is synchronised
};

// Host memory, by mmap: blocks that any program can read and write, without a GPU. kInvalidArgument: a granularity that
// is no such power of two.
ASHLAR_EXPORT absl::StatusOr<std::unique_ptr<Device>> OpenHostDevice(const HostDeviceOptions& options);
// The same for options that are known to be right: others end the program with the line of that status.
ASHLAR_EXPORT std::unique_ptr<Device> MakeHostDevice(const HostDeviceOptions& options);

struct SimulatedDeviceOptions {
  std::uint64_t capacity_bytes = 80 * kGiB;
  std::uint64_t granularity_bytes = 2 * kMiB;   // a power of two
  std::uint64_t base_address = 0x7f0000000000;  // a multiple of it
  bool events_complete_immediately = false;     // false: when their stream is synchronised
};

// Addresses without memory behind them, by one rule on every machine: for tests and what-ifs. It aborts where hardware
// would be misused, with the call's name. kInvalidArgument: such a granularity or address.
ASHLAR_EXPORT absl::StatusOr<std::unique_ptr<Device>> OpenSimulatedDevice(const SimulatedDeviceOptions& options);
// The same for options that are known to be right: others end the program with the line of that status.
ASHLAR_EXPORT std::unique_ptr<Device> MakeSimulatedDevice(const SimulatedDeviceOptions& options);

}  // namespace ashlar

#endif  // ASHLAR_DEVICES_H_
