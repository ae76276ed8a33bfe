// CUDA's runtime: memory pools, ordered by streams. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and
// 13.0.
#include "hollow/surfaces/cuda_pools.h"
#include "hollow/surfaces/runtime_call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream) {
  return Locked([&](Process& process) {
    return AllocateFromPool(process, process.current_pools[CurrentDevice()], bytes, stream, pointer);
  });
}

ASHLAR_SURFACE int cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, void* pool, void* stream) {
  return Locked([&](Process& process) {
    const Pool* known = PoolOf(process, pool);
    if (known == nullptr) return Error::kInvalidValue;
    return AllocateFromPool(process, known->id(), bytes, stream, pointer);
  });
}

ASHLAR_SURFACE int cudaFreeAsync(void* pointer, void* stream) {
  return Locked([&](Process& process) { return FreeAsync(process, pointer, stream); });
}

ASHLAR_SURFACE int cudaMemPoolCreate(void** pool, const abi::PoolProps* props) {
  if (props == nullptr) return Last(Error::kInvalidValue);
  return Locked([&](Process& process) { return MakePool(process, *props, pool); });
}

ASHLAR_SURFACE int cudaMemPoolDestroy(void* pool) {
  return Locked([&](Process& process) { return DestroyPool(process, pool); });
}

ASHLAR_SURFACE int cudaMemPoolTrimTo(void* pool, std::size_t keep_bytes) {
  return Locked([&](Process& process) { return TrimPool(process, pool, keep_bytes); });
}

ASHLAR_SURFACE int cudaMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return Locked([&](Process& process) { return SetPoolAttribute(process, pool, attribute, value); });
}

ASHLAR_SURFACE int cudaMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return Locked([&](Process& process) { return GetPoolAttribute(process, pool, attribute, value); });
}

ASHLAR_SURFACE int cudaMemPoolSetAccess(void* pool, const abi::AccessDesc* access, std::size_t count) {
  return Locked([&](Process& process) { return SetPoolAccess(process, pool, access, count); });
}

ASHLAR_SURFACE int cudaMemPoolGetAccess(int* flags, void* pool, const abi::Location* location) {
  return Locked([&](Process& process) { return GetPoolAccess(process, pool, location, flags); });
}

ASHLAR_SURFACE int cudaDeviceGetDefaultMemPool(void** pool, int device) {
  return Locked([&](Process& process) { return DefaultPool(process, device, pool); });
}

ASHLAR_SURFACE int cudaDeviceGetMemPool(void** pool, int device) {
  return Locked([&](Process& process) { return CurrentPool(process, device, pool); });
}

ASHLAR_SURFACE int cudaDeviceSetMemPool(int device, void* pool) {
  return Locked([&](Process& process) { return SetCurrentPool(process, device, pool); });
}

ASHLAR_SURFACE int cudaDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return Locked([&](Process& process) { return GetGraphMemory(process, device, attribute, value); });
}

ASHLAR_SURFACE int cudaDeviceSetGraphMemAttribute(int device, int attribute, void*) {
  return Locked([&](Process& process) { return ResetGraphMemory(process, device, attribute); });
}

ASHLAR_SURFACE int cudaDeviceGraphMemTrim(int device) {
  return Locked([&](Process& process) { return TrimGraphMemory(process, device); });
}

ASHLAR_SAME(cudaMallocAsync_ptsz, cudaMallocAsync);
ASHLAR_SAME(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync);
ASHLAR_SAME(cudaFreeAsync_ptsz, cudaFreeAsync);
