// The allocator as a memory resource of RMM, for all of RMM's versions that PyPI's librmm wheels have:
//
//   ashlar::UseInRmm(0);                                // RMM's containers on device 0 allocate from it now
//   rmm::device_uvector<int> values(1 << 20, stream);   // and so do cuDF, cuML, ...
//
// ashlar::RmmResource is a cuda::mr resource from 26.06 on (any_resource and resource_ref hold copies of it), and a
// rmm::mr::device_memory_resource before, which outlives what was allocated from it. Where the types of two builds of
// RMM must not meet, its callback resource takes the allocator as two functions:
//
//   static ashlar::SharedAllocator allocator = ashlar::SharedAllocator::OfProcess(0);
//   rmm::mr::callback_memory_resource resource(ashlar::RmmAllocate(), ashlar::RmmDeallocate(), &allocator, &allocator);
//
// Streams, alignment, 0 bytes and equality: as ashlar::CudaResource (<ashlar/cuda_mr.h>). Errors: rmm::out_of_memory
// where memory is not enough, as RMM's failure callback wants it, and rmm::bad_alloc for all else; their text is ours.
// Threads: any. Links librmm.
#ifndef ASHLAR_RMM_H_
#define ASHLAR_RMM_H_

#include <ashlar/cuda_stream.h>
#include <ashlar/handle.h>

#include <rmm/cuda_device.hpp>
#include <rmm/version_config.hpp>

#if __has_include(<rmm/error.hpp>)
#include <rmm/error.hpp>
#else
#include <rmm/detail/error.hpp>
#endif
#if __has_include(<rmm/mr/per_device_resource.hpp>)
#include <rmm/mr/per_device_resource.hpp>
#else
#include <rmm/mr/device/per_device_resource.hpp>
#endif

#include <cstddef>
#include <utility>

#if RMM_VERSION_MAJOR * 100 + RMM_VERSION_MINOR >= 2606
#define ASHLAR_RMM_HAS_ANY_RESOURCE 1
#include <ashlar/cuda_mr.h>
#else
#include <rmm/cuda_stream_view.hpp>
#endif

namespace ashlar {

// Runs `allocate`; what it throws becomes what RMM throws.
template <typename Allocate>
void* AllocateForRmm(Allocate allocate) {
  try {
    return allocate();
  } catch (const OutOfMemoryError& error) {
    throw rmm::out_of_memory(error.what());
  } catch (const CallError& error) {
    throw rmm::bad_alloc(error.what());
  }
}

// RMM's stream, which is rmm::cuda_stream_view or, from 26.10 on, cuda::stream_ref.
template <typename Stream>
auto RmmStreamOf(const Stream& stream) -> decltype(StreamOf(stream.get())) {
  return StreamOf(stream.get());
}
template <typename Stream>
auto RmmStreamOf(const Stream& stream) -> decltype(StreamOf(stream.value())) {
  return StreamOf(stream.value());
}

// The functions of a rmm::mr::callback_memory_resource, whose arguments are a SharedAllocator's address.
struct RmmAllocate {
  template <typename Stream>
  void* operator()(std::size_t bytes, Stream stream, void* allocator) const {
    return AllocateForRmm(
        [&] { return static_cast<SharedAllocator*>(allocator)->Allocate(bytes, RmmStreamOf(stream)); });
  }
};
struct RmmDeallocate {
  template <typename Stream>
  void operator()(void* memory, std::size_t, Stream stream, void* allocator) const noexcept {
    static_cast<SharedAllocator*>(allocator)->Free(memory, RmmStreamOf(stream));
  }
};

#ifdef ASHLAR_RMM_HAS_ANY_RESOURCE

class RmmResource {
 public:
  explicit RmmResource(SharedAllocator allocator) : resource_(std::move(allocator)) {}
  const SharedAllocator& allocator() const noexcept { return resource_.allocator(); }

  void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = CudaResource::kDefaultAlignment) {
    return AllocateForRmm([&] { return resource_.allocate(stream, bytes, alignment); });
  }
  void deallocate(cuda::stream_ref stream, void* memory, std::size_t bytes,
                  std::size_t alignment = CudaResource::kDefaultAlignment) noexcept {
    resource_.deallocate(stream, memory, bytes, alignment);
  }
  void* allocate_sync(std::size_t bytes, std::size_t alignment = CudaResource::kDefaultAlignment) {
    return AllocateForRmm([&] { return resource_.allocate_sync(bytes, alignment); });
  }
  void deallocate_sync(void* memory, std::size_t bytes,
                       std::size_t alignment = CudaResource::kDefaultAlignment) noexcept {
    resource_.deallocate_sync(memory, bytes, alignment);
  }

  friend bool operator==(const RmmResource& a, const RmmResource& b) noexcept { return a.resource_ == b.resource_; }
  friend bool operator!=(const RmmResource& a, const RmmResource& b) noexcept { return !(a == b); }
  friend void get_property(const RmmResource&, cuda::mr::device_accessible) noexcept {}

 private:
  CudaResource resource_;
};
static_assert(cuda::mr::resource_with<RmmResource, cuda::mr::device_accessible>);

// RMM's resource of GPU `device` is the process's allocator from now on. Throws CallError: no such GPU.
inline void UseInRmm(int device) {
  rmm::mr::set_per_device_resource(rmm::cuda_device_id{device}, RmmResource(SharedAllocator::OfProcess(device)));
}

#else

class RmmResource final : public rmm::mr::device_memory_resource {
 public:
  explicit RmmResource(SharedAllocator allocator) : allocator_(std::move(allocator)) {}
  const SharedAllocator& allocator() const noexcept { return allocator_; }

 private:
  void* do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override {
    return RmmAllocate()(bytes, stream, &allocator_);
  }
  void do_deallocate(void* memory, std::size_t bytes, rmm::cuda_stream_view stream) noexcept override {
    RmmDeallocate()(memory, bytes, stream, &allocator_);
  }
  bool do_is_equal(const rmm::mr::device_memory_resource& other) const noexcept override {
    const auto* const one = dynamic_cast<const RmmResource*>(&other);
    return one != nullptr && one->allocator_ == allocator_;
  }

  SharedAllocator allocator_;
};

// RMM's resource of GPU `device` is the process's allocator from now on. Throws CallError: no such GPU.
inline void UseInRmm(int device) {
  // RMM keeps the address until the process ends, and so does the resource.
  rmm::mr::set_per_device_resource(rmm::cuda_device_id{device}, new RmmResource(SharedAllocator::OfProcess(device)));
}

#endif

}  // namespace ashlar

#endif  // ASHLAR_RMM_H_
