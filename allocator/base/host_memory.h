// What the host can give this process, in bytes.
#ifndef ASHLAR_ALLOCATOR_BASE_HOST_MEMORY_H_
#define ASHLAR_ALLOCATOR_BASE_HOST_MEMORY_H_

#include <cstdint>
#include <optional>

namespace ashlar {

// As Linux tells (MemAvailable of /proc/meminfo), and no more than the process's group may still take, which is a
// container's limit. nullopt: not known. Any thread.
std::optional<std::uint64_t> AvailableHostBytes();

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_HOST_MEMORY_H_
