// The functions of CUDA that the serving library calls itself: always the real ones.
#ifndef ASHLAR_HOLLOW_SERVE_DRIVER_H_
#define ASHLAR_HOLLOW_SERVE_DRIVER_H_

#include <cstddef>

#include "hollow/interpose/stand_in.h"

namespace ashlar::serve {

// Which of CUDA's two interfaces the program called: errors of the runtime's functions stay in its last error.
enum class Api { kRuntime, kDriver };

struct Driver {
  using Context = void*;
  using Stream = void*;
  interpose::RealFunction<int(Context*)> context_get_current{"cuCtxGetCurrent"};
  interpose::RealFunction<int(int*)> context_get_device{"cuCtxGetDevice"};
  interpose::RealFunction<int(Context)> context_push{"cuCtxPushCurrent_v2"};
  interpose::RealFunction<int(Context*)> context_pop{"cuCtxPopCurrent_v2"};
  interpose::RealFunction<int()> context_synchronize{"cuCtxSynchronize"};
  interpose::RealFunction<int(int*)> device_get_count{"cuDeviceGetCount"};
  interpose::RealFunction<int(int*, int)> device_get{"cuDeviceGet"};
  interpose::RealFunction<int(Context*, int)> primary_retain{"cuDevicePrimaryCtxRetain"};
  interpose::RealFunction<int(int)> primary_release{"cuDevicePrimaryCtxRelease_v2"};
  interpose::RealFunction<int(Stream, Context*)> stream_get_context{"cuStreamGetCtx"};
  interpose::RealFunction<int(Stream, int*)> stream_is_capturing{"cuStreamIsCapturing"};
  interpose::RealFunction<int(Stream)> stream_synchronize{"cuStreamSynchronize"};
  interpose::RealFunction<int(int*)> runtime_device{"cudaGetDevice"};
  interpose::RealFunction<int()> runtime_synchronize{"cudaDeviceSynchronize"};
};
extern constinit Driver cuda;

// The ordinal of the device that a context is of; -1 where nobody can tell.
int DeviceOf(Driver::Context context);
// The driver's name of a device, by ordinal, and the other way; -1: there is none.
int DriverDevice(int ordinal);
int OrdinalOf(int driver_device);

// Makes a context current while it lives, and the one before it again at the end.
class ContextScope {
 public:
  explicit ContextScope(Driver::Context context) : result_(cuda.context_push(context)) {}
  ~ContextScope() {
    Driver::Context popped = nullptr;
    if (result_ == 0) cuda.context_pop(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  int result() const { return result_; }

 private:
  const int result_;
};

// The real allocation and free behind each API.

inline int RealAllocation(Api api, std::size_t bytes, void** out) {
  const bool is_runtime = api == Api::kRuntime;
  return interpose::CallReal(is_runtime ? interpose::Name::cudaMalloc : interpose::Name::cuMemAlloc_v2, out, bytes);
}

inline int RealFree(Api api, void* pointer) {
  const bool is_runtime = api == Api::kRuntime;
  return interpose::CallReal(is_runtime ? interpose::Name::cudaFree : interpose::Name::cuMemFree_v2, pointer);
}

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_DRIVER_H_
