#include "allocator/plugins/torch_native/own_memory.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>

#include <cstdio>
#include <utility>

namespace ashlar::torch {
namespace {

using Owner = std::shared_ptr<CUDAAllocator>;

thread_local std::exception_ptr thrown;

// A capture that is under way is not broken, whatever the allocator asks of CUDA. No exception may pass our library.
void* AllocateOwn(void* context, std::size_t bytes) {
  try {
    const c10::cuda::CUDAStreamCaptureModeGuard relaxed{cudaStreamCaptureModeRelaxed};
    return (*static_cast<Owner*>(context))->raw_alloc(bytes);
  } catch (...) {
    thrown = std::current_exception();
    return nullptr;
  }
}

void FreeOwn(void* context, void* memory) {
  try {
    (*static_cast<Owner*>(context))->raw_delete(memory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ashlar: torch: the allocator of a MemPool did not take %p back: %s\n", memory, error.what());
  } catch (...) {
    std::fprintf(stderr, "ashlar: torch: the allocator of a MemPool did not take %p back\n", memory);
  }
}

}  // namespace

ashlar_status SetOwnMemory(ashlar_allocator* allocator, const c10::MempoolId_t& pool, Owner its_own) {
  auto owner = std::make_unique<Owner>(std::move(its_own));
  return ashlar_set_pool_memory(allocator, {pool.first, pool.second}, AllocateOwn, FreeOwn, owner.release(),
                                [](void* context) { delete static_cast<Owner*>(context); });
}

std::exception_ptr TakeThrown() { return std::exchange(thrown, nullptr); }

}  // namespace ashlar::torch
