// What the plug-in throws. Where memory is out it is c10::OutOfMemoryError, so that a program's
// `except torch.OutOfMemoryError` holds. The class is taken from the libc10_cuda.so that the process has loaded, by its
// symbols: none of PyTorch's headers or libraries is needed to build. Where it cannot be had, what is thrown derives
// from std::bad_alloc; PyTorch makes a RuntimeError with our text of it.
//
//   if (status != ASHLAR_OK) ThrowFailure(status, device);
//
// Threads: any.
#ifndef ASHLAR_ALLOCATOR_ADAPTERS_TORCH_FAILURE_H_
#define ASHLAR_ALLOCATOR_ADAPTERS_TORCH_FAILURE_H_

#include <string>

#include "ashlar.h"

namespace ashlar::torch {

// With the text of ashlar_last_error, which begins "CUDA out of memory." where memory is out: programs look for that.
[[noreturn]] void ThrowFailure(ashlar_status status, int device, const std::string& text = ashlar_last_error());

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_ADAPTERS_TORCH_FAILURE_H_
