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

// The major version of the runtime that the program brought: 11, 12 or 13; 13 where it brought none.
int RuntimeMajor();

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_RUNTIME_CALL_H_
