// allocator/plugins/torch/failure.h by PyTorch's own classes: this library is compiled against them.
#include "allocator/plugins/torch/failure.h"

#include <c10/util/Exception.h>

#include <string>

namespace ashlar::torch {

void ThrowFailure(ashlar_status status, int device, const std::string& text) {
  if (status != ASHLAR_OUT_OF_MEMORY) C10_THROW_ERROR(Error, text);
  C10_THROW_ERROR(OutOfMemoryError, "CUDA out of memory. GPU " + std::to_string(device) + ": " + text);
}

}  // namespace ashlar::torch
