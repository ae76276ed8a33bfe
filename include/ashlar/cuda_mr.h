// The allocator as a memory resource of CCCL (cuda::mr), for each of its three vocabularies: up to 3.0 (resource,
// async_resource: CUDA 12, 13.0), 3.1 and later (synchronous_resource, resource), and 3.2 and later, where
// cuda::mr::any_resource and resource_ref hold a copy of it.
//
//   ashlar::CudaResource resource(ashlar::SharedAllocator::OfProcess(0));
//   cuda::mr::any_resource<cuda::mr::device_accessible> any(resource);      // 3.2 and later
//   void* memory = any.allocate(stream, 300 << 20, 256);
//   any.deallocate(stream, memory, 300 << 20, 256);                         // in the order of `stream`
//
// Up to 3.0 the program defines LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE before the first header of CCCL's.
//
// Memory that is freed on another stream than its own is reused once that stream's work so far is done. The functions
// without a stream give memory that all streams may use at once, and wait for the default stream's work for that; what
// is given back without one is no longer used by any stream. 0 bytes: nullptr. Alignment: any, as SharedAllocator.
// Errors: ashlar::OutOfMemoryError, a std::bad_alloc, where memory is not enough, else ashlar::CallError.
// Threads: any. Two are equal where they share an allocator.
#ifndef ASHLAR_CUDA_MR_H_
#define ASHLAR_CUDA_MR_H_

#include <ashlar/cuda_stream.h>
#include <ashlar/handle.h>

#include <cstddef>
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <utility>

namespace ashlar {

class CudaResource {
 public:
  static constexpr std::size_t kDefaultAlignment = 256;  // cudaMalloc's, as in CCCL
#if CCCL_VERSION >= 3002000
  using default_queries = cuda::mr::properties_list<cuda::mr::device_accessible>;  // cuda::make_buffer asks for it
#endif

  // The process's allocator of this thread's device.
  CudaResource() : CudaResource(SharedAllocator::OfProcess(CurrentDevice())) {}
  explicit CudaResource(SharedAllocator allocator) : allocator_(std::move(allocator)) {}

  const SharedAllocator& allocator() const noexcept { return allocator_; }

  // In the order of a stream: 3.1 and later, then the words of 3.0.
  void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = kDefaultAlignment) {
    return allocator_.Allocate(bytes, alignment, StreamOf(stream.get()));
  }
  void deallocate(cuda::stream_ref stream, void* memory, std::size_t,
                  std::size_t alignment = kDefaultAlignment) noexcept {
    allocator_.FreeAligned(memory, alignment, StreamOf(stream.get()));
  }
  void* allocate_async(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream) {
    return allocate(stream, bytes, alignment);
  }
  void* allocate_async(std::size_t bytes, cuda::stream_ref stream) { return allocate(stream, bytes); }
  void deallocate_async(void* memory, std::size_t bytes, std::size_t alignment, cuda::stream_ref stream) noexcept {
    deallocate(stream, memory, bytes, alignment);
  }
  void deallocate_async(void* memory, std::size_t bytes, cuda::stream_ref stream) noexcept {
    deallocate(stream, memory, bytes);
  }

  // Without a stream: 3.1 and later, then the words of 3.0.
  void* allocate_sync(std::size_t bytes, std::size_t alignment = kDefaultAlignment) {
    return AllocateForAllStreams(allocator_, bytes, alignment);
  }
  void deallocate_sync(void* memory, std::size_t, std::size_t alignment = kDefaultAlignment) noexcept {
    allocator_.FreeAligned(memory, alignment);
  }
  void* allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(void* memory, std::size_t bytes, std::size_t alignment = kDefaultAlignment) noexcept {
    deallocate_sync(memory, bytes, alignment);
  }

  friend bool operator==(const CudaResource& a, const CudaResource& b) noexcept { return a.allocator_ == b.allocator_; }
  friend bool operator!=(const CudaResource& a, const CudaResource& b) noexcept { return !(a == b); }
  friend void get_property(const CudaResource&, cuda::mr::device_accessible) noexcept {}

 private:
  SharedAllocator allocator_;
};

#if CCCL_VERSION >= 3001000
static_assert(cuda::mr::synchronous_resource_with<CudaResource, cuda::mr::device_accessible>);
static_assert(cuda::mr::resource_with<CudaResource, cuda::mr::device_accessible>);
#else
static_assert(cuda::mr::resource_with<CudaResource, cuda::mr::device_accessible>);
static_assert(cuda::mr::async_resource_with<CudaResource, cuda::mr::device_accessible>);
#endif

}  // namespace ashlar

#endif  // ASHLAR_CUDA_MR_H_
