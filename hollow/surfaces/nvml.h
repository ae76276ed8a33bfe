// Shared by the two files of NVML: devices as handles, and answers in its manner.
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SURFACES_NVML_H_
#define ASHLAR_HOLLOW_SURFACES_NVML_H_

#include <cstddef>
#include <string>

#include "hollow/surfaces/nvml_types.h"

namespace ashlar::hollow {

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

#endif  // ASHLAR_HOLLOW_SURFACES_NVML_H_
