// Pools whose segments come from an allocator of their own: torch.cuda.MemPool(allocator).
//
//   if (SetOwnMemory(AllocatorOf(device), pool, std::move(its_allocator)) != ASHLAR_OK) ...
//
// Its raw_alloc and raw_delete run under our lock, as they do under that of PyTorch's own allocator; they must not use
// our allocator. Threads: any.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_OWN_MEMORY_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_OWN_MEMORY_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <exception>
#include <memory>

#include "ashlar.h"

namespace ashlar::torch {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

// It lives until the pool has ended and has given back all memory. The pool is made, with one user.
ashlar_status SetOwnMemory(ashlar_allocator* allocator, const c10::MempoolId_t& pool,
                           std::shared_ptr<CUDAAllocator> its_own);
// What a raw_alloc threw in this thread since this was asked last; nullptr: nothing.
std::exception_ptr TakeThrown();

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_OWN_MEMORY_H_
