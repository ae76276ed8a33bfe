// A surface is a table of the functions of one of NVIDIA's libraries. This header says how one answers.
//
//   ASHLAR_SURFACE int cublasCreate_v2(void** handle) { return Made<CublasHandle>(handle); }
//
// Every public name is in names/ as well, for where no surface defines it: ASHLAR_REFUSED(name, status) answers that it
// is not supported and is counted by name; ASHLAR_LAUNCHED(name) is work for the device, which is accepted and not run:
// what it would have written is unknown from then on. Both are weak: a surface's own definition wins, and the line in
// names/ then says nothing of what the call does. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_SURFACE_H_
#define ASHLAR_HOLLOW_API_SURFACE_H_

#include <cstdint>

#include "ashlar/hollow.h"

namespace ashlar::hollow {

// Counts a call that is not modelled, under its name, which must be a literal.
void CountRefused(const char* name);
// Counts work given to a stream of the current device that nothing runs: a kernel, a library's operation.
void CountLaunch(void* stream);
// Writes a made-up value where the host would read what a kernel had written, and counts it (api/surface.h).
void ReadMadeUp(void* host, std::uint64_t bytes);

}  // namespace ashlar::hollow

#define ASHLAR_SURFACE extern "C" __attribute__((visibility("default")))

// A call that is accepted and does nothing, because nothing that a program could see would change. The documentation
// prints each with its reason (hollow/answers.py).
#define ASHLAR_IGNORED(name, reason) \
  ASHLAR_SURFACE int name() { return 0; }

#define ASHLAR_REFUSED(name, status)                \
  ASHLAR_SURFACE __attribute__((weak)) int name() { \
    ::ashlar::hollow::CountRefused(#name);          \
    return status;                                  \
  }

#define ASHLAR_LAUNCHED(name)                       \
  ASHLAR_SURFACE __attribute__((weak)) int name() { \
    ::ashlar::hollow::CountLaunch(nullptr);         \
    return 0;                                       \
  }

// A name for programs compiled with a default stream for each thread: nothing runs, so that the order of their default
// streams is the same.
#define ASHLAR_SAME(name, target) \
  extern "C" decltype(target) name __attribute__((alias(#target), visibility("default")))

namespace ashlar::hollow {

// Made-up values stand for bytes that only a kernel would have written, when the host reads them.

// Writes what --values says: zeros, bytes of 1, or random bytes that are the same in each run. Where reads are given
// (ashlar_hollow_read_as), their number.
void WriteMadeUp(void* host, std::uint64_t bytes);
bool ReadsAreGiven();  // on this thread: whatever is known
// Counts a read, under the line of the program that is under way: as the program's own teller of lines says
// (ashlar_hollow_set_line), else the innermost native function outside NVIDIA's and PyTorch's libraries. One that is
// given is none.
// The caller holds no lock.
void CountMadeUp(std::uint64_t bytes);
void SetLineTeller(ashlar_hollow_line line);

// Work that is given to a library by its handle: counted on the handle's stream, refused where the handle is not one.
//
// Each answers the library's own status: 0, or that it was not initialised. Thread rule: any thread.

int LaunchCublas(void* handle);
int LaunchCudnn(void* handle);
int LaunchCurand(void* generator);
int LaunchCufft(int plan);
int LaunchCusparse(void* handle);
int LaunchCusolver(void* handle);  // dense, or of several devices

// 0 where the handle is one.
int KnownCusparse(void* handle);
int KnownCusolver(void* handle);

// CUSPARSE_STATUS_INVALID_VALUE of cusparse.h, CUSOLVER_STATUS_INVALID_VALUE of cusolver_common.h.
inline constexpr int kCusparseInvalidValue = 3;
inline constexpr int kCusolverInvalidValue = 3;
// CUDNN_STATUS_BAD_PARAM and NOT_SUPPORTED, whose numbers differ between versions 8 and 9.
int CudnnBadParam();
int CudnnNotSupported();

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_SURFACE_H_
