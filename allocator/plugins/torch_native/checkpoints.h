// A checkpoint of a private pool: which blocks are live in it, so that CUDA graph trees can go back there.
//
//   std::shared_ptr<AllocatorState> state = CheckpointOf(allocator, pool);
//   CheckpointDelta delta = GoBack(allocator, device, *state, deleter);   // addresses freed, and blocks that live
//   again
//
// Going back is what PyTorch's own allocator does, request by request, so that histories read the same: all live blocks
// are freed, each block of the checkpoint is allocated where it was, and those that were free then are freed again.
// Threads: any; nobody else allocates in the pool meanwhile.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_CHECKPOINTS_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_CHECKPOINTS_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <memory>
#include <unordered_set>

#include "ashlar.h"

namespace ashlar::torch {

using c10::cuda::CUDACachingAllocator::AllocatorState;
using c10::cuda::CUDACachingAllocator::CheckpointDelta;

std::shared_ptr<AllocatorState> CheckpointOf(ashlar_allocator* allocator, const c10::MempoolId_t& pool);
CheckpointDelta GoBack(ashlar_allocator* allocator, c10::DeviceIndex device, const AllocatorState& state,
                       c10::DeleterFnPtr deleter);
// Whether exactly these blocks are live in the pool.
bool HasExactly(const ashlar_allocator* allocator, const c10::MempoolId_t& pool,
                const std::unordered_set<void*>& expected);

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_CHECKPOINTS_H_
