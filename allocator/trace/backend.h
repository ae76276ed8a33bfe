// What PyTorch ran on, as a snapshot of it tells. Its allocator for Intel's GPUs is one of its own, and writes fewer
// settings; on AMD's GPUs it is CUDA's, translated, and told where a setting or a frame of C++ has HIP's name.
#ifndef ASHLAR_ALLOCATOR_TRACE_BACKEND_H_
#define ASHLAR_ALLOCATOR_TRACE_BACKEND_H_

#include <cstdint>

#include "allocator/trace/snapshot.h"

namespace ashlar::trace {

enum class Backend : std::uint8_t { kCuda, kXpu, kHip };

Backend BackendOf(const Snapshot& snapshot);

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_BACKEND_H_
