// Stamps by kernels on the current CUDA device (gpu_stamps.cu).
#ifndef ASHLAR_TESTS_GPU_GPU_STAMPS_H_
#define ASHLAR_TESTS_GPU_GPU_STAMPS_H_

#include <memory>

#include "tests/gpu/stamps.h"

namespace ashlar::tests {

// nullptr where there is no GPU that runs the kernels.
std::unique_ptr<Stamps> MakeGpuStamps();

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_GPU_GPU_STAMPS_H_
