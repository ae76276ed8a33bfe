// CUDA's runtime. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
#include <cstddef>

#include "hollow/serve/calls.h"
#include "hollow/serve/driver.h"

using namespace ashlar::serve;  // NOLINT: these are C functions

extern "C" {
#pragma GCC visibility push(default)

int cudaMalloc(void** pointer, std::size_t bytes) { return Allocate(Door::kRuntime, Name::cudaMalloc, pointer, bytes); }
int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream) {
  return AllocateOnStream(Name::cudaMallocAsync, false, pointer, bytes, stream);
}
int cudaMallocAsync_ptsz(void** pointer, std::size_t bytes, void* stream) {
  return AllocateOnStream(Name::cudaMallocAsync_ptsz, true, pointer, bytes, stream);
}
int cudaFree(void* pointer) { return Free(Door::kRuntime, Name::cudaFree, pointer); }
int cudaFreeAsync(void* pointer, void* stream) { return FreeOnStream(Name::cudaFreeAsync, false, pointer, stream); }
int cudaFreeAsync_ptsz(void* pointer, void* stream) {
  return FreeOnStream(Name::cudaFreeAsync_ptsz, true, pointer, stream);
}
int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return MemoryInfo(Name::cudaMemGetInfo, free_bytes, total_bytes);
}
int cudaIpcGetMemHandle(void* handle, void* pointer) {
  return ExportHandle(Name::cudaIpcGetMemHandle, handle, pointer);
}

int cudaStreamBeginCapture(void* stream, int mode) {
  return BeginCaptureOf(Name::cudaStreamBeginCapture, false, stream, mode);
}
int cudaStreamBeginCapture_ptsz(void* stream, int mode) {
  return BeginCaptureOf(Name::cudaStreamBeginCapture_ptsz, true, stream, mode);
}
int cudaStreamBeginCaptureToGraph(void* stream, void* graph, const void* after, const void* edges, std::size_t count,
                                  int mode) {
  return BeginCaptureOf(Name::cudaStreamBeginCaptureToGraph, false, stream, graph, after, edges, count, mode);
}
int cudaStreamBeginCaptureToGraph_ptsz(void* stream, void* graph, const void* after, const void* edges,
                                       std::size_t count, int mode) {
  return BeginCaptureOf(Name::cudaStreamBeginCaptureToGraph_ptsz, true, stream, graph, after, edges, count, mode);
}
int cudaStreamEndCapture(void* stream, void* graph) {
  return EndCaptureOf(Name::cudaStreamEndCapture, false, stream, graph);
}
int cudaStreamEndCapture_ptsz(void* stream, void* graph) {
  return EndCaptureOf(Name::cudaStreamEndCapture_ptsz, true, stream, graph);
}
int cudaStreamDestroy(void* stream) { return DestroyStream(Name::cudaStreamDestroy, stream); }

int cudaDeviceGetDefaultMemPool(void* pool, int device) {
  return UsePools(Name::cudaDeviceGetDefaultMemPool, pool, device);
}
int cudaDeviceGetMemPool(void* pool, int device) { return UsePools(Name::cudaDeviceGetMemPool, pool, device); }
int cudaDeviceSetMemPool(int device, void* pool) { return UsePools(Name::cudaDeviceSetMemPool, device, pool); }
int cudaMemGetDefaultMemPool(void* pool, void* location, int kind) {
  return UsePools(Name::cudaMemGetDefaultMemPool, pool, location, kind);
}
int cudaMemGetMemPool(void* pool, void* location, int kind) {
  return UsePools(Name::cudaMemGetMemPool, pool, location, kind);
}
int cudaMemSetMemPool(void* location, int kind, void* pool) {
  return UsePools(Name::cudaMemSetMemPool, location, kind, pool);
}

int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  const OuterCall call;
  const int result = CallReal(Name::cudaDeviceEnablePeerAccess, peer, flags);
  int device = 0;
  if (call.is_outermost() && result == 0 && cuda.runtime_device(&device) == 0) NotePeer(device, peer);
  return result;
}

int cudaDeviceReset() {
  const OuterCall call;
  int device = 0;
  if (call.is_outermost() && cuda.runtime_device(&device) == 0) ForgetDevice(device);
  return CallReal(Name::cudaDeviceReset);
}

#pragma GCC visibility pop
}

ASHLAR_STANDS_IN(cudaMalloc);
ASHLAR_STANDS_IN(cudaMallocAsync);
ASHLAR_STANDS_IN(cudaMallocAsync_ptsz);
ASHLAR_STANDS_IN(cudaFree);
ASHLAR_STANDS_IN(cudaFreeAsync);
ASHLAR_STANDS_IN(cudaFreeAsync_ptsz);
ASHLAR_STANDS_IN(cudaMemGetInfo);
ASHLAR_STANDS_IN(cudaIpcGetMemHandle);
ASHLAR_STANDS_IN(cudaStreamBeginCapture);
ASHLAR_STANDS_IN(cudaStreamBeginCapture_ptsz);
ASHLAR_STANDS_IN(cudaStreamBeginCaptureToGraph);
ASHLAR_STANDS_IN(cudaStreamBeginCaptureToGraph_ptsz);
ASHLAR_STANDS_IN(cudaStreamEndCapture);
ASHLAR_STANDS_IN(cudaStreamEndCapture_ptsz);
ASHLAR_STANDS_IN(cudaStreamDestroy);
ASHLAR_STANDS_IN(cudaDeviceGetDefaultMemPool);
ASHLAR_STANDS_IN(cudaDeviceGetMemPool);
ASHLAR_STANDS_IN(cudaDeviceSetMemPool);
ASHLAR_STANDS_IN(cudaMemGetDefaultMemPool);
ASHLAR_STANDS_IN(cudaMemGetMemPool);
ASHLAR_STANDS_IN(cudaMemSetMemPool);
ASHLAR_STANDS_IN(cudaDeviceEnablePeerAccess);
ASHLAR_STANDS_IN(cudaDeviceReset);
