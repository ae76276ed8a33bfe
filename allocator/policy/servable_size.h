// Computes the greatest request that given memory would serve, for the report on a request that was too great. Sizes
// are rounded, in bytes; 0 = none. The size classes are those of docs/internals/policy.md: a small request has at most
// 1 MiB, a large one more, and neither is served from the other's memory.
#ifndef ASHLAR_ALLOCATOR_POLICY_SERVABLE_SIZE_H_
#define ASHLAR_ALLOCATOR_POLICY_SERVABLE_SIZE_H_

#include <cstdint>

#include "allocator/policy/options.h"

namespace ashlar::policy {

// From a run of free bytes of its lane.
std::uint64_t LargestInRun(bool is_small, std::uint64_t run_bytes);

// From `free_bytes` of the device: a new segment, or, with expandable segments, pages that continue the `tail_bytes`
// free at the end of one. It may be greater than a request that is refused: 18 MiB of the device serve a request of
// 12 MiB, not one of 5 MiB, whose segment has 20.
std::uint64_t LargestFromDevice(bool is_small, std::uint64_t free_bytes, std::uint64_t tail_bytes,
                                const Options& options);

// Whether `free_bytes` of the device serve a request of this rounded size, all of it, in one of these ways.
bool IsServedFromDevice(std::uint64_t rounded_bytes, std::uint64_t free_bytes, std::uint64_t tail_bytes,
                        const Options& options);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_SERVABLE_SIZE_H_
