// Turns NVTX ranges into scopes of recordings (scope.h). A program that is annotated for a profiler already needs no
// ASHLAR_SCOPE.
//
//   ashlar::FollowNvtxRanges();               // anywhere in the program
//   nvtxRangePushA("forward");                // a phase of the recording from here ...
//   nvtxRangePop();                           // ... to here
//
// It belongs to the component adapters_nvtx, which is built where the toolkit's nvtx3 headers were found. It is an NVTX
// static injection (nvtx3/nvtxDetail/nvtxInit.h): it works from the first NVTX call on, unless NVTX_INJECTION64_PATH
// names another, such as a profiler's. It follows ranges that are pushed and popped, in every domain, on one stack a
// thread. It does not follow ranges that are started and ended (nvtxRangeStart), as they need not nest.
#ifndef ASHLAR_NVTX_H_
#define ASHLAR_NVTX_H_

#include "ashlar/export.h"

namespace ashlar {

// Any thread, any number of times; ranges that were pushed before are not followed.
ASHLAR_EXPORT void FollowNvtxRanges();

}  // namespace ashlar

#endif  // ASHLAR_NVTX_H_
