// Every public name of NVIDIA's libraries, weakly, for those that no surface defines: see names.py for what each
// answers and why.
//
// Compiled alone: a surface declares the same functions with their arguments.
#include <cstdarg>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "hollow/api/driver/call.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"

namespace ashlar::hollow {

bool WriteWorkspace(int bits, std::initializer_list<int> places, std::va_list after_first) {
  bool written = true;
  int place = 0;
  for (const int wanted : places) {
    void* address = nullptr;
    while (place < wanted) {
      address = va_arg(after_first, void*);
      ++place;
    }
    if (address == nullptr) {
      written = false;
    } else if (bits == 32) {
      *static_cast<std::int32_t*>(address) = static_cast<std::int32_t>(kWorkspaceBytes);
    } else {
      *static_cast<std::uint64_t*>(address) = kWorkspaceBytes;
    }
  }
  return written;
}

namespace {

// The driver answers before cuInit what a program may ask for at any time.
bool IsForAnyTime(std::string_view name) { return name.starts_with("cuCoredump") || name.starts_with("cuLogs"); }

}  // namespace

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the lists name statuses and launches plainly

#include "hollow/api/names/cublaslt.inc"
#include "hollow/api/names/cusparselt.inc"
#include "hollow/api/names/nccl.inc"
#include "hollow/api/names/nvml.inc"
#include "hollow/api/names/runtime.inc"

#pragma push_macro("ASHLAR_REFUSED")
#undef ASHLAR_REFUSED
#define ASHLAR_REFUSED(name, status)                \
  ASHLAR_SURFACE __attribute__((weak)) int name() { \
    if (!IsForAnyTime(#name)) ASHLAR_NEEDS_INIT();  \
    CountRefused(#name);                            \
    return status;                                  \
  }
#include "hollow/api/names/driver.inc"
#pragma pop_macro("ASHLAR_REFUSED")

// From here, work is given by a handle, which is checked and knows its stream.
#undef ASHLAR_LAUNCHED
#define ASHLAR_LAUNCHED(name) \
  ASHLAR_SURFACE __attribute__((weak)) int name(void* handle) { return ASHLAR_LAUNCH(handle); }

#define ASHLAR_LAUNCH(handle) LaunchCublas(handle)
#include "hollow/api/names/cublas.inc"
#undef ASHLAR_LAUNCH

#define ASHLAR_LAUNCH(handle) LaunchCusparse(handle)
#define ASHLAR_SIZED(name, bits, ...) \
  ASHLAR_SIZED_AFTER(name, bits, KnownCusparse(first), kCusparseInvalidValue, __VA_ARGS__)
#include "hollow/api/names/cusparse.inc"
#undef ASHLAR_LAUNCH
#undef ASHLAR_SIZED

#define ASHLAR_LAUNCH(handle) LaunchCusolver(handle)
#define ASHLAR_SIZED(name, bits, ...) \
  ASHLAR_SIZED_AFTER(name, bits, KnownCusolver(first), kCusolverInvalidValue, __VA_ARGS__)
#include "hollow/api/names/cusolver.inc"
#undef ASHLAR_LAUNCH
#undef ASHLAR_SIZED

#define ASHLAR_LAUNCH(handle) LaunchCurand(handle)
#include "hollow/api/names/curand.inc"
#undef ASHLAR_LAUNCH

// cuDNN's sizes are asked of a handle or of a descriptor, and its refusal has another number in version 8.
#define ASHLAR_LAUNCH(handle) LaunchCudnn(handle)
#define ASHLAR_SIZED(name, bits, ...) ASHLAR_SIZED_AFTER(name, bits, 0, CudnnBadParam(), __VA_ARGS__)
#pragma push_macro("ASHLAR_REFUSED")
#undef ASHLAR_REFUSED
#define ASHLAR_REFUSED(name, status)                \
  ASHLAR_SURFACE __attribute__((weak)) int name() { \
    CountRefused(#name);                            \
    return (status) == 0 ? 0 : CudnnNotSupported(); \
  }
#include "hollow/api/names/cudnn.inc"
#undef ASHLAR_LAUNCH
#pragma pop_macro("ASHLAR_REFUSED")

// A plan of cuFFT is a number.
#undef ASHLAR_LAUNCHED
#define ASHLAR_LAUNCHED(name) \
  ASHLAR_SURFACE __attribute__((weak)) int name(int plan) { return LaunchCufft(plan); }
#include "hollow/api/names/cufft.inc"
