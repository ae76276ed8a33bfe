// The functions of libashlar_torch.so, which PyTorch calls: torch.cuda.CUDAPluggableAllocator finds them by name. They
// stand on include/ashlar.h and decide nothing; all of them serve the process's allocator of the device
// (ashlar_process_allocator), so that its settings are ASHLAR_CONF or those of ashlar_configure_process.
//
//   plugin = torch.cuda.memory.CUDAPluggableAllocator(path, "ashlar_torch_alloc", "ashlar_torch_free")
//   plugin.allocator().set_record_stream_fn(address of ashlar_torch_record_stream)      (each setter likewise)
//   torch.cuda.memory.change_current_allocator(plugin)                                  (before CUDA's first use)
//
// python/ashlar_gpu/torch.py does all of it. The functions after "pools" take C++ values, which libstdc++ lays out:
// this library is linked to the libstdc++.so.6 that PyTorch is linked to.
//
// Errors: what PyTorch checks by a null pointer returns one; everything else throws, with the text of
// ashlar_last_error. No memory is torch.OutOfMemoryError (failure.h). A free cannot fail: an address that is none is
// one line on stderr.
//
// Threads: any thread may call any function at any time. Sizes are bytes.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_PLUGIN_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_PLUGIN_H_

#include <cstddef>
#include <functional>
#include <utility>

#include "ashlar.h"

namespace ashlar::torch {

using PoolId = std::pair<unsigned long long, unsigned long long>;  // c10::MempoolId_t
using StreamFilter = std::function<bool(void*)>;                   // of a cudaStream_t

}  // namespace ashlar::torch

extern "C" {

// --- the whole process: CUDAPluggableAllocator ---
ASHLAR_API void* ashlar_torch_alloc(std::size_t bytes, int device, void* stream);
ASHLAR_API void ashlar_torch_free(void* memory, std::size_t bytes, int device, void* stream) noexcept;

// --- one torch.cuda.MemPool: PyTorch keeps its own accounting and asks for segments; null is out of memory to it ---
ASHLAR_API void* ashlar_torch_segment_alloc(std::size_t bytes, int device, void* stream) noexcept;
// What PyTorch gives back goes back to the device.
ASHLAR_API void ashlar_torch_segment_free(void* memory, std::size_t bytes, int device, void* stream) noexcept;

// --- the optional setters ---
// set_init_fn. Nothing to do: an allocator opens with the first request of its device.
ASHLAR_API void ashlar_torch_init(int device_count);
// set_reset_fn: torch.cuda.empty_cache(), of all devices in use.
ASHLAR_API void ashlar_torch_reset();
// set_memory_fraction_fn.
ASHLAR_API void ashlar_torch_memory_fraction(double fraction, int device);
// set_base_alloc_fn: the memory of the device in which `memory` lies, for CUDA's IPC. `bytes` may be null.
ASHLAR_API void* ashlar_torch_base_alloc(void* memory, std::size_t* bytes);
// set_record_stream_fn. Memory of others is passed over, as PyTorch's own allocator does.
ASHLAR_API void ashlar_torch_record_stream(void* memory, void* stream);

// --- pools: set_begin_allocate_to_pool, set_end_allocate_to_pool_fn, set_release_pool ---
// PyTorch begins one for a graph that it is about to capture; it tells nobody so, and nothing else comes this way.
ASHLAR_API void ashlar_torch_begin_allocate_to_pool(int device, ashlar::torch::PoolId pool,
                                                    ashlar::torch::StreamFilter filter);
ASHLAR_API void ashlar_torch_end_allocate_to_pool(int device, ashlar::torch::PoolId pool);
ASHLAR_API void ashlar_torch_release_pool(int device, ashlar::torch::PoolId pool);

// --- for python/ashlar_gpu ---
// The device's allocator, or null where PyTorch has not used the device.
ASHLAR_API ashlar_allocator* ashlar_torch_open_allocator(int device);
// `opened` is called when PyTorch uses a device for the first time, before the request; `failed` when a request of
// ashlar_torch_alloc is about to fail, while what the program holds is still there. No lock is held. Null: nobody.
using ashlar_torch_opened = void (*)(int device);
using ashlar_torch_failed = void (*)(int device, std::size_t bytes);
ASHLAR_API void ashlar_torch_observe(ashlar_torch_opened opened, ashlar_torch_failed failed);
// Requests of the calling thread go to the pool, until ashlar_end_pool: what torch.cuda.use_mem_pool does.
ASHLAR_API ashlar_status ashlar_torch_begin_thread_pool(int device, ashlar_pool pool);
}

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_PLUGIN_H_
