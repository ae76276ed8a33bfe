// The allocator as a memory resource of Thrust's, for vectors and for the memory that its algorithms take meanwhile:
//
//   ashlar::ThrustResource resource(ashlar::SharedAllocator::OfProcess(0), stream);
//   ashlar::ThrustAllocator<int> allocator(&resource);
//   thrust::device_vector<int, ashlar::ThrustAllocator<int>> values(1 << 20, allocator);
//   thrust::sort(thrust::cuda::par_nosync(allocator).on(stream), values.begin(), values.end());
//
// A resource is of one stream, at first the default one: memory is reused in its order, so that all that uses it runs
// there, or was waited for. 0 bytes: nullptr. Alignment: any, as SharedAllocator. Errors: ashlar::OutOfMemoryError, a
// std::bad_alloc, where memory is not enough, else ashlar::CallError. Threads: any. The resource outlives what was
// allocated from it. Two are equal where they share allocator and stream, also in versions of Thrust whose own
// comparison is always true.
#ifndef ASHLAR_THRUST_MR_H_
#define ASHLAR_THRUST_MR_H_

#include <ashlar/cuda_stream.h>
#include <ashlar/handle.h>
#include <thrust/mr/allocator.h>
#include <thrust/mr/memory_resource.h>
#include <thrust/system/cuda/pointer.h>

#include <cstddef>
#include <utility>

namespace ashlar {

class ASHLAR_API ThrustResource final : public thrust::mr::memory_resource<thrust::cuda::pointer<void>> {
 public:
  // The process's allocator of this thread's device, and the default stream.
  ThrustResource() : ThrustResource(SharedAllocator::OfProcess(CurrentDevice())) {}
  explicit ThrustResource(SharedAllocator allocator, cudaStream_t stream = nullptr)
      : allocator_(std::move(allocator)), stream_(StreamOf(stream)) {}

  const SharedAllocator& allocator() const noexcept { return allocator_; }

  pointer do_allocate(std::size_t bytes, std::size_t alignment) override {
    return pointer(allocator_.Allocate(bytes, alignment, stream_));
  }
  void do_deallocate(pointer memory, std::size_t, std::size_t alignment) override {
    allocator_.FreeAligned(memory.get(), alignment);
  }
  // Thrust declares it for the device too, where no resource is.
  _CCCL_HOST_DEVICE bool do_is_equal(const memory_resource& other) const noexcept override {
#ifdef __CUDA_ARCH__
    return this == &other;
#else
    const auto* const one = dynamic_cast<const ThrustResource*>(&other);
    return one != nullptr && *one == *this;
#endif
  }
  friend bool operator==(const ThrustResource& a, const ThrustResource& b) noexcept {
    return a.allocator_ == b.allocator_ && a.stream_ == b.stream_;
  }
  friend bool operator!=(const ThrustResource& a, const ThrustResource& b) noexcept { return !(a == b); }

 private:
  SharedAllocator allocator_;
  ashlar_stream stream_;
};

template <typename T>
using ThrustAllocator = thrust::mr::allocator<T, ThrustResource>;

}  // namespace ashlar

#endif  // ASHLAR_THRUST_MR_H_
