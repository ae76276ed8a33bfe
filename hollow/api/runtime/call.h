// Answers the runtime's functions under the process's lock, and keeps the thread's last error.
#ifndef ASHLAR_HOLLOW_API_RUNTIME_CALL_H_
#define ASHLAR_HOLLOW_API_RUNTIME_CALL_H_

#include <mutex>

#include "hollow/api/surface.h"
#include "hollow/model/error.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

// Keeps an error for cudaGetLastError, and returns its number.
int Last(Error error);

// The process, after the start of the driver: every call of the runtime makes it, but those on errors and versions
// (CUDA C++ Programming Guide, "Initialization").
inline Process& StartedProcess() {
  Process& process = TheProcess();
  process.Initialize();
  return process;
}

// `call(process)` with the process's lock held.
template <typename Call>
int Locked(Call call) {
  Process& process = StartedProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return Last(process.is_orphan ? Error::kNotInitialized : call(process));
}

// The major version of the runtime that the caller was linked with: 11, 12 or 13. That of the shared one that the
// program brought, 13 where it brought none; for an object with a runtime of its own that one's (AsRuntime).
int RuntimeMajor();

// While it lives, the calling thread's RuntimeMajor is this one.
class AsRuntime {
 public:
  explicit AsRuntime(int major);
  ~AsRuntime();
  AsRuntime(const AsRuntime&) = delete;
  AsRuntime& operator=(const AsRuntime&) = delete;

 private:
  const int before_;
};

// The function `target` as a runtime of each major version has it, under the name ashlar_12_NAME: for objects that have
// a runtime linked in, of which a process may hold several (hollow/audit). For functions that ask for RuntimeMajor.
#define ASHLAR_OF_VERSION(major, name, target, arguments, values) \
  ASHLAR_SURFACE int ashlar_##major##_##name arguments {          \
    const ::ashlar::hollow::AsRuntime as_runtime(major);          \
    return target values;                                         \
  }
#define ASHLAR_OF_VERSIONS(name, target, arguments, values) \
  ASHLAR_OF_VERSION(11, name, target, arguments, values)    \
  ASHLAR_OF_VERSION(12, name, target, arguments, values)    \
  ASHLAR_OF_VERSION(13, name, target, arguments, values)

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_RUNTIME_CALL_H_
