// Counts how often this process has come out of a fork as the child. A device that was opened before the last fork
// belongs to the parent.
#ifndef ASHLAR_ALLOCATOR_DEVICE_FORK_COUNT_H_
#define ASHLAR_ALLOCATOR_DEVICE_FORK_COUNT_H_

#include <cstdint>

namespace ashlar::device {

// Counts the forks since the first call in any ancestor; any thread.
std::uint64_t ForkCount();

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_FORK_COUNT_H_
