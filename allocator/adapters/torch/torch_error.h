// c10::Error of PyTorch as memory that one of its constructors fills: Error(SourceLocation, std::string). A release
// that was built for the C++ library of before GCC 5, as 2.6 for CUDA 12.4 was, takes strings of that layout.
//
// Threads: any.
#ifndef ASHLAR_ALLOCATOR_ADAPTERS_TORCH_TORCH_ERROR_H_
#define ASHLAR_ALLOCATOR_ADAPTERS_TORCH_TORCH_ERROR_H_

#include <cstdint>

namespace ashlar::torch {

// c10::SourceLocation (c10/util/Exception.h, PyTorch 1.13 to 2.15).
struct SourceLocation {
  const char* function;
  const char* file;
  std::uint32_t line;
};

// The constructors by their names in libc10.so, and calls of what was found there. `self` is not filled yet.
extern const char kConstructName[];
extern const char kOldConstructName[];
void Construct(void* constructor, void* self, const SourceLocation& where, const char* text);
void OldConstruct(void* constructor, void* self, const SourceLocation& where, const char* text);

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_ADAPTERS_TORCH_TORCH_ERROR_H_
