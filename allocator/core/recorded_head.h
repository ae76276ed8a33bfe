// What a recording says of the allocator it is of, as a snapshot without events and segments.
#ifndef ASHLAR_ALLOCATOR_CORE_RECORDED_HEAD_H_
#define ASHLAR_ALLOCATOR_CORE_RECORDED_HEAD_H_

#include "allocator/core/caching_allocator.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {

// Only from within WhileStill. The settings are printed as PyTorch names and prints its own.
trace::Snapshot RecordedHeadOf(const CachingAllocator& allocator, int device);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_RECORDED_HEAD_H_
