// Blocks: where a request of PyTorch's comes in, and where it fails.
#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "allocator/plugins/torch/failure.h"
#include "allocator/plugins/torch_native/allocator.h"
#include "allocator/plugins/torch_native/own_memory.h"

namespace ashlar::torch {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 60;

void DeleteBlock(void* memory) { NativeAllocator::Instance().Free(memory); }

const c10::impl::PyInterpreter* TracingInterpreter() { return c10::impl::GPUTrace::get_trace(); }

// Without the cache.
void DeleteUncached(void* memory) {
  if (const auto* interpreter = TracingInterpreter(); interpreter != nullptr)
    (*interpreter)->trace_gpu_memory_deallocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(memory));
  C10_CUDA_CHECK_WARN(cudaFree(memory));
}

void* AllocateUncached(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes > 0) C10_CUDA_CHECK(cudaMalloc(&memory, bytes));
  if (const auto* interpreter = TracingInterpreter(); interpreter != nullptr)
    (*interpreter)->trace_gpu_memory_allocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(memory));
  return memory;
}

cudaStream_t StreamOn(c10::DeviceIndex device) { return c10::cuda::getCurrentCUDAStream(device).stream(); }

ashlar_statistics FiguresOf(const ashlar_allocator* allocator) {
  ashlar_statistics out{};
  out.struct_size = sizeof(out);
  ashlar_get_statistics(allocator, &out);
  return out;
}

// To torch.profiler, where it asks for memory. `sign`: 1, or -1 for a free.
void TellProfiler(ashlar_allocator* allocator, void* memory, int sign) {
  ashlar_block block{};
  block.struct_size = sizeof(block);
  if (ashlar_find_block(allocator, memory, &block) != ASHLAR_OK) return;
  const ashlar_statistics figures = FiguresOf(allocator);
  const auto size_bytes = static_cast<std::int64_t>(block.size_bytes);
  const std::int64_t before = sign < 0 ? size_bytes : 0;  // a free is told before it is done
  const auto device = static_cast<c10::DeviceIndex>(ashlar_device(allocator));
  c10::reportMemoryUsageToProfiler(memory, sign * size_bytes, figures.allocated_bytes - before, figures.reserved_bytes,
                                   c10::Device(c10::DeviceType::CUDA, device));
}

}  // namespace

// CUDA need not be asked where there is one device.
c10::DeviceIndex NativeAllocator::CurrentDevice() const {
  if (device_count_.load(std::memory_order_relaxed) == 1) return 0;
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) [[unlikely]]
    C10_CUDA_CHECK(error);
  return static_cast<c10::DeviceIndex>(device);
}

inline void NativeAllocator::Tell(ashlar_allocator* allocator, void* memory) {
  if (c10::memoryProfilingEnabled()) [[unlikely]]
    TellProfiler(allocator, memory, 1);
  if (const auto* interpreter = TracingInterpreter(); interpreter != nullptr) [[unlikely]]
    (*interpreter)->trace_gpu_memory_allocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(memory));
}

void* NativeAllocator::Allocate(std::size_t bytes, c10::DeviceIndex device, cudaStream_t stream) {
  if (bytes == 0) return nullptr;
  ashlar_allocator* const allocator = AllocatorOf(device);
  const GatheredScope scope(Gather(RecordContext::STATE));
  void* memory = nullptr;
  const ashlar_status status = ashlar_allocate(allocator, bytes, stream, &memory);
  if (status != ASHLAR_OK) [[unlikely]]
    Fail(status, device, bytes);
  Tell(allocator, memory);
  return memory;
}

// The text of the failure is the last one, whatever the observers call. No lock is held.
void NativeAllocator::Fail(ashlar_status status, c10::DeviceIndex device, std::size_t bytes) {
  const std::string text = ashlar_last_error();
  if (const std::exception_ptr thrown = TakeThrown(); thrown != nullptr) std::rethrow_exception(thrown);
  if (status != ASHLAR_OUT_OF_MEMORY) ThrowFailure(status, device, text);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  C10_CUDA_IGNORE_ERROR(cudaMemGetInfo(&free_bytes, &total_bytes));
  const auto allowed_bytes = static_cast<std::size_t>(getMemoryFraction(device) * static_cast<double>(total_bytes));
  const ashlar_statistics figures = FiguresOf(AllocatorOf(device));
  c10::reportOutOfMemoryToProfiler(static_cast<std::int64_t>(bytes), figures.allocated_bytes, figures.reserved_bytes,
                                   c10::Device(c10::DeviceType::CUDA, device));
  const std::int64_t rejections = RejectionsOf(device);
  const bool is_rejected = Of(device).rejections.exchange(rejections) < rejections;
  std::vector<native::OutOfMemoryObserver> observers;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    observers = is_rejected ? rejection_observers_ : failure_observers_;
  }
  for (const auto& observer : observers) {
    observer(device, bytes, is_rejected ? figures.allocated_bytes : allowed_bytes,
             is_rejected ? total_bytes : free_bytes);
  }
  ThrowFailure(status, device, text);
}

c10::DataPtr NativeAllocator::allocate(std::size_t bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, bytes < kMostBytes, "CUDA out of memory. Tried to allocate more than 1EB memory.");
  const c10::DeviceIndex device = CurrentDevice();
  const c10::Device place(c10::DeviceType::CUDA, device);
  if (!is_enabled_.load(std::memory_order_relaxed)) [[unlikely]] {
    void* memory = AllocateUncached(bytes);
    return {memory, memory, DeleteUncached, place};
  }
  void* memory = Allocate(bytes, device, StreamOn(device));
  return {memory, memory, DeleteBlock, place};
}

c10::DataPtr NativeAllocator::allocateWithAddress(std::size_t bytes, void* address) {
  TORCH_CHECK(is_enabled_, "ashlar: allocateWithAddress: memory is not cached (caching_allocator_enable(False))");
  const c10::DeviceIndex device = CurrentDevice();
  const c10::Device place(c10::DeviceType::CUDA, device);
  if (bytes == 0) return {nullptr, nullptr, DeleteBlock, place};
  ashlar_allocator* const allocator = AllocatorOf(device);
  const GatheredScope scope(Gather(RecordContext::STATE));
  const ashlar_status status = ashlar_allocate_exactly(allocator, bytes, StreamOn(device), address);
  TORCH_CHECK(status == ASHLAR_OK, "ashlar: allocateWithAddress: ", ashlar_last_error());
  Tell(allocator, address);
  return {address, address, DeleteBlock, place};
}

c10::DeleterFnPtr NativeAllocator::raw_deleter() const { return is_enabled_ ? DeleteBlock : DeleteUncached; }

void NativeAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  C10_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice));
}

void* NativeAllocator::raw_alloc(std::size_t bytes) {
  const c10::DeviceIndex device = CurrentDevice();
  return Allocate(bytes, device, StreamOn(device));
}

void* NativeAllocator::raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) {
  return Allocate(bytes, CurrentDevice(), stream);
}

void NativeAllocator::raw_delete(void* memory) { Free(memory); }

// Frees run in destructors, which may not throw.
void NativeAllocator::FreeOn(ashlar_allocator* allocator, void* memory) {
  if (c10::memoryProfilingEnabled()) [[unlikely]]
    TellProfiler(allocator, memory, -1);
  if (ashlar_free(allocator, memory) == ASHLAR_OK) [[likely]]
    return;
  std::fprintf(stderr, "ashlar: torch: free of %p: %s\n", memory, ashlar_last_error());
}

void NativeAllocator::Free(void* memory) {
  if (memory == nullptr) return;
  const GatheredScope scope(Gather(RecordContext::ALL));
  if (const auto* interpreter = TracingInterpreter(); interpreter != nullptr) [[unlikely]]
    (*interpreter)->trace_gpu_memory_deallocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(memory));
  FreeOn(AllocatorThatHolds(memory), memory);
}

// Memory of others is passed over, as PyTorch's own allocator does.
void NativeAllocator::recordStream(const c10::DataPtr& memory, c10::cuda::CUDAStream stream) {
  if (!memory || memory.get_deleter() != DeleteBlock) return;
  ashlar_allocator* const allocator = OpenAllocator(memory.device().index());
  if (allocator == nullptr) return;
  const ashlar_status status = ashlar_record_stream(allocator, memory.get(), stream.stream());
  if (status != ASHLAR_OK) ThrowFailure(status, memory.device().index());
}

void NativeAllocator::emptyCache(c10::MempoolId_t pool) {
  const GatheredScope scope(Gather(RecordContext::ALL));
  ForEachOpen([&](int device, ashlar_allocator* allocator) {
    if (pool == c10::MempoolId_t{0, 0}) return Expect(ashlar_empty_cache(allocator), device);
    const ashlar_pool id{pool.first, pool.second};
    if (ashlar_pool_users(allocator, id) == 0) Expect(ashlar_empty_pool(allocator, id), device);
  });
}

void NativeAllocator::enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex other) {
  const c10::cuda::CUDAGuard guard(device);
  const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    C10_CUDA_CLEAR_ERROR();
  } else {
    C10_CUDA_CHECK(error);
  }
}

// Pages of expandable segments are mapped for their own device alone: a copy between two devices goes by the function
// that names both.
cudaError_t NativeAllocator::memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                         cudaStream_t stream, bool has_peer_access) {
  const bool is_expandable = c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments();
  if (to_device == from_device || (has_peer_access && !is_expandable))
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream);
}

}  // namespace ashlar::torch
