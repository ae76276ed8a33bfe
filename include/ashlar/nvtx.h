// Turns NVTX ranges into scopes of recordings (scope.h). A program that is annotated for a profiler already needs no
// ASHLAR_SCOPE.
//
//   ashlar::FollowNvtxRanges();               // anywhere in the program
//   nvtxRangePushA("forward");                // a phase of the recording from here ...
//   nvtxRangePop();                           // ... to here
//
// The component adapters_nvtx, where the toolkit's nvtx3 headers were found. It is an NVTX static injection
// (nvtx3/nvtxDetail/nvtxInit.h): it is there from the first NVTX call on, unless NVTX_INJECTION64_PATH names another,
// such as a profiler's. Ranges pushed and popped are followed, of every domain, on one stack a thread; ranges that are
// started and ended (nvtxRangeStart) are not, as they need not nest.
#ifndef ASHLAR_NVTX_H_
#define ASHLAR_NVTX_H_

#include "ashlar/export.h"

namespace ashlar {

// Any thread, any number of times; ranges that were pushed before are not followed.
ASHLAR_EXPORT void FollowNvtxRanges();

}  // namespace ashlar

#endif  // ASHLAR_NVTX_H_
