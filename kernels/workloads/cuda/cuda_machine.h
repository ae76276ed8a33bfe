// The first CUDA device as the machine of a Runtime (library ashlar::kernels_cuda).
#ifndef ASHLAR_KERNELS_WORKLOADS_CUDA_CUDA_MACHINE_H_
#define ASHLAR_KERNELS_WORKLOADS_CUDA_CUDA_MACHINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/workloads/runtime.h"

namespace ashlar::kernels {

// Device 0, as CUDA_VISIBLE_DEVICES counts; it becomes the thread's current one. kUnimplemented in a build without
// device code, kUnavailable or kInvalidArgument where there is no driver or no device: the text says which.
absl::StatusOr<std::unique_ptr<Machine>> OpenCudaMachine();

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_CUDA_CUDA_MACHINE_H_
