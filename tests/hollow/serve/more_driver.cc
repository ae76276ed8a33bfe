// What the serving library asks of a driver beyond what the allocator's device does: the fake has it not.
#include "tests/fake_cuda/fake_cuda.h"

extern "C" __attribute__((visibility("default"))) int cuCtxGetDevice(int* device) {
  using ashlar::device::FakeCuda;
  for (const int ordinal : {0, 1}) {
    *device = 0xd0 + ordinal;
    if (FakeCuda::Called().current() == FakeCuda::ContextOf(ordinal)) return 0;
  }
  return 201;  // CUDA_ERROR_INVALID_CONTEXT
}
