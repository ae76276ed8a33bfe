// How programs come by functions other than by linking them: cuGetProcAddress of the driver, which the runtime asks for
// too, and dlsym. They are given ours.
#include <dlfcn.h>

#include <cstdint>

#include "hollow/interpose/stand_in.h"

using namespace ashlar::interpose;  // NOLINT: these are C functions

namespace {

constexpr std::uint64_t kPerThread =
    2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, cudaEnablePerThreadDefaultStream
constexpr int kNewest = 1 << 30;

int HandedOut(int result, const char* name, void** function, int cuda_version, std::uint64_t flags) {
  if (result != 0 || name == nullptr || function == nullptr || *function == nullptr) return result;
  *function = HandOutDriver(name, cuda_version, (flags & kPerThread) != 0, *function);
  return result;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

// Before CUDA 12 it has no status.
int cuGetProcAddress(const char* name, void** function, int cuda_version, std::uint64_t flags) {
  return HandedOut(CallReal(Name::cuGetProcAddress, name, function, cuda_version, flags), name, function, cuda_version,
                   flags);
}
int cuGetProcAddress_v2(const char* name, void** function, int cuda_version, std::uint64_t flags, int* status) {
  return HandedOut(CallReal(Name::cuGetProcAddress_v2, name, function, cuda_version, flags, status), name, function,
                   cuda_version, flags);
}
// The status came with CUDA 12; one argument more does no harm to one that takes none.
int cudaGetDriverEntryPoint(const char* name, void** function, std::uint64_t flags, int* status) {
  return HandedOut(CallReal(Name::cudaGetDriverEntryPoint, name, function, flags, status), name, function, kNewest,
                   flags);
}
int cudaGetDriverEntryPoint_ptsz(const char* name, void** function, std::uint64_t flags, int* status) {
  return HandedOut(CallReal(Name::cudaGetDriverEntryPoint_ptsz, name, function, flags, status), name, function, kNewest,
                   flags | kPerThread);
}
int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version, std::uint64_t flags,
                                     int* status) {
  return HandedOut(CallReal(Name::cudaGetDriverEntryPointByVersion, name, function, version, flags, status), name,
                   function, static_cast<int>(version), flags);
}
int cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function, unsigned version, std::uint64_t flags,
                                          int* status) {
  return HandedOut(CallReal(Name::cudaGetDriverEntryPointByVersion_ptsz, name, function, version, flags, status), name,
                   function, static_cast<int>(version), flags | kPerThread);
}

#pragma GCC visibility pop
}

ASHLAR_STANDS_IN(cuGetProcAddress);
ASHLAR_STANDS_IN(cuGetProcAddress_v2);
ASHLAR_STANDS_IN(cudaGetDriverEntryPoint);
ASHLAR_STANDS_IN(cudaGetDriverEntryPoint_ptsz);
ASHLAR_STANDS_IN(cudaGetDriverEntryPointByVersion);
ASHLAR_STANDS_IN(cudaGetDriverEntryPointByVersion_ptsz);

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

using Lookup = void* (*)(void*, const char*);

// The next one: of another preloaded library, such as the hollow device's, which has names that libraries opened by a
// program have too; else the C library's.
Lookup NextLookup() {
  void* libc = nullptr;
  for (const char* version : {"GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.17"}) {  // the last one is aarch64's first
    if (libc == nullptr) libc = dlvsym(RTLD_NEXT, "dlsym", version);
  }
  if (libc == nullptr) return nullptr;
  return reinterpret_cast<Lookup>(reinterpret_cast<Lookup>(libc)(RTLD_NEXT, "dlsym"));
}

}  // namespace

// dlsym answers by who calls it (RTLD_NEXT), so that ours jumps to the next one as if it had not been there. That is
// what a statically linked runtime, and programs that open libcuda.so.1 themselves, find the driver by.
extern "C" {
__attribute__((visibility("hidden"))) void* (*ashlar_real_dlsym)(void*, const char*) = nullptr;

// Ours, or null: ask the next one.
__attribute__((visibility("hidden"))) void* ashlar_handed_by_dlsym(void* handle, const char* name) {
  if (ashlar_real_dlsym == nullptr) ashlar_real_dlsym = NextLookup();
  if (name == nullptr || !IsStoodIn(name)) return nullptr;
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || IsFinding()) return nullptr;
  void* found = ashlar_real_dlsym(handle, name);
  return found == nullptr ? nullptr : HandOut(name, found);
}
}

#if defined(__x86_64__)
asm(R"(
  .text
  .p2align 4
  .globl dlsym
  .type dlsym, @function
dlsym:
  endbr64
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  call ashlar_handed_by_dlsym
  addq $8, %rsp
  popq %rsi
  popq %rdi
  testq %rax, %rax
  jne 1f
  movq ashlar_real_dlsym(%rip), %rax
  jmpq *%rax
1:
  ret
  .size dlsym, .-dlsym
)");
#else
asm(R"(
  .text
  .p2align 4
  .globl dlsym
  .type dlsym, @function
dlsym:
  hint #34  // bti c
  stp x29, x30, [sp, #-32]!
  mov x29, sp
  stp x0, x1, [sp, #16]
  bl ashlar_handed_by_dlsym
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  cbnz x16, 1f
  adrp x16, ashlar_real_dlsym
  ldr x16, [x16, #:lo12:ashlar_real_dlsym]
  br x16
1:
  mov x0, x16
  ret
  .size dlsym, .-dlsym
)");
#endif

#endif
