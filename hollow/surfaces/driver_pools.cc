// CUDA's driver: memory pools, ordered by streams. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.
#include "hollow/surfaces/cuda_pools.h"
#include "hollow/surfaces/driver_call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cuMemAllocAsync(void** pointer, std::size_t bytes, void* stream) {
  return Driven([&](Process& process) {
    return AllocateFromPool(process, process.current_pools[CurrentDevice()], bytes, stream, pointer);
  });
}

ASHLAR_SURFACE int cuMemAllocFromPoolAsync(void** pointer, std::size_t bytes, void* pool, void* stream) {
  return Driven([&](Process& process) {
    const Pool* known = PoolOf(process, pool);
    if (known == nullptr) return Error::kInvalidValue;
    return AllocateFromPool(process, known->id(), bytes, stream, pointer);
  });
}

ASHLAR_SURFACE int cuMemFreeAsync(void* pointer, void* stream) {
  return Driven([&](Process& process) { return FreeAsync(process, pointer, stream); });
}

ASHLAR_SURFACE int cuMemPoolCreate(void** pool, const abi::PoolProps* props) {
  ASHLAR_NEEDS_INIT();
  if (props == nullptr) return Number(Error::kInvalidValue);
  return Driven([&](Process& process) { return MakePool(process, *props, pool); });
}

ASHLAR_SURFACE int cuMemPoolDestroy(void* pool) {
  return Driven([&](Process& process) { return DestroyPool(process, pool); });
}

ASHLAR_SURFACE int cuMemPoolTrimTo(void* pool, std::size_t keep_bytes) {
  return Driven([&](Process& process) { return TrimPool(process, pool, keep_bytes); });
}

ASHLAR_SURFACE int cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return Driven([&](Process& process) { return SetPoolAttribute(process, pool, attribute, value); });
}

ASHLAR_SURFACE int cuMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return Driven([&](Process& process) { return GetPoolAttribute(process, pool, attribute, value); });
}

ASHLAR_SURFACE int cuMemPoolSetAccess(void* pool, const abi::AccessDesc* access, std::size_t count) {
  return Driven([&](Process& process) { return SetPoolAccess(process, pool, access, count); });
}

ASHLAR_SURFACE int cuMemPoolGetAccess(int* flags, void* pool, const abi::Location* location) {
  return Driven([&](Process& process) { return GetPoolAccess(process, pool, location, flags); });
}

ASHLAR_SURFACE int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return Driven([&](Process& process) { return DefaultPool(process, device, pool); });
}

ASHLAR_SURFACE int cuDeviceGetMemPool(void** pool, int device) {
  return Driven([&](Process& process) { return CurrentPool(process, device, pool); });
}

ASHLAR_SURFACE int cuDeviceSetMemPool(int device, void* pool) {
  return Driven([&](Process& process) { return SetCurrentPool(process, device, pool); });
}

ASHLAR_SURFACE int cuDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return Driven([&](Process& process) { return GetGraphMemory(process, device, attribute, value); });
}

ASHLAR_SURFACE int cuDeviceSetGraphMemAttribute(int device, int attribute, void*) {
  return Driven([&](Process& process) { return ResetGraphMemory(process, device, attribute); });
}

ASHLAR_SURFACE int cuDeviceGraphMemTrim(int device) {
  return Driven([&](Process& process) { return TrimGraphMemory(process, device); });
}

ASHLAR_SAME(cuMemAllocAsync_ptsz, cuMemAllocAsync);
ASHLAR_SAME(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);
ASHLAR_SAME(cuMemFreeAsync_ptsz, cuMemFreeAsync);
