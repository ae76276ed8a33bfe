// Memory of this process for others of the machine, and theirs for this one: by CUDA's IPC what cudaMalloc gave, and by
// file descriptors pages of expandable segments.
//
//   ShareableHandle handle = ShareMemory(base, offset);        // handle.handle goes to the other process
//   std::shared_ptr<void> base = OpenShared(handle.handle);    // there; the same for everyone who opens it
//
// Handles are those of PyTorch's own allocator, which may be in the other process. Threads: any.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_MEMORY_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_MEMORY_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ashlar::torch {

using c10::cuda::CUDACachingAllocator::ShareableHandle;

// `base`: what cudaMalloc gave.
ShareableHandle ShareMemory(void* base, std::ptrdiff_t offset);
// Pages of one size that follow each other, by their descriptors.
ShareableHandle SharePages(std::size_t page_bytes, const std::vector<int>& files, std::ptrdiff_t offset);
// On the current device. The memory is open until the last who holds it lets go.
std::shared_ptr<void> OpenShared(const std::string& handle);

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_MEMORY_H_
