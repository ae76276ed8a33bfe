// Makes NVTX ranges scopes of recordings (allocator/core/scope.h): programs that are annotated for a profiler already
// need no ASHLAR_SCOPE.
//
//   ashlar::adapters::FollowNvtxRanges();     // anywhere in the program
//   nvtxRangePushA("forward");                // a phase of the recording from here ...
//   nvtxRangePop();                           // ... to here
//
// The target ashlar::adapters_nvtx, where the toolkit's nvtx3 headers are found. It is an NVTX static injection
// (nvtx3/nvtxDetail/nvtxInit.h): it is there from the first NVTX call on, unless NVTX_INJECTION64_PATH names another,
// such as a profiler's. Ranges pushed and popped are followed, of every domain, on one stack a thread; ranges that are
// started and ended (nvtxRangeStart) are not, as they need not nest.
#ifndef ASHLAR_ALLOCATOR_ADAPTERS_NVTX_SCOPES_H_
#define ASHLAR_ALLOCATOR_ADAPTERS_NVTX_SCOPES_H_

namespace ashlar::adapters {

// Any thread, any number of times; ranges that were pushed before are not followed.
void FollowNvtxRanges();

}  // namespace ashlar::adapters

#endif  // ASHLAR_ALLOCATOR_ADAPTERS_NVTX_SCOPES_H_
