#include "hollow/record/device_state.h"

#include <atomic>
#include <cstddef>

#include "hollow/interpose/real.h"

namespace ashlar::record {
namespace {

// Found when it is first there: the runtime loads the driver at its first call.
template <typename Function>
Function* Found(const char* symbol, std::atomic<Function*>& known) {
  Function* function = known.load(std::memory_order_acquire);
  if (function != nullptr) return function;
  function = reinterpret_cast<Function*>(interpose::FindReal(symbol));
  known.store(function, std::memory_order_release);
  return function;
}

using GetDevice = int(int*);
using GetMemory = int(std::size_t*, std::size_t*);

}  // namespace

int CurrentDevice() {
  static std::atomic<GetDevice*> of_context = nullptr, of_runtime = nullptr;
  int device = 0;
  GetDevice* ask = Found("cuCtxGetDevice", of_context);
  if (ask != nullptr && ask(&device) == 0) return device;
  ask = Found("cudaGetDevice", of_runtime);
  return ask != nullptr && ask(&device) == 0 ? device : 0;
}

DeviceMemory MemoryOfDevice() {
  static std::atomic<GetMemory*> known = nullptr;
  std::size_t free_bytes = 0, total_bytes = 0;
  GetMemory* ask = Found("cuMemGetInfo_v2", known);
  if (ask == nullptr || ask(&free_bytes, &total_bytes) != 0) return {};
  return {free_bytes, total_bytes};
}

}  // namespace ashlar::record
