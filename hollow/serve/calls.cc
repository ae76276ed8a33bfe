// CUDA's runtime. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.

#include "hollow/serve/calls.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hollow/serve/driver.h"
#include "hollow/serve/library.h"

using namespace ashlar::serve;  // NOLINT: these are C functions

extern "C" {
#pragma GCC visibility push(default)

int cudaMalloc(void** pointer, std::size_t bytes) {
  return Allocate(ProgramsCall(ASHLAR_RETURN), Api::kRuntime, Name::cudaMalloc, pointer, bytes);
}
int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream) {
  return AllocateOnStream(ProgramsCall(ASHLAR_RETURN), Api::kRuntime, Name::cudaMallocAsync, false, pointer, bytes,
                          stream);
}
int cudaMallocAsync_ptsz(void** pointer, std::size_t bytes, void* stream) {
  return AllocateOnStream(ProgramsCall(ASHLAR_RETURN), Api::kRuntime, Name::cudaMallocAsync_ptsz, true, pointer, bytes,
                          stream);
}
int cudaFree(void* pointer) { return Free(ProgramsCall(ASHLAR_RETURN), Api::kRuntime, Name::cudaFree, pointer); }
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

// CUDA's driver. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.

using namespace ashlar::serve;  // NOLINT: these are C functions

namespace ashlar::serve {
namespace {

void* PointerTo(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

// CUpointer_attribute: where an allocation begins, how long it is, and whether another process may have a handle of it.
constexpr int kIsIpcCapable = 10;
constexpr int kRangeStart = 11;
constexpr int kRangeSize = 12;

// The driver answers with our segment; the program knows blocks.
void Correct(int attribute, const OwnBlock& block, void* data) {
  if (attribute == kRangeStart) std::memcpy(data, &block.address, sizeof(block.address));
  if (attribute == kRangeSize) {
    const std::size_t bytes = block.bytes;
    std::memcpy(data, &bytes, sizeof(bytes));
  }
  if (attribute == kIsIpcCapable) std::memset(data, 0, 1);
}

}  // namespace

int ExportHandle(const ProgramsCall& call, Name name, void* handle, void* pointer) {
  OwnBlock block;
  if (!call || !FindOwnBlock(pointer, block)) return CallReal(name, handle, pointer);
  static std::atomic<bool> was_told = false;
  if (!was_told.exchange(true)) {
    Say("%s is refused: a handle of this memory would show its neighbours to the other process; run the program "
        "without --serve",
        interpose::TextOf(name));
  }
  return interpose::kNotSupported;
}

}  // namespace ashlar::serve

extern "C" {
#pragma GCC visibility push(default)

int cuMemAlloc_v2(void** pointer, std::size_t bytes) {
  return Allocate(ProgramsCall(ASHLAR_RETURN), Api::kDriver, Name::cuMemAlloc_v2, pointer, bytes);
}
int cuMemAllocAsync(void** pointer, std::size_t bytes, void* stream) {
  return AllocateOnStream(ProgramsCall(ASHLAR_RETURN), Api::kDriver, Name::cuMemAllocAsync, false, pointer, bytes,
                          stream);
}
int cuMemAllocAsync_ptsz(void** pointer, std::size_t bytes, void* stream) {
  return AllocateOnStream(ProgramsCall(ASHLAR_RETURN), Api::kDriver, Name::cuMemAllocAsync_ptsz, true, pointer, bytes,
                          stream);
}
int cuMemFree_v2(void* pointer) { return Free(ProgramsCall(ASHLAR_RETURN), Api::kDriver, Name::cuMemFree_v2, pointer); }
int cuMemFreeAsync(void* pointer, void* stream) {
  return FreeOnStream(ProgramsCall(ASHLAR_RETURN), Name::cuMemFreeAsync, false, pointer, stream);
}
int cuMemFreeAsync_ptsz(void* pointer, void* stream) {
  return FreeOnStream(ProgramsCall(ASHLAR_RETURN), Name::cuMemFreeAsync_ptsz, true, pointer, stream);
}
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return MemoryInfo(ProgramsCall(ASHLAR_RETURN), Name::cuMemGetInfo_v2, free_bytes, total_bytes);
}

int cuMemGetAddressRange_v2(std::uint64_t* base, std::size_t* bytes, std::uint64_t address) {
  const ProgramsCall call(ASHLAR_RETURN);
  OwnBlock block;
  if (!call || !FindOwnBlock(PointerTo(address), block)) {
    return CallReal(Name::cuMemGetAddressRange_v2, base, bytes, address);
  }
  if (base != nullptr) *base = block.address;
  if (bytes != nullptr) *bytes = block.bytes;
  return 0;
}
int cuPointerGetAttribute(void* data, int attribute, std::uint64_t address) {
  const ProgramsCall call(ASHLAR_RETURN);
  const int result = CallReal(Name::cuPointerGetAttribute, data, attribute, address);
  OwnBlock block;
  const bool may_differ = attribute >= kIsIpcCapable && attribute <= kRangeSize;
  if (!call || result != 0 || !may_differ || !FindOwnBlock(PointerTo(address), block)) return result;
  Correct(attribute, block, data);
  return result;
}
int cuPointerGetAttributes(unsigned count, int* attributes, void** data, std::uint64_t address) {
  const ProgramsCall call(ASHLAR_RETURN);
  const int result = CallReal(Name::cuPointerGetAttributes, count, attributes, data, address);
  OwnBlock block;
  if (!call || result != 0 || !FindOwnBlock(PointerTo(address), block)) return result;
  for (unsigned i = 0; i < count; ++i) Correct(attributes[i], block, data[i]);
  return result;
}
int cuIpcGetMemHandle(void* handle, void* pointer) {
  return ExportHandle(ProgramsCall(ASHLAR_RETURN), Name::cuIpcGetMemHandle, handle, pointer);
}

int cuStreamBeginCapture_v2(void* stream, int mode) {
  return BeginCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cuStreamBeginCapture_v2, false, stream, mode);
}
int cuStreamBeginCapture_v2_ptsz(void* stream, int mode) {
  return BeginCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cuStreamBeginCapture_v2_ptsz, true, stream, mode);
}
int cuStreamBeginCaptureToGraph(void* stream, void* graph, const void* after, const void* edges, std::size_t count,
                                int mode) {
  return BeginCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cuStreamBeginCaptureToGraph, false, stream, graph, after,
                        edges, count, mode);
}
int cuStreamBeginCaptureToGraph_ptsz(void* stream, void* graph, const void* after, const void* edges, std::size_t count,
                                     int mode) {
  return BeginCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cuStreamBeginCaptureToGraph_ptsz, true, stream, graph, after,
                        edges, count, mode);
}
int cuStreamEndCapture(void* stream, void* graph) {
  return EndCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cuStreamEndCapture, false, stream, graph);
}
int cuStreamEndCapture_ptsz(void* stream, void* graph) {
  return EndCaptureOf(ProgramsCall(ASHLAR_RETURN), Name::cuStreamEndCapture_ptsz, true, stream, graph);
}
int cuStreamDestroy_v2(void* stream) {
  return DestroyStream(ProgramsCall(ASHLAR_RETURN), Name::cuStreamDestroy_v2, stream);
}

int cuDeviceGetDefaultMemPool(void* pool, int device) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cuDeviceGetDefaultMemPool, pool, device);
}
int cuDeviceGetMemPool(void* pool, int device) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cuDeviceGetMemPool, pool, device);
}
int cuDeviceSetMemPool(int device, void* pool) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cuDeviceSetMemPool, device, pool);
}
int cuMemGetDefaultMemPool(void* pool, void* location, int kind) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cuMemGetDefaultMemPool, pool, location, kind);
}
int cuMemGetMemPool(void* pool, void* location, int kind) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cuMemGetMemPool, pool, location, kind);
}
int cuMemSetMemPool(void* location, int kind, void* pool) {
  return UsePools(ProgramsCall(ASHLAR_RETURN), Name::cuMemSetMemPool, location, kind, pool);
}

int cuCtxEnablePeerAccess(void* peer, unsigned flags) {
  const ProgramsCall call(ASHLAR_RETURN);
  const int result = CallReal(Name::cuCtxEnablePeerAccess, peer, flags);
  void* current = nullptr;
  if (call && result == 0 && cuda.context_get_current(&current) == 0) {
    NotePeer(DeviceOf(current), DeviceOf(peer));
  }
  return result;
}

int cuDevicePrimaryCtxReset_v2(int device) {
  const ProgramsCall call(ASHLAR_RETURN);
  if (call) ForgetDevice(OrdinalOf(device));
  return CallReal(Name::cuDevicePrimaryCtxReset_v2, device);
}

#pragma GCC visibility pop
}

ASHLAR_STANDS_IN(cuMemAlloc_v2);
ASHLAR_STANDS_IN(cuMemAllocAsync);
ASHLAR_STANDS_IN(cuMemAllocAsync_ptsz);
ASHLAR_STANDS_IN(cuMemFree_v2);
ASHLAR_STANDS_IN(cuMemFreeAsync);
ASHLAR_STANDS_IN(cuMemFreeAsync_ptsz);
ASHLAR_STANDS_IN(cuMemGetInfo_v2);
ASHLAR_STANDS_IN(cuMemGetAddressRange_v2);
ASHLAR_STANDS_IN(cuPointerGetAttribute);
ASHLAR_STANDS_IN(cuPointerGetAttributes);
ASHLAR_STANDS_IN(cuIpcGetMemHandle);
ASHLAR_STANDS_IN(cuStreamBeginCapture_v2);
ASHLAR_STANDS_IN(cuStreamBeginCapture_v2_ptsz);
ASHLAR_STANDS_IN(cuStreamBeginCaptureToGraph);
ASHLAR_STANDS_IN(cuStreamBeginCaptureToGraph_ptsz);
ASHLAR_STANDS_IN(cuStreamEndCapture);
ASHLAR_STANDS_IN(cuStreamEndCapture_ptsz);
ASHLAR_STANDS_IN(cuStreamDestroy_v2);
ASHLAR_STANDS_IN(cuDeviceGetDefaultMemPool);
ASHLAR_STANDS_IN(cuDeviceGetMemPool);
ASHLAR_STANDS_IN(cuDeviceSetMemPool);
ASHLAR_STANDS_IN(cuMemGetDefaultMemPool);
ASHLAR_STANDS_IN(cuMemGetMemPool);
ASHLAR_STANDS_IN(cuMemSetMemPool);
ASHLAR_STANDS_IN(cuCtxEnablePeerAccess);
ASHLAR_STANDS_IN(cuDevicePrimaryCtxReset_v2);
