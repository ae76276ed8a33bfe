// dlsym, for programs that open NVIDIA's libraries themselves (dlopen("libcublas.so.13") and dlsym): a name that the
// hollow device has is the hollow device's, whichever library it is looked up in. JAX's plug-ins do so, and our own
// cuBLAS calls. Where a process has CUDA's runtime of several versions, what is looked up in one has that one's
// layouts.
//
// All else is the C library's: RTLD_NEXT is told by who calls, so that call must be the last thing here.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hollow/api/runtime/call.h"
#include "hollow/api/surface.h"

// The bounds of this library, by the linker.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;  // NOLINT: the linker's name
extern "C" __attribute__((visibility("hidden"))) const char _end;          // NOLINT

namespace {

using Lookup = void* (*)(void*, const char*);

// Versions of the name in glibc: since 2.34 it is libc's own; before, libdl's, by the processor's first glibc.
Lookup FindReal() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version); found != nullptr) return reinterpret_cast<Lookup>(found);
  }
  std::abort();  // no glibc that we know: nothing could be looked up at all
}

Lookup Real() {
  static std::atomic<Lookup> real = nullptr;
  Lookup known = real.load(std::memory_order_relaxed);
  if (known == nullptr) real.store(known = FindReal(), std::memory_order_relaxed);
  return known;
}

bool HasPrefix(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

bool IsNvidias(const char* name) {
  for (const char* prefix : {"cu", "nccl", "nvml", "__cuda"}) {
    if (HasPrefix(name, prefix)) return true;
  }
  return false;
}

bool IsHere(const void* address) { return address >= &__ehdr_start && address < &_end; }

// The name of the file that holds an address, without its folder; empty where it is not known.
const char* FileOf(const void* address) {
  Dl_info info = {};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash == nullptr ? info.dli_fname : slash + 1;
}

// NVIDIA's libraries look up parts of themselves, and where one is asked for its version it must find its own.
bool IsNvidiasLibrary(const void* caller) {
  const char* file = FileOf(caller);
  for (const char* library : {"libcudnn", "libcublas", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnccl",
                              "libcudart", "libnvrtc", "libnvJitLink"}) {
    if (HasPrefix(file, library)) return true;
  }
  return false;
}

void* Self() {
  static std::atomic<void*> self = nullptr;
  void* handle = self.load(std::memory_order_relaxed);
  if (handle == nullptr) {
    Dl_info info = {};
    if (dladdr(&__ehdr_start, &info) == 0) return nullptr;
    handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return nullptr;
    self.store(handle, std::memory_order_relaxed);
  }
  return handle;
}

// What a preloaded library before this one has of that name, else ours; nullptr where ours has none.
void* Preloaded(const char* name) {
  void* self = Self();
  void* ours = self == nullptr ? nullptr : Real()(self, name);
  return ours == nullptr || !IsHere(ours) ? nullptr : Real()(RTLD_DEFAULT, name);
}

// What was found in a runtime beside the process's own, which is the first (RuntimeMajor): the function as that version
// has it (ashlar_12_NAME), and its version by itself. nullptr: versions do not differ there.
void* OfOtherRuntime(void* found, const char* name) {
  constexpr char kRuntime[] = "libcudart.so.";
  const char* file = FileOf(found);
  if (!HasPrefix(file, kRuntime)) return nullptr;
  const int major = std::atoi(file + sizeof(kRuntime) - 1);
  if (major == ashlar::hollow::RuntimeMajor()) return nullptr;
  if (std::strcmp(name, "cudaRuntimeGetVersion") == 0) return found;
  char versioned[128];
  const int length = std::snprintf(versioned, sizeof(versioned), "ashlar_%02d_%s", major, name);
  if (length < 0 || length >= static_cast<int>(sizeof(versioned)) || Self() == nullptr) return nullptr;
  return Real()(Self(), versioned);
}

void* Chosen(void* handle, const char* name) {
  void* found = Real()(handle, name);
  if (found == nullptr) return nullptr;
  void* of_its_version = OfOtherRuntime(found, name);
  return of_its_version != nullptr ? of_its_version : Preloaded(name);
}

}  // namespace

// Named so by the assembler alone: <dlfcn.h> declares dlsym as a function that does not throw, and such a one does not
// end with a call of another.
ASHLAR_SURFACE void* ashlar_dlsym(void* handle, const char* name) __asm__("dlsym");

#if defined(__clang__)
#define ASHLAR_LAST [[clang::musttail]]
#else
#define ASHLAR_LAST
__attribute__((optimize("O2")))
#endif
void* ashlar_dlsym(void* handle, const char* name) {
  void* chosen = nullptr;
  if (handle != RTLD_DEFAULT && handle != RTLD_NEXT && IsNvidias(name)) {
    const void* caller = __builtin_return_address(0);
    if (!IsHere(caller) && !IsNvidiasLibrary(caller)) chosen = Chosen(handle, name);
  }
  if (chosen != nullptr) return chosen;
  ASHLAR_LAST return Real()(handle, name);
}
