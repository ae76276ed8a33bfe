// What ashlar_visit_segments shows, in PyTorch's classes: snapshots, sizes of expandable segments, a pool's live
// blocks.
//
//   for (SegmentInfo& segment : SegmentsOf(allocator, history, pool)) ...
//
// Threads: any.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SEGMENTS_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SEGMENTS_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "allocator/plugins/torch_native/history.h"
#include "ashlar.h"

namespace ashlar::torch {

using c10::cuda::CUDACachingAllocator::SegmentInfo;
using c10::cuda::CUDACachingAllocator::StreamSegmentSize;

// visit(segment), by address.
void ForEachSegment(const ashlar_allocator* allocator, const std::function<void(const ashlar_segment&)>& visit);

inline bool IsDefaultPool(const c10::MempoolId_t& pool) { return pool.first == 0 && pool.second == 0; }
inline bool IsOf(const ashlar_segment& segment, const c10::MempoolId_t& pool) {
  return segment.pool.first == pool.first && segment.pool.second == pool.second;
}

// Of one pool, or of all where it is the default one.
std::vector<SegmentInfo> SegmentsOf(const ashlar_allocator* allocator, c10::DeviceIndex device,
                                    const DeviceHistory& history, const c10::MempoolId_t& pool);
// One for each stream and size class that has any.
std::vector<StreamSegmentSize> ExpandableSizesOf(const ashlar_allocator* allocator);
// The largest free block, or `least` where that is larger.
std::size_t LargestFreeBlock(const ashlar_allocator* allocator, std::size_t least);

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SEGMENTS_H_
