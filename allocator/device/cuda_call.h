// What every CUDA call of CudaDevice goes through: its code as a Status, and the context that it runs in.
#ifndef ASHLAR_ALLOCATOR_DEVICE_CUDA_CALL_H_
#define ASHLAR_ALLOCATOR_DEVICE_CUDA_CALL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/device/cuda_api.h"

namespace ashlar::device {

// What "out of memory" says in the answer of a call: cudaMalloc means device memory, cuMemAddressReserve addresses.
enum class OutOfMemoryMeans : std::uint8_t { kDeviceMemory, kSomethingElse };

// "cudaMalloc(20.00 MiB) failed on CUDA device 0: cudaErrorMemoryAllocation: out of memory". kResourceExhausted for
// device memory that is proven to be exhausted, else kInternal. A runtime call's failure is cleared from the runtime's
// last error, which belongs to the program around us.
absl::Status RuntimeStatus(CudaApi& api, int ordinal, int code, absl::string_view call,
                           OutOfMemoryMeans means = OutOfMemoryMeans::kSomethingElse);
absl::Status DriverStatus(CudaApi& api, int ordinal, int code, absl::string_view call,
                          OutOfMemoryMeans means = OutOfMemoryMeans::kSomethingElse);

// Makes a device's primary context current in this thread, and the one before it again at the end; makes no call but
// cuCtxGetCurrent where it is current already. The thread's device is pushed and popped, never set: cudaSetDevice back
// to a device that the program has not used yet would create a context there.
class CudaContextScope {
 public:
  // `restore_error` receives the error of the pop; then the device's context stays current.
  CudaContextScope(CudaApi& api, CudaContext context, int ordinal, absl::Status* restore_error);
  ~CudaContextScope();
  CudaContextScope(const CudaContextScope&) = delete;
  CudaContextScope& operator=(const CudaContextScope&) = delete;

  // Not OK: the context is not current, and no call should be made.
  const absl::Status& status() const { return status_; }

 private:
  CudaApi& api_;
  int ordinal_;
  absl::Status* restore_error_;
  absl::Status status_;
  bool is_pushed_ = false;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_CUDA_CALL_H_
