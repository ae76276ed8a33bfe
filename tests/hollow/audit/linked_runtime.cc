// A stand-in for NVIDIA's static runtime: every public function of it, each of which refers to the text of its own
// name, as the real ones do, and answers 4242: a call that reaches it is seen. Beside them the name by which a runtime
// is known.
#include <dlfcn.h>

extern "C" {
__attribute__((noinline, visibility("hidden"))) int ashlar_test_reached(const char* name) {
  __asm__ volatile("" ::"r"(name));
  return 4241;
}
__attribute__((used, visibility("hidden"))) extern const char ashlar_test_shared_memory[] = "/cudart.shm.%x";
// As a runtime looks the driver's functions up.
__attribute__((used, visibility("hidden"))) void* ashlar_test_driver(const char* name) { return dlsym(nullptr, name); }
}

// Of the real ones those that begin so have no such text.
constexpr const char* TextOf(const char* name) { return name[0] == '_' ? "" : name; }

#define ASHLAR_REFUSED(name, status)                            \
  extern "C" __attribute__((visibility("hidden"))) int name() { \
    static constexpr const char* kText = TextOf(#name);         \
    return ashlar_test_reached(kText) + 1;                      \
  }
#define cudaWaitExternalSemaphoresAsync_v2_ptsz ashlar_test_left_out
#include "hollow/api/names/runtime.inc"
#undef cudaWaitExternalSemaphoresAsync_v2_ptsz

// One that is newer than the hollow device, among the others.
ASHLAR_REFUSED(cudaOfLaterYears, 801)
ASHLAR_REFUSED(cudaWaitExternalSemaphoresAsync_v2_ptsz, 801)

#ifdef ASHLAR_TEST_KERNELS
// What nvcc makes of a file with kernels.
extern "C" __attribute__((section(".nvFatBinSegment"), used)) const int ashlar_test_kernels = 1;
#endif
