// The allocator as a std::pmr::memory_resource (C++17):
//
//   ashlar::PmrResource resource(ashlar::SharedAllocator::OpenHost(1 << 30));
//   std::pmr::vector<float> values(&resource);
//
// Memory of a GPU is handed out as well, in the order of one stream; a container of std::pmr that touches its elements
// on the host needs host memory. 0 bytes are a block of their own. Alignment: any; above 512 bytes
// a block is larger by the difference. Errors:
// ashlar::OutOfMemoryError, a std::bad_alloc, where memory is not enough, else ashlar::CallError. Threads: any. The
// resource outlives what was allocated from it. Two resources are equal where they share an allocator.
#ifndef ASHLAR_PMR_H_
#define ASHLAR_PMR_H_

#include <ashlar/handle.h>

#include <cstddef>
#include <memory_resource>
#include <utility>

namespace ashlar {

class ASHLAR_API PmrResource final : public std::pmr::memory_resource {
 public:
  explicit PmrResource(SharedAllocator allocator, ashlar_stream stream = nullptr)
      : allocator_(std::move(allocator)), stream_(stream) {}

  const SharedAllocator& allocator() const noexcept { return allocator_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return allocator_.Allocate(bytes == 0 ? 1 : bytes, alignment, stream_);
  }
  void do_deallocate(void* memory, std::size_t, std::size_t alignment) override {
    allocator_.FreeAligned(memory, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    const auto* const one = dynamic_cast<const PmrResource*>(&other);
    return one != nullptr && one->allocator_ == allocator_;
  }

  SharedAllocator allocator_;
  ashlar_stream stream_;
};

}  // namespace ashlar

#endif  // ASHLAR_PMR_H_
