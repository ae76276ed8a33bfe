// An array that is read at random, its items not set at first: from 2 MiB on it asks for huge pages, so that a read
// misses the cache and not the page tables too. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_BASE_HUGE_ARRAY_H_
#define ASHLAR_ALLOCATOR_BASE_HUGE_ARRAY_H_

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ashlar {

template <typename T>
class HugeArray {
 public:
  HugeArray() = default;
  explicit HugeArray(std::size_t count)
      : items_(static_cast<T*>(Make(count * sizeof(T))), Deleter{count * sizeof(T)}) {}

  T* get() const { return items_.get(); }
  T& operator[](std::size_t i) const { return items_.get()[i]; }

 private:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static constexpr std::size_t kHugePageBytes = std::size_t{1} << 21;

  static constexpr std::align_val_t AlignmentOf(std::size_t bytes) {
    return std::align_val_t{bytes >= kHugePageBytes ? kHugePageBytes : std::size_t{64}};
  }
  static void* Make(std::size_t bytes) {
    void* memory = ::operator new(bytes, AlignmentOf(bytes));
#if defined(__linux__)
    // Advice: where it is not taken the pages are small.
    if (bytes >= kHugePageBytes) (void)madvise(memory, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
#endif
    return memory;
  }
  struct Deleter {
    std::size_t bytes = 0;
    void operator()(T* items) const { ::operator delete(items, AlignmentOf(bytes)); }
  };

  std::unique_ptr<T, Deleter> items_;
};

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_HUGE_ARRAY_H_
