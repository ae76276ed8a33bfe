// A class with the constructors and calls of cub::CachingDeviceAllocator, over the process's allocators:
//
//   ashlar::CachingDeviceAllocator allocator;                          // was: cub::CachingDeviceAllocator
//   void* memory = nullptr;
//   cudaError_t error = allocator.DeviceAllocate(&memory, 300 << 20, stream);
//   error = allocator.DeviceFree(memory);                              // on its device, from any thread
//
// As CUB's: freed memory is reused at once on the stream that it was allocated for, and by others only when the work
// given to that stream is done; a limit on what is cached; FreeAllCached, which the destructor calls too; a request
// that the device refuses is tried again after the cache was returned. Other than CUB's:
//   - Sizes are the allocator's, not bins: bin_growth, min_bin and max_bin are taken and change nothing, a freed block
//     serves smaller requests as well, and large ones are cached too.
//   - The cache is the process's, one a device, which all integrations share. Nothing limits it unless max_cached_bytes
//   is
//     given or set. A free that leaves more than that returns all that is whole-free; what shares a segment with a live
//     block stays.
//   - What one stream freed serves another stream when the device is full: it goes back to the device and is taken
//   anew.
//     With ASHLAR_CONF=borrow_across_streams:True it is handed on as it is.
//   - CUB's fields, which its documentation leaves out, are not there: LiveBytes and CachedBytes are. `debug` prints
//     nothing; `ashlar record` and ashlar_start_recording show every request.
// Errors: CUDA's numbers, and ashlar_last_error() says why: after cudaErrorMemoryAllocation, where every byte is.
// cudaErrorInvalidValue: the address is not live. cudaErrorNotSupported: a per-thread default stream. Threads: any.
#ifndef ASHLAR_CUB_H_
#define ASHLAR_CUB_H_

#include <ashlar/cuda_stream.h>
#include <ashlar/handle.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace ashlar {

class CachingDeviceAllocator {
 public:
  static constexpr unsigned int INVALID_BIN = static_cast<unsigned int>(-1);
  static constexpr std::size_t INVALID_SIZE = static_cast<std::size_t>(-1);
  static constexpr int INVALID_DEVICE_ORDINAL = -1;

  // As CUB's; of `bin_growth` to `max_bin` see above.
  explicit CachingDeviceAllocator(unsigned int /*bin_growth*/, unsigned int /*min_bin*/ = 1,
                                  unsigned int /*max_bin*/ = INVALID_BIN, std::size_t max_cached_bytes = INVALID_SIZE,
                                  bool skip_cleanup = false)
      : skip_cleanup_(skip_cleanup), max_cached_bytes_(max_cached_bytes) {}
  explicit CachingDeviceAllocator(bool skip_cleanup = false, bool /*debug*/ = false) : skip_cleanup_(skip_cleanup) {}
  // All devices' requests go to `allocator`, which is the program's own.
  explicit CachingDeviceAllocator(SharedAllocator allocator) : skip_cleanup_(false), own_(std::move(allocator)) {}

  virtual ~CachingDeviceAllocator() {
    if (!skip_cleanup_) FreeAllCached();
  }
  CachingDeviceAllocator(const CachingDeviceAllocator&) = delete;
  CachingDeviceAllocator& operator=(const CachingDeviceAllocator&) = delete;

  // Of each device. What is cached already stays, until the next free.
  cudaError_t SetMaxCachedBytes(std::size_t max_cached_bytes) {
    max_cached_bytes_ = max_cached_bytes;
    return cudaSuccess;
  }

  // INVALID_DEVICE_ORDINAL: the current device. 0 bytes are a block of their own, as CUB's.
  cudaError_t DeviceAllocate(int device, void** d_ptr, std::size_t bytes, cudaStream_t active_stream = nullptr) {
    *d_ptr = nullptr;
    ashlar_allocator* allocator = nullptr;
    if (const cudaError_t error = Find(device, &allocator); error != cudaSuccess) return error;
    const ashlar_stream stream = StreamOf(active_stream);
    if (stream == cudaStreamPerThread) return cudaErrorNotSupported;
    return ErrorOf(ashlar_allocate(allocator, bytes == 0 ? 1 : bytes, stream, d_ptr));
  }
  cudaError_t DeviceAllocate(void** d_ptr, std::size_t bytes, cudaStream_t active_stream = nullptr) {
    return DeviceAllocate(INVALID_DEVICE_ORDINAL, d_ptr, bytes, active_stream);
  }

  cudaError_t DeviceFree(int device, void* d_ptr) {
    ashlar_allocator* allocator = nullptr;
    if (const cudaError_t error = Find(device, &allocator); error != cudaSuccess) return error;
    if (const ashlar_status status = ashlar_free(allocator, d_ptr); status != ASHLAR_OK) return ErrorOf(status);
    if (max_cached_bytes_ == INVALID_SIZE || CachedBytesOf(allocator) <= max_cached_bytes_) return cudaSuccess;
    return ErrorOf(ashlar_empty_cache(allocator));
  }
  cudaError_t DeviceFree(void* d_ptr) { return DeviceFree(INVALID_DEVICE_ORDINAL, d_ptr); }

  // Returns what is whole-free on every device that was used through this object.
  cudaError_t FreeAllCached() {
    cudaError_t first = cudaSuccess;
    for (std::size_t device = 0; device < used_.size(); ++device) {
      ashlar_allocator* allocator = nullptr;
      if (!used_[device] || Find(static_cast<int>(device), &allocator) != cudaSuccess) continue;
      const cudaError_t error = ErrorOf(ashlar_empty_cache(allocator));
      if (first == cudaSuccess) first = error;
    }
    return first;
  }

  // Of a device, by all integrations of the process: in live blocks, and kept for further requests. 0 where there is
  // none.
  std::size_t LiveBytes(int device = INVALID_DEVICE_ORDINAL) {
    ashlar_allocator* allocator = nullptr;
    return Find(device, &allocator) == cudaSuccess ? StatisticsOf(allocator).allocated_bytes : 0;
  }
  std::size_t CachedBytes(int device = INVALID_DEVICE_ORDINAL) {
    ashlar_allocator* allocator = nullptr;
    return Find(device, &allocator) == cudaSuccess ? CachedBytesOf(allocator) : 0;
  }

 private:
  cudaError_t Find(int device, ashlar_allocator** out) {
    if (own_.has_value()) {
      used_[0] = true;
      *out = own_->get();
      return cudaSuccess;
    }
    if (device == INVALID_DEVICE_ORDINAL) {
      if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
    }
    const ashlar_status status = ashlar_process_allocator(device, out);
    if (status == ASHLAR_INVALID_ARGUMENT) return cudaErrorInvalidDevice;
    if (status == ASHLAR_OK) used_[static_cast<std::size_t>(device) % used_.size()] = true;
    return ErrorOf(status);
  }
  static ashlar_statistics StatisticsOf(ashlar_allocator* allocator) {
    ashlar_statistics statistics{};
    statistics.struct_size = sizeof(statistics);
    ashlar_get_statistics(allocator, &statistics);
    return statistics;
  }
  static std::size_t CachedBytesOf(ashlar_allocator* allocator) {
    const ashlar_statistics statistics = StatisticsOf(allocator);
    return statistics.reserved_bytes - statistics.allocated_bytes;
  }
  static cudaError_t ErrorOf(ashlar_status status) {
    switch (status) {
      case ASHLAR_OK:
        return cudaSuccess;
      case ASHLAR_OUT_OF_MEMORY:
        return cudaErrorMemoryAllocation;
      case ASHLAR_INVALID_ARGUMENT:
        return cudaErrorInvalidValue;
      case ASHLAR_FAILED_PRECONDITION:
        return cudaErrorNotPermitted;
      case ASHLAR_UNAVAILABLE:
        return cudaErrorNoDevice;
      default:
        return cudaErrorUnknown;
    }
  }

  const bool skip_cleanup_;
  std::atomic<std::size_t> max_cached_bytes_{INVALID_SIZE};
  std::array<std::atomic<bool>, 128> used_{};  // devices, by ordinal
  std::optional<SharedAllocator> own_;
};

}  // namespace ashlar

#endif  // ASHLAR_CUB_H_
