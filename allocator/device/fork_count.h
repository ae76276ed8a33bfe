// How often this process has come out of a fork as the child: what a device opened before the last fork is the
// parent's.
#ifndef ASHLAR_ALLOCATOR_DEVICE_FORK_COUNT_H_
#define ASHLAR_ALLOCATOR_DEVICE_FORK_COUNT_H_

#include <cstdint>

namespace ashlar::device {

// Counts the forks since the first call in any ancestor; any thread.
std::uint64_t ForkCount();

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_FORK_COUNT_H_
