// The age of free blocks at a recording's start: how many searches of their pool there were since they became free.
// Garbage collection goes by it, and asks only about blocks that fill a segment, so only those have an age. A free
// block has no request, so its age stands in that field; snapshots of other origin may hold anything there.
#ifndef ASHLAR_ALLOCATOR_TRACE_FREE_AGE_H_
#define ASHLAR_ALLOCATOR_TRACE_FREE_AGE_H_

#include <cstdint>
#include <optional>

#include "allocator/trace/snapshot.h"

namespace ashlar::trace {

inline void SetFreeAge(SnapshotBlock& block, std::uint64_t searches) { block.requested_bytes = searches; }

// Of a block of RecordedStart; nullopt: the recording does not say, or the block is not free.
inline std::optional<std::uint64_t> FreeAgeOf(const SnapshotBlock& block) {
  return block.state == BlockState::kFree ? block.requested_bytes : std::nullopt;
}

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_FREE_AGE_H_
