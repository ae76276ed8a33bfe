// NVML: the library, its devices and their names.
//
// Signatures: nvml.h 12.9. Functions that answer what only a device measures (power, temperature, errors, links) are
// not supported (names/nvml.inc).

#include "hollow/api/nvml/nvml.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "hollow/api/cuda/device_properties.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {
namespace {

constexpr int kMostNvmlDevices = 256;
constinit char nvml_handles[kMostNvmlDevices] = {};  // the address of one is the handle of its device
constinit std::atomic<int> nvml_users{0};            // Init counts up, Shutdown down

// Of the first release for CUDA 13 (CUDA 13.0 release notes, table of driver versions).
constexpr char kDriverVersion[] = "580.65.06";

const char* NvmlStatusText(int status) {
  switch (status) {
    case kNvmlSuccess:
      return "Success";
    case kNvmlUninitialized:
      return "Uninitialized";
    case kNvmlInvalidArgument:
      return "Invalid Argument";
    case kNvmlNotSupported:
      return "Not Supported";
    case kNvmlNotFound:
      return "Not Found";
    case kNvmlInsufficientSize:
      return "Insufficient Size";
    case kNvmlVersionMismatch:
      return "Argument Version Mismatch";
    default:
      return "Unknown Error";
  }
}

int FindDeviceBy(const std::string& text, std::string (*name)(int), void** handle) {
  if (const int status = NvmlReady(); status != 0) return status;
  if (handle == nullptr) return kNvmlInvalidArgument;
  for (int device = 0; device < TheSettings().devices; ++device) {
    if (name(device) != text) continue;
    *handle = NvmlHandle(device);
    return kNvmlSuccess;
  }
  return kNvmlNotFound;
}

// Domain, bus and device: a bus id is written with four or eight digits of the domain, and in any case.
int FindByBus(const char* text, void** handle) {
  if (const int status = NvmlReady(); status != 0) return status;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  if (text == nullptr || handle == nullptr) return kNvmlInvalidArgument;
  if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) return kNvmlInvalidArgument;
  for (int device = 0; device < TheSettings().devices; ++device) {
    if (domain != 0 || slot != 0 || static_cast<int>(bus) != PciBus(device)) continue;
    *handle = NvmlHandle(device);
    return kNvmlSuccess;
  }
  return kNvmlNotFound;
}

template <class Layout>
int DescribePci(const void* handle, Layout* pci) {
  return NvmlAnswer(handle, pci, [](int device) {
    Layout made = {};
    made.bus = static_cast<std::uint32_t>(PciBus(device));
    const std::string legacy = NvmlBusId(device, true);
    std::memcpy(made.bus_id_legacy, legacy.c_str(), legacy.size() + 1);
    return made;
  });
}

}  // namespace

int NvmlReady() { return nvml_users.load() > 0 ? kNvmlSuccess : kNvmlUninitialized; }

void* NvmlHandle(int device) {
  const bool there = device >= 0 && device < std::min(TheSettings().devices, kMostNvmlDevices);
  return there ? &nvml_handles[device] : nullptr;
}

int NvmlDevice(const void* handle, int* status) {
  *status = NvmlReady();
  if (*status != kNvmlSuccess) return -1;
  const auto place = reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(nvml_handles);
  if (place < static_cast<std::uintptr_t>(std::min(TheSettings().devices, kMostNvmlDevices))) {
    return static_cast<int>(place);
  }
  *status = kNvmlInvalidArgument;
  return -1;
}

int NvmlText(const std::string& text, char* to, unsigned size) {
  if (to == nullptr) return kNvmlInvalidArgument;
  if (size <= text.size()) return kNvmlInsufficientSize;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kNvmlSuccess;
}

std::string NvmlUuid(int device) {
  const abi::Uuid uuid = DeviceUuid(device);
  unsigned char bytes[16];
  static_assert(sizeof(uuid) == sizeof(bytes));
  std::memcpy(bytes, &uuid, sizeof(bytes));
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    text += digits;
  }
  return text;
}

std::string NvmlBusId(int device, bool legacy) {
  char text[32];
  std::snprintf(text, sizeof(text), legacy ? "%04X:%02X:%02X.0" : "%08X:%02X:%02X.0", 0, PciBus(device), 0);
  return text;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int nvmlInit_v2() {
  TheSettings();
  ++nvml_users;
  return kNvmlSuccess;
}
ASHLAR_SURFACE int nvmlInit() { return nvmlInit_v2(); }
ASHLAR_SURFACE int nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }
ASHLAR_SURFACE int nvmlShutdown() {
  int users = nvml_users.load();
  while (users > 0) {
    if (nvml_users.compare_exchange_weak(users, users - 1)) return kNvmlSuccess;
  }
  return kNvmlUninitialized;
}
ASHLAR_SURFACE const char* nvmlErrorString(int status) { return NvmlStatusText(status); }
ASHLAR_SURFACE int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  const int status = NvmlReady();
  return status != 0 ? status : NvmlText(kDriverVersion, text, size);
}
ASHLAR_SURFACE int nvmlSystemGetNVMLVersion(char* text, unsigned size) {
  const int status = NvmlReady();
  return status != 0 ? status : NvmlText(std::string("13.") + kDriverVersion, text, size);
}
ASHLAR_SURFACE int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return kNvmlInvalidArgument;
  *version = TheSettings().driver_version;
  return kNvmlSuccess;
}
ASHLAR_SURFACE int nvmlSystemGetCudaDriverVersion(int* version) { return nvmlSystemGetCudaDriverVersion_v2(version); }
ASHLAR_SURFACE int nvmlSystemGetProcessName(unsigned pid, char* text, unsigned size) {
  if (const int status = NvmlReady(); status != 0) return status;
  const std::string path = "/proc/" + std::to_string(pid) + "/cmdline";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return kNvmlNotFound;
  char name[4096] = {};
  const std::size_t read = std::fread(name, 1, sizeof(name) - 1, file);
  std::fclose(file);
  return read == 0 ? kNvmlNotFound : NvmlText(name, text, size);
}

ASHLAR_SURFACE int nvmlDeviceGetCount_v2(unsigned* count) {
  if (const int status = NvmlReady(); status != 0) return status;
  if (count == nullptr) return kNvmlInvalidArgument;
  *count = static_cast<unsigned>(TheSettings().devices);
  return kNvmlSuccess;
}
ASHLAR_SURFACE int nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }
ASHLAR_SURFACE int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (const int status = NvmlReady(); status != 0) return status;
  void* found = index < kMostNvmlDevices ? NvmlHandle(static_cast<int>(index)) : nullptr;
  if (found == nullptr || handle == nullptr) return kNvmlInvalidArgument;
  *handle = found;
  return kNvmlSuccess;
}
ASHLAR_SURFACE int nvmlDeviceGetHandleByIndex(unsigned index, void** handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}
ASHLAR_SURFACE int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  return uuid == nullptr ? kNvmlInvalidArgument : FindDeviceBy(uuid, NvmlUuid, handle);
}
ASHLAR_SURFACE int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** handle) { return FindByBus(bus, handle); }
ASHLAR_SURFACE int nvmlDeviceGetHandleByPciBusId(const char* bus, void** handle) { return FindByBus(bus, handle); }

ASHLAR_SURFACE int nvmlDeviceGetName(void* handle, char* text, unsigned size) {
  int status = kNvmlSuccess;
  NvmlDevice(handle, &status);
  return status != 0 ? status : NvmlText(TheSettings().name, text, size);
}
ASHLAR_SURFACE int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  int status = kNvmlSuccess;
  const int device = NvmlDevice(handle, &status);
  return status != 0 ? status : NvmlText(NvmlUuid(device), text, size);
}
ASHLAR_SURFACE int nvmlDeviceGetIndex(void* handle, unsigned* index) {
  return NvmlAnswer(handle, index, [](int device) { return static_cast<unsigned>(device); });
}
ASHLAR_SURFACE int nvmlDeviceGetMinorNumber(void* handle, unsigned* number) {
  return nvmlDeviceGetIndex(handle, number);
}
ASHLAR_SURFACE int nvmlDeviceGetPciInfo_v3(void* handle, NvmlPci* pci) {
  const int status = DescribePci(handle, pci);
  if (status != 0) return status;
  const std::string bus = NvmlBusId(static_cast<int>(pci->bus) - PciBus(0), false);
  std::memcpy(pci->bus_id, bus.c_str(), bus.size() + 1);
  return kNvmlSuccess;
}
ASHLAR_SURFACE int nvmlDeviceGetPciInfo_v2(void* handle, NvmlPci2* pci) { return DescribePci(handle, pci); }
ASHLAR_SURFACE int nvmlDeviceGetPciInfo(void* handle, NvmlPci2* pci) { return DescribePci(handle, pci); }
ASHLAR_SURFACE int nvmlDeviceGetPciInfoExt(void* handle, NvmlPciExt* pci) {
  if (pci != nullptr && pci->version != NvmlVersion<NvmlPciExt>(1)) return kNvmlVersionMismatch;
  return NvmlAnswer(handle, pci, [](int device) {
    constexpr std::uint32_t kDisplayController = 3;  // PCI's base class; sub class 2: a 3D controller
    NvmlPciExt made = {
        NvmlVersion<NvmlPciExt>(1), 0, static_cast<std::uint32_t>(PciBus(device)), 0, 0, 0, kDisplayController, 2, {}};
    const std::string bus = NvmlBusId(device, false);
    std::memcpy(made.bus_id, bus.c_str(), bus.size() + 1);
    return made;
  });
}

// NVML: what a device is and holds. Memory and processes are those of the accounting; nothing runs, so that nothing is
// used.
//
// Signatures: nvml.h 12.9.

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
int ListProcesses(const void* handle, unsigned* count, Entry* entries, Entry (*entry)(const ProcessBytes&)) {
  int status = kNvmlSuccess;
  const int device = NvmlDevice(handle, &status);
  if (status != 0) return status;
  if (count == nullptr) return kNvmlInvalidArgument;
  const std::vector<ProcessBytes> all = ProcessesOn(device);
  const unsigned room = *count;
  *count = static_cast<unsigned>(all.size());
  if (room < all.size()) return kNvmlInsufficientSize;
  if (!all.empty() && entries == nullptr) return kNvmlInvalidArgument;
  for (std::size_t i = 0; i < all.size(); ++i) entries[i] = entry(all[i]);
  return kNvmlSuccess;
}
NvmlProcess1 ShortEntry(const ProcessBytes& one) { return {static_cast<std::uint32_t>(one.pid), one.bytes}; }
NvmlProcess2 LongEntry(const ProcessBytes& one) {
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
namespace {

constexpr unsigned kPcieLanes = 16;  // of every card of the table

// By the architecture: 3 of Volta and Turing, 4 of Ampere and Ada, 5 since Hopper (NVIDIA's data sheets).
unsigned PcieGeneration(int) {
  const int major = TheSettings().compute_major;
  return major >= 9 ? 5 : major == 8 ? 4 : 3;
}

}  // namespace

ASHLAR_SURFACE int nvmlDeviceGetCurrPcieLinkGeneration(void* handle, unsigned* generation) {
  return NvmlAnswer(handle, generation, PcieGeneration);
}
ASHLAR_SURFACE int nvmlDeviceGetMaxPcieLinkGeneration(void* handle, unsigned* generation) {
  return NvmlAnswer(handle, generation, PcieGeneration);
}
ASHLAR_SURFACE int nvmlDeviceGetCurrPcieLinkWidth(void* handle, unsigned* lanes) {
  return NvmlAnswer(handle, lanes, [](int) { return kPcieLanes; });
}
ASHLAR_SURFACE int nvmlDeviceGetMaxPcieLinkWidth(void* handle, unsigned* lanes) {
  return NvmlAnswer(handle, lanes, [](int) { return kPcieLanes; });
}
ASHLAR_SURFACE int nvmlDeviceGetNvLinkState(void* handle, unsigned, int* is_active) {
  return NvmlAnswer(handle, is_active, [](int) { return 0; });
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
