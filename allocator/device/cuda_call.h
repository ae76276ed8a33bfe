// Makes the CUDA calls of CudaDevice: turns their codes into a Status, and sets the context that they run in.
#ifndef ASHLAR_ALLOCATOR_DEVICE_CUDA_CALL_H_
#define ASHLAR_ALLOCATOR_DEVICE_CUDA_CALL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/device/cuda_driver.h"

namespace ashlar::device {

// What "out of memory" says in the answer of a call: cuMemAlloc means device memory, cuMemAddressReserve addresses.
enum class OutOfMemoryMeans : std::uint8_t { kDeviceMemory, kSomethingElse };

// "cuMemAlloc(20.00 MiB) failed on CUDA device 0: CUDA_ERROR_OUT_OF_MEMORY: out of memory". kResourceExhausted for
// device memory that is proven to be exhausted, kDataLoss where CUDA says that the context is destroyed or the driver
// shut down (nothing allocated before is left), else kInternal.
absl::Status CudaStatus(const CudaDriver& cuda, int ordinal, int code, absl::string_view call,
                        OutOfMemoryMeans means = OutOfMemoryMeans::kSomethingElse);

// While it exists, a call of this thread that obtains memory breaks no capture that is under way on any stream. Where
// the mode cannot be set, the call is made all the same.
class RelaxedCaptureScope {
 public:
  RelaxedCaptureScope(const CudaDriver& cuda, int ordinal, absl::Status* last_error);
  ~RelaxedCaptureScope();
  RelaxedCaptureScope(const RelaxedCaptureScope&) = delete;
  RelaxedCaptureScope& operator=(const RelaxedCaptureScope&) = delete;

 private:
  bool Exchange();

  const CudaDriver& cuda_;
  int ordinal_;
  absl::Status* last_error_;
  CudaCaptureMode mode_ = CudaCaptureMode::kRelaxed;
  bool is_set_ = false;
};

// A device's primary context, as it was found: after cudaDeviceReset its handle stands for another, or for none.
struct KnownContext {
  CudaDeviceId device = 0;
  CudaContext context = nullptr;
  std::uint64_t id = 0;  // cuCtxGetId; 0 where the driver, before CUDA 12.0, has none
};

// Makes a device's primary context current in this thread, and the one before it again at the end; makes no call but
// cuCtxGetCurrent where it is current already. The thread's device is pushed and popped, never set: cudaSetDevice back
// to a device that the program has not used yet would create a context there.
class CudaContextScope {
 public:
  // `refused`, if not OK, is the status, and no call is made. `restore_error` receives the error of the pop; then the
  // device's context stays current.
  CudaContextScope(const CudaDriver& cuda, const KnownContext& known, int ordinal, const absl::Status& refused,
                   absl::Status* restore_error);
  ~CudaContextScope();
  CudaContextScope(const CudaContextScope&) = delete;
  CudaContextScope& operator=(const CudaContextScope&) = delete;

  // Not OK: the context is not current, or not the one that was known, and no call should be made.
  const absl::Status& status() const { return status_; }

 private:
  void Check(const KnownContext& known);

  const CudaDriver& cuda_;
  int ordinal_;
  absl::Status* restore_error_;
  absl::Status status_;
  bool is_pushed_ = false;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_CUDA_CALL_H_
