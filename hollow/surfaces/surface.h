// A surface is a table of the functions of one of NVIDIA's libraries. This header says how one answers.
//
//   ASHLAR_SURFACE int cublasCreate_v2(void** handle) { return Made<CublasHandle>(handle); }
//
// Every public name is in names/ as well, for where no surface defines it: ASHLAR_REFUSED(name, status) answers that it
// is not supported and is counted by name; ASHLAR_LAUNCHED(name) is work for the device, which is accepted and not run:
// what it would have written is unknown from then on. Both are weak: a surface's own definition wins, and the line in
// names/ then says nothing of what the call does. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SURFACES_SURFACE_H_
#define ASHLAR_HOLLOW_SURFACES_SURFACE_H_

#include <cstdint>

namespace ashlar::hollow {

// Counts a call that is not modelled, under its name, which must be a literal.
void CountRefused(const char* name);
// Counts work given to a stream of the current device that nothing runs: a kernel, a library's operation.
void CountLaunch(void* stream);
// Writes a made-up value where the host would read what a kernel had written, and counts it (launch/made_up.h).
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

#endif  // ASHLAR_HOLLOW_SURFACES_SURFACE_H_
