// What the integrations of <ashlar/cuda_mr.h>, rmm.h, thrust_mr.h and cub.h ask CUDA's runtime for. They need the
// toolkit's headers and its runtime, shared or static.
#ifndef ASHLAR_CUDA_STREAM_H_
#define ASHLAR_CUDA_STREAM_H_

#include <ashlar/handle.h>
#include <cuda_runtime_api.h>

#include <string>

namespace ashlar {

// Throws CallError; the runtime's last error is cleared.
inline void ThrowUnlessOk(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw CallError(ASHLAR_DEVICE_ERROR,
                  std::string(call) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

// The device that this thread works on.
inline int CurrentDevice() {
  int device = 0;
  ThrowUnlessOk("cudaGetDevice", cudaGetDevice(&device));
  return device;
}

// The stream as the allocator names it. Compiled for per-thread default streams, the default one is such a stream,
// which Allocate refuses.
inline ashlar_stream StreamOf(cudaStream_t stream) {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  return stream == nullptr ? cudaStreamPerThread : stream;
#else
  return stream;
#endif
}

// Memory that every stream may use at once, as that of cudaMalloc: it is taken in the order of the default stream,
// whose work so far is waited for.
inline void* AllocateForAllStreams(SharedAllocator& allocator, std::size_t bytes, std::size_t alignment) {
  void* const memory = allocator.Allocate(bytes, alignment, nullptr);
  if (memory == nullptr || allocator.device() < 0) return memory;
  const cudaError_t error = cudaStreamSynchronize(cudaStreamLegacy);
  if (error != cudaSuccess) allocator.FreeAligned(memory, alignment);
  ThrowUnlessOk("cudaStreamSynchronize", error);
  return memory;
}

}  // namespace ashlar

#endif  // ASHLAR_CUDA_STREAM_H_
