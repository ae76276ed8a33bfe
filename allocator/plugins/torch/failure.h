// What the plug-in throws. Where memory is out it is c10::OutOfMemoryError, so that a program's
// `except torch.OutOfMemoryError` holds. The class is taken from the libc10_cuda.so that the process has loaded, by its
// symbols: none of PyTorch's headers or libraries is needed to build. Where it cannot be had, what is thrown derives
// from std::bad_alloc; PyTorch makes a RuntimeError with our text of it.
//
//   if (status != ASHLAR_OK) ThrowFailure(status, device);
//
// Threads: any.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_FAILURE_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_FAILURE_H_

#include <cstdint>
#include <string>

#include "ashlar.h"

namespace ashlar::torch {

// c10::Error of PyTorch as memory that one of its constructors fills: Error(SourceLocation, std::string). A release
// that was built for the C++ library of before GCC 5, as 2.6 for CUDA 12.4 was, takes strings of that layout.
//
// Threads: any.

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

// With the text of ashlar_last_error, which begins "CUDA out of memory." where memory is out: programs look for that.
[[noreturn]] void ThrowFailure(ashlar_status status, int device, const std::string& text = ashlar_last_error());

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_FAILURE_H_
