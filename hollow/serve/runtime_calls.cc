// CUDA's runtime. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
#include <cstddef>

#include "hollow/serve/calls.h"
#include "hollow/serve/driver.h"

using namespace ashlar::serve;  // NOLINT: these are C functions

extern "C" {
#pragma GCC visibility push(default)

int cudaMalloc(void** pointer, std::size_t bytes) {
  return Allocate(ProgramsCall(ASHLAR_RETURN), Door::kRuntime, Name::cudaMalloc, pointer, bytes);
}
int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream) {
  return AllocateOnStream(ProgramsCall(ASHLAR_RETURN), Door::kRuntime, Name::cudaMallocAsync, false, pointer, bytes,
                          stream);
}
int cudaMallocAsync_ptsz(void** pointer, std::size_t bytes, void* stream) {
  return AllocateOnStream(ProgramsCall(ASHLAR_RETURN), Door::kRuntime, Name::cudaMallocAsync_ptsz, true, pointer, bytes,
                          stream);
}
int cudaFree(void* pointer) { return Free(ProgramsCall(ASHLAR_RETURN), Door::kRuntime, Name::cudaFree, pointer); }
int cudaFreeAsync(void* pointer, void* stream) {
  return FreeOnStream(ProgramsCall(ASHLAR_RETURN), Name::cudaFreeAsync, false, pointer, stream);
}
int cudaFreeAsync_ptsz(void* pointer, void* stream) {
  return FreeOnStream(ProgramsCall(ASHLAR_RETURN), Name::cudaFreeAsync_ptsz, true, pointer, stream);
}
int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return MemoryInfo(ProgramsCall(ASHLAR_RETURN), Name::cudaMemGetInfo, free_bytes, total_bytes);
}
int cudaIpcGetMemHandle(void* handle, void* pointer) {
  return ExportHandle(ProgramsCall(ASHLAR_RETURN), Name::cudaIpcGetMemHandle, handle, pointer);
}

int cudaStreamBeginCapture(void* stream, int mode) {
  return BeginCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cudaStreamBeginCapture, false, stream, mode);
}
int cudaStreamBeginCapture_ptsz(void* stream, int mode) {
  return BeginCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cudaStreamBeginCapture_ptsz, true, stream, mode);
}
int cudaStreamBeginCaptureToGraph(void* stream, void* graph, const void* after, const void* edges, std::size_t count,
                                  int mode) {
  return BeginCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cudaStreamBeginCaptureToGraph, false, stream, graph, after,
                        edges, count, mode);
}
int cudaStreamBeginCaptureToGraph_ptsz(void* stream, void* graph, const void* after, const void* edges,
                                       std::size_t count, int mode) {
  return BeginCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cudaStreamBeginCaptureToGraph_ptsz, true, stream, graph,
                        after, edges, count, mode);
}
int cudaStreamEndCapture(void* stream, void* graph) {
  return EndCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cudaStreamEndCapture, false, stream, graph);
}
int cudaStreamEndCapture_ptsz(void* stream, void* graph) {
  return EndCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cudaStreamEndCapture_ptsz, true, stream, graph);
}
int cudaStreamDestroy(void* stream) {
  return DestroyStream(ProgramsCall(ASHLAR_RETURN), Name::cudaStreamDestroy, stream);
}

int cudaDeviceGetDefaultMemPool(void* pool, int device) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cudaDeviceGetDefaultMemPool, pool, device);
}
int cudaDeviceGetMemPool(void* pool, int device) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cudaDeviceGetMemPool, pool, device);
}
int cudaDeviceSetMemPool(int device, void* pool) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cudaDeviceSetMemPool, device, pool);
}
int cudaMemGetDefaultMemPool(void* pool, void* location, int kind) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cudaMemGetDefaultMemPool, pool, location, kind);
}
int cudaMemGetMemPool(void* pool, void* location, int kind) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cudaMemGetMemPool, pool, location, kind);
}
int cudaMemSetMemPool(void* location, int kind, void* pool) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cudaMemSetMemPool, location, kind, pool);
}

int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  const ProgramsCall call(ASHLAR_RETURN);
  const int result = CallReal(Name::cudaDeviceEnablePeerAccess, peer, flags);
  int device = 0;
  if (call && result == 0 && cuda.runtime_device(&device) == 0) NotePeer(device, peer);
  return result;
}

int cudaDeviceReset() {
  const ProgramsCall call(ASHLAR_RETURN);
  int device = 0;
  if (call && cuda.runtime_device(&device) == 0) ForgetDevice(device);
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
