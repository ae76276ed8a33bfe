// NVML: what a device is and holds. Memory and processes are those of the books; nothing runs, so that nothing is used.
//
// Signatures: nvml.h 12.9.
#include <cstdint>
#include <vector>

#include "hollow/launch/process.h"
#include "hollow/surfaces/nvml.h"
#include "hollow/surfaces/surface.h"

namespace ashlar::hollow {
namespace {

// nvmlDeviceArchitecture_t by compute capability.
unsigned ArchitectureOf(int major, int minor) {
  switch (major) {
    case 3:
      return 2;  // Kepler
    case 5:
      return 3;  // Maxwell
    case 6:
      return 4;  // Pascal
    case 7:
      return minor < 5 ? 5 : 6;  // Volta, Turing
    case 8:
      return minor < 9 ? 7 : 8;  // Ampere, Ada
    case 9:
      return 9;  // Hopper
    case 10:
    case 11:
    case 12:
      return 10;  // Blackwell
    default:
      return ~0U;  // unknown
  }
}

std::uint64_t FreeBytes(int device) {
  const std::uint64_t total = TotalBytes(device);
  const std::uint64_t used = UsedBytes(device);
  return used < total ? total - used : 0;
}

// As many as there is room for, and how many there are.
template <class Entry>
int ListProcesses(const void* handle, unsigned* count, Entry* entries, Entry (*entry)(const ProcessUse&)) {
  int status = kNvmlSuccess;
  const int device = NvmlDevice(handle, &status);
  if (status != 0) return status;
  if (count == nullptr) return kNvmlInvalidArgument;
  const std::vector<ProcessUse> all = ProcessesOn(device);
  const unsigned room = *count;
  *count = static_cast<unsigned>(all.size());
  if (room < all.size()) return kNvmlInsufficientSize;
  if (!all.empty() && entries == nullptr) return kNvmlInvalidArgument;
  for (std::size_t i = 0; i < all.size(); ++i) entries[i] = entry(all[i]);
  return kNvmlSuccess;
}
NvmlProcess1 ShortEntry(const ProcessUse& one) { return {static_cast<std::uint32_t>(one.pid), one.bytes}; }
NvmlProcess2 LongEntry(const ProcessUse& one) {
  return {static_cast<std::uint32_t>(one.pid), one.bytes, ~std::uint32_t{0}, ~std::uint32_t{0}};  // no instances
}

// No program draws, and there is no process server.
int NoProcesses(const void* handle, unsigned* count) {
  return NvmlAnswer(handle, count, [](int) { return 0U; });
}

// nvmlClockType_t: graphics, SM, memory, video.
int ClockOf(const void* handle, int type, unsigned* mhz) {
  if (type < 0 || type > 3) return kNvmlInvalidArgument;
  const Settings& machine = TheSettings();
  const int khz = type == 2 ? machine.memory_clock_khz : machine.clock_khz;
  return NvmlAnswer(handle, mhz, [khz](int) { return static_cast<unsigned>(khz / 1000); });
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int nvmlDeviceGetMemoryInfo(void* handle, NvmlMemory* memory) {
  return NvmlAnswer(handle, memory,
                    [](int device) { return NvmlMemory{TotalBytes(device), FreeBytes(device), UsedBytes(device)}; });
}
ASHLAR_SURFACE int nvmlDeviceGetMemoryInfo_v2(void* handle, NvmlMemory2* memory) {
  if (memory != nullptr && memory->version != NvmlVersion<NvmlMemory2>(2)) return kNvmlVersionMismatch;
  return NvmlAnswer(handle, memory, [](int device) {
    return NvmlMemory2{NvmlVersion<NvmlMemory2>(2), TotalBytes(device), 0, FreeBytes(device), UsedBytes(device)};
  });
}
ASHLAR_SURFACE int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count, NvmlProcess1* entries) {
  return ListProcesses(handle, count, entries, ShortEntry);
}
ASHLAR_SURFACE int nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count, NvmlProcess2* entries) {
  return ListProcesses(handle, count, entries, LongEntry);
}
ASHLAR_SURFACE int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, NvmlProcess2* entries) {
  return ListProcesses(handle, count, entries, LongEntry);
}
#define ASHLAR_NO_PROCESSES(name) \
  ASHLAR_SURFACE int name(void* handle, unsigned* count, void*) { return NoProcesses(handle, count); }
ASHLAR_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
ASHLAR_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
ASHLAR_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
ASHLAR_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
ASHLAR_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
ASHLAR_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

// Kernels are not run: no part of the time was any.
ASHLAR_SURFACE int nvmlDeviceGetUtilizationRates(void* handle, NvmlUtilization* rates) {
  return NvmlAnswer(handle, rates, [](int) { return NvmlUtilization{0, 0}; });
}

ASHLAR_SURFACE int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  const int status = NvmlAnswer(handle, major, [](int) { return TheSettings().compute_major; });
  return status != 0 ? status : NvmlAnswer(handle, minor, [](int) { return TheSettings().compute_minor; });
}
ASHLAR_SURFACE int nvmlDeviceGetArchitecture(void* handle, unsigned* architecture) {
  return NvmlAnswer(handle, architecture,
                    [](int) { return ArchitectureOf(TheSettings().compute_major, TheSettings().compute_minor); });
}
ASHLAR_SURFACE int nvmlDeviceGetClockInfo(void* handle, int type, unsigned* mhz) { return ClockOf(handle, type, mhz); }
ASHLAR_SURFACE int nvmlDeviceGetMaxClockInfo(void* handle, int type, unsigned* mhz) {
  return ClockOf(handle, type, mhz);
}
ASHLAR_SURFACE int nvmlDeviceGetMemoryBusWidth(void* handle, unsigned* bits) {
  return NvmlAnswer(handle, bits, [](int) { return static_cast<unsigned>(TheSettings().memory_bus_bits); });
}
ASHLAR_SURFACE int nvmlDeviceGetComputeMode(void* handle, int* mode) {
  return NvmlAnswer(handle, mode, [](int) { return 0; });  // NVML_COMPUTEMODE_DEFAULT: any number of programs
}
ASHLAR_SURFACE int nvmlDeviceGetPersistenceMode(void* handle, int* mode) {
  return NvmlAnswer(handle, mode, [](int) { return 1; });  // the device is always there
}
ASHLAR_SURFACE int nvmlDeviceGetDisplayActive(void* handle, int* active) {
  return NvmlAnswer(handle, active, [](int) { return 0; });
}
ASHLAR_SURFACE int nvmlDeviceGetDisplayMode(void* handle, int* mode) {
  return nvmlDeviceGetDisplayActive(handle, mode);
}
ASHLAR_SURFACE int nvmlDeviceGetMultiGpuBoard(void* handle, unsigned* multi) {
  return NvmlAnswer(handle, multi, [](int) { return 0U; });
}
ASHLAR_SURFACE int nvmlDeviceGetMaxMigDeviceCount(void* handle, unsigned* count) {
  return NvmlAnswer(handle, count, [](int) { return 0U; });
}
ASHLAR_SURFACE int nvmlDeviceIsMigDeviceHandle(void* handle, unsigned* is_part) {
  return NvmlAnswer(handle, is_part, [](int) { return 0U; });
}

ASHLAR_SURFACE int nvmlDeviceOnSameBoard(void* one, void* other, int* same) {
  int status = kNvmlSuccess;
  const int second = NvmlDevice(other, &status);
  return status != 0 ? status : NvmlAnswer(one, same, [second](int first) { return first == second ? 1 : 0; });
}
// nvmlGpuTopologyLevel_t: 0 is the same device, 40 the same node of a machine.
ASHLAR_SURFACE int nvmlDeviceGetTopologyCommonAncestor(void* one, void* other, int* level) {
  int status = kNvmlSuccess;
  const int second = NvmlDevice(other, &status);
  return status != 0 ? status : NvmlAnswer(one, level, [second](int first) { return first == second ? 0 : 40; });
}
// nvmlGpuP2PCapsIndex_t 0 and 1, reads and writes: every device reaches the memory of every other. There are no links.
ASHLAR_SURFACE int nvmlDeviceGetP2PStatus(void* one, void* other, int capability, int* reach) {
  int status = kNvmlSuccess;
  NvmlDevice(other, &status);
  if (status != 0) return status;
  constexpr int kOk = 0;
  constexpr int kNone = 5;  // NVML_P2P_STATUS_NOT_SUPPORTED
  return NvmlAnswer(one, reach, [capability](int) { return capability == 0 || capability == 1 ? kOk : kNone; });
}
