// Shared by the two files of NVML: devices as handles, and answers in its manner.
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_NVML_NVML_H_
#define ASHLAR_HOLLOW_API_NVML_NVML_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace ashlar::hollow {

// Layouts and numbers of nvml.h 12.9, under our own names; checked against it where it is installed (layouts_test.cc).

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

// The number of the device, where the library is initialised and the handle is one. `status` says what is wrong else.
int NvmlDevice(const void* handle, int* status);
// The handle of a device from 0 up; null where there is none.
void* NvmlHandle(int device);
// 0, or kNvmlUninitialized.
int NvmlReady();

// Copies the text with its end into the caller's room.
int NvmlText(const std::string& text, char* to, unsigned size);
std::string NvmlUuid(int device);
std::string NvmlBusId(int device, bool legacy);

// Writes what `value` answers for the device.
template <class Value, class Answer>
int NvmlAnswer(const void* handle, Value* to, Answer answer) {
  int status = kNvmlSuccess;
  const int device = NvmlDevice(handle, &status);
  if (status != kNvmlSuccess) return status;
  if (to == nullptr) return kNvmlInvalidArgument;
  *to = answer(device);
  return kNvmlSuccess;
}

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_NVML_NVML_H_
