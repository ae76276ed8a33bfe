// Answers the driver's functions under the process's lock, with CUDA's own number.
//
// Before cuInit they answer kNotInitialized, but for those that CUDA lets a program call then: versions, names of
// errors, functions by name. Driven sees to it; what does not begin with it, or with another of these functions, begins
// with ASHLAR_NEEDS_INIT().
#ifndef ASHLAR_HOLLOW_API_DRIVER_CALL_H_
#define ASHLAR_HOLLOW_API_DRIVER_CALL_H_

#include <mutex>

#include "hollow/api/surface.h"
#include "hollow/model/error.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

inline int Number(Error error) { return static_cast<int>(error); }

bool IsInitialized();  // as the process has it

#define ASHLAR_NEEDS_INIT() \
  if (!::ashlar::hollow::IsInitialized()) return Number(::ashlar::hollow::Error::kNotInitialized)

// ASHLAR_IGNORED, after cuInit.
#define ASHLAR_IGNORED_AFTER_INIT(name, reason) \
  ASHLAR_SURFACE int name() {                   \
    ASHLAR_NEEDS_INIT();                        \
    return 0;                                   \
  }

// What `call()` answers, which takes locks itself.
template <typename Call>
int AfterInit(Call call) {
  ASHLAR_NEEDS_INIT();
  return Number(call());
}

// `call(process)` with the process's lock held.
template <typename Call>
int Driven(Call call) {
  ASHLAR_NEEDS_INIT();
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return Number(process.is_orphan ? Error::kNotInitialized : call(process));
}

inline bool IsDevice(const Process& process, int device) { return device >= 0 && device < process.settings.devices; }

// The device of a context; -1 where it is none.
int DeviceOfContext(Process& process, const void* context);
// Of a device: there from the first to the last.
void* PrimaryContext(Process& process, int device);
// The context that stands for a green context, made once; and the green context of one, by default of the current one:
// nullptr where it stands for none.
void* ContextOfGreen(Process& process, void* green, int device);
void* GreenOfContext(Process& process, const void* context);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_DRIVER_CALL_H_
