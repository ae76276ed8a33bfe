// Memory of this process for others of the machine, and theirs for this one, by CUDA's IPC.
//
//   ShareableHandle handle = ShareMemory(base, offset);        // handle.handle goes to the other process
//   std::shared_ptr<void> base = OpenShared(handle.handle);    // there; the same for everyone who opens it
//
// Threads: any.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_MEMORY_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_MEMORY_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstddef>
#include <memory>
#include <string>

namespace ashlar::torch {

using c10::cuda::CUDACachingAllocator::ShareableHandle;

// `base`: what cudaMalloc gave.
ShareableHandle ShareMemory(void* base, std::ptrdiff_t offset);
// On the current device. The memory is open until the last who holds it lets go.
std::shared_ptr<void> OpenShared(const std::string& handle);

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_MEMORY_H_
