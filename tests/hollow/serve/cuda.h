// The functions of CUDA that the clients of the serving library call, as the hollow device has them, and a place for
// what a client saw.
//
//   Tell("free", cudaFree(pointer));          // prints "free 0"
#ifndef ASHLAR_TESTS_HOLLOW_SERVE_CUDA_H_
#define ASHLAR_TESTS_HOLLOW_SERVE_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "hollow/abi/cuda_types.h"

extern "C" {
int cudaMalloc(void**, std::size_t);
int cudaMallocManaged(void**, std::size_t, unsigned);
int cudaMallocPitch(void**, std::size_t*, std::size_t, std::size_t);
int cudaMallocAsync(void**, std::size_t, void*);
int cudaMallocAsync_ptsz(void**, std::size_t, void*);
int cudaMallocFromPoolAsync(void**, std::size_t, void*, void*);
int cudaFree(void*);
int cudaFreeAsync(void*, void*);
int cudaMemGetInfo(std::size_t*, std::size_t*);
int cudaMemsetAsync(void*, int, std::size_t, void*);
int cudaIpcGetMemHandle(ashlar::hollow::abi::IpcHandle*, void*);
int cudaPointerGetAttributes(ashlar::hollow::abi::PointerAttributes*, const void*);
int cudaGetLastError();
int cudaPeekAtLastError();
int cudaSetDevice(int);
int cudaDeviceReset();
int cudaDeviceSynchronize();
int cudaDeviceEnablePeerAccess(int, unsigned);
int cudaDeviceGetDefaultMemPool(void**, int);
int cudaMemPoolCreate(void**, const ashlar::hollow::abi::PoolProps*);
int cudaStreamCreate(void**);
int cudaStreamDestroy(void*);
int cudaStreamQuery(void*);
int cudaStreamSynchronize(void*);
int cudaStreamBeginCapture(void*, int);
int cudaStreamEndCapture(void*, void**);
int cudaThreadExchangeStreamCaptureMode(int*);
int cudaGraphDestroy(void*);
int cudaGraphGetNodes(void*, void**, std::size_t*);
int cuInit(unsigned);
int cuCtxCreate_v2(void**, unsigned, int);
int cuCtxDestroy_v2(void*);
int cuCtxGetCurrent(void**);
int cuCtxSetCurrent(void*);
int cuDevicePrimaryCtxRetain(void**, int);
int cuMemAlloc_v2(void**, std::size_t);
int cuMemFree_v2(void*);
int cuMemGetAddressRange_v2(std::uint64_t*, std::size_t*, std::uint64_t);
int cuPointerGetAttribute(void*, int, std::uint64_t);
int cuPointerGetAttributes(unsigned, int*, void**, std::uint64_t);
int cuIpcGetMemHandle(ashlar::hollow::abi::IpcHandle*, void*);
}

namespace ashlar {

inline constexpr std::size_t kMega = std::size_t{1} << 20;

template <typename Value>
void Tell(const char* what, Value value) {
  std::printf("%s %lld\n", what, static_cast<long long>(value));
}

inline std::uint64_t Address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// A client goes no further without its memory.
inline void* Taken(int result, void* pointer) {
  if (result == 0 && pointer != nullptr) return pointer;
  std::printf("no memory: %d\n", result);
  std::exit(1);
}
inline void* Grab(std::size_t bytes) {
  void* out = nullptr;
  const int result = cudaMalloc(&out, bytes);
  return Taken(result, out);
}
inline void* GrabOn(void* stream, std::size_t bytes) {
  void* out = nullptr;
  const int result = cudaMallocAsync(&out, bytes, stream);
  return Taken(result, out);
}
inline void* NewStream() {
  void* out = nullptr;
  const int result = cudaStreamCreate(&out);
  return Taken(result, out);
}

}  // namespace ashlar

#endif  // ASHLAR_TESTS_HOLLOW_SERVE_CUDA_H_
