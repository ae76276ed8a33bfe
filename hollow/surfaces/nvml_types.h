// Layouts and numbers of nvml.h 12.9, under our own names; checked against it where it is installed (layouts_test.cc).
#ifndef ASHLAR_HOLLOW_SURFACES_NVML_TYPES_H_
#define ASHLAR_HOLLOW_SURFACES_NVML_TYPES_H_

#include <cstdint>

namespace ashlar::hollow {

// nvmlReturn_t.
inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlUninitialized = 1;
inline constexpr int kNvmlInvalidArgument = 2;
inline constexpr int kNvmlNotSupported = 3;
inline constexpr int kNvmlNotFound = 6;
inline constexpr int kNvmlInsufficientSize = 7;
inline constexpr int kNvmlVersionMismatch = 25;

struct NvmlMemory {
  std::uint64_t total, free, used;
};
struct NvmlMemory2 {
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
struct NvmlUtilization {
  std::uint32_t gpu_percent, memory_percent;
};
struct NvmlProcess1 {
  std::uint32_t pid;
  std::uint64_t used_bytes;
};
struct NvmlProcess2 {  // v2 and v3
  std::uint32_t pid;
  std::uint64_t used_bytes;
  std::uint32_t gpu_instance, compute_instance;
};
struct NvmlPci {  // v3
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct NvmlPci2 {  // before v3
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, device_id, subsystem_id, reserved[4];
};
struct NvmlPciExt {
  std::uint32_t version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
  char bus_id[32];
};

// NVML_STRUCT_VERSION.
template <class Layout>
constexpr std::uint32_t NvmlVersion(std::uint32_t version) {
  return static_cast<std::uint32_t>(sizeof(Layout)) | version << 24;
}

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_NVML_TYPES_H_
