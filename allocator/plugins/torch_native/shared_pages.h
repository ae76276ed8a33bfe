// Pages of expandable segments of another process, in this one: by the file descriptors that the other one has for
// them.
//
//   SharedPages pages(header, files);       // on the current device
//   void* base = pages.base();              // the first page; the others follow
//
// At its end the device is waited for, and the pages are let go. Failures are PyTorch's exceptions. Threads: any.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_PAGES_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_PAGES_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ashlar::torch {

// As PyTorch's own allocator writes it.
struct SharedPagesHeader {
  pid_t process = 0;
  std::size_t page_bytes = 0;
  std::size_t count = 0;
};
static_assert(sizeof(SharedPagesHeader) == 24);

class SharedPages {
 public:
  SharedPages(const SharedPagesHeader& header, const std::vector<int>& files);
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  void* base() const { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }

 private:
  void Import(pid_t process, const std::vector<int>& files);
  void Map(std::size_t count);
  void LetGo();

  const int device_;
  const std::size_t page_bytes_;
  std::size_t reserved_bytes_ = 0;
  unsigned long long address_ = 0;
  std::size_t mapped_ = 0;                   // pages
  std::vector<unsigned long long> handles_;  // of all pages
};

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_SHARED_PAGES_H_
