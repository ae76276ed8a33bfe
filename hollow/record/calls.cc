// CUDA's runtime. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.

#include "hollow/record/calls.h"

#include <cstddef>
#include <cstdint>

#include "hollow/abi/cuda_types.h"
#include "hollow/record/recorder.h"

using namespace ashlar::record;  // NOLINT: these are C functions
namespace abi = ashlar::hollow::abi;

extern "C" {
#pragma GCC visibility push(default)

int cudaMalloc(void** pointer, std::size_t bytes) {
  return Allocate({Name::cudaMalloc, ASHLAR_RETURN}, pointer, [&] { return Asked{bytes}; }, pointer, bytes);
}
int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  const auto asked = [&] { return Asked{bytes}; };
  return Allocate({Name::cudaMallocManaged, ASHLAR_RETURN}, pointer, asked, pointer, bytes, flags);
}
int cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  if (pitch != nullptr) *pitch = width;  // what is asked for where it fails
  const auto asked = [&] { return Asked{(pitch == nullptr ? width : *pitch) * height}; };
  return Allocate({Name::cudaMallocPitch, ASHLAR_RETURN}, pointer, asked, pointer, pitch, width, height);
}
int cudaMalloc3D(abi::PitchedPtr* pointer, abi::Extent extent) {
  if (pointer != nullptr) *pointer = {nullptr, extent.width, 0, 0};
  void** place = pointer == nullptr ? nullptr : &pointer->ptr;
  const auto asked = [&] { return Asked{pointer->pitch * extent.height * extent.depth}; };
  return Allocate({Name::cudaMalloc3D, ASHLAR_RETURN}, place, asked, pointer, extent);
}
int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream) {
  const auto asked = [&] { return Asked{bytes, NumberOf(stream)}; };
  return Allocate({Name::cudaMallocAsync, ASHLAR_RETURN}, pointer, asked, pointer, bytes, stream);
}
int cudaMallocAsync_ptsz(void** pointer, std::size_t bytes, void* stream) {
  const auto asked = [&] { return Asked{bytes, NumberOf(stream)}; };
  return Allocate({Name::cudaMallocAsync_ptsz, ASHLAR_RETURN}, pointer, asked, pointer, bytes, stream);
}
int cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, void* pool, void* stream) {
  const auto asked = [&] { return Asked{bytes, NumberOf(stream)}; };
  return Allocate({Name::cudaMallocFromPoolAsync, ASHLAR_RETURN}, pointer, asked, pointer, bytes, pool, stream);
}
int cudaMallocFromPoolAsync_ptsz(void** pointer, std::size_t bytes, void* pool, void* stream) {
  const auto asked = [&] { return Asked{bytes, NumberOf(stream)}; };
  return Allocate({Name::cudaMallocFromPoolAsync_ptsz, ASHLAR_RETURN}, pointer, asked, pointer, bytes, pool, stream);
}

int cudaFree(void* pointer) { return Free({Name::cudaFree, ASHLAR_RETURN}, pointer, pointer); }
int cudaFreeAsync(void* pointer, void* stream) {
  return Free({Name::cudaFreeAsync, ASHLAR_RETURN}, pointer, pointer, stream);
}
int cudaFreeAsync_ptsz(void* pointer, void* stream) {
  return Free({Name::cudaFreeAsync_ptsz, ASHLAR_RETURN}, pointer, pointer, stream);
}

int cudaDeviceReset() {
  const OwnCall own;
  const int device = own.is_recorded() ? CurrentDevice() : 0;
  const int result = CallReal(Name::cudaDeviceReset);
  if (own.is_recorded() && result == 0) TellReset({Name::cudaDeviceReset, ASHLAR_RETURN}, device);
  return result;
}

#pragma GCC visibility pop
}

ASHLAR_STANDS_IN(cudaMalloc);
ASHLAR_STANDS_IN(cudaMallocManaged);
ASHLAR_STANDS_IN(cudaMallocPitch);
ASHLAR_STANDS_IN(cudaMalloc3D);
ASHLAR_STANDS_IN(cudaMallocAsync);
ASHLAR_STANDS_IN(cudaMallocAsync_ptsz);
ASHLAR_STANDS_IN(cudaMallocFromPoolAsync);
ASHLAR_STANDS_IN(cudaMallocFromPoolAsync_ptsz);
ASHLAR_STANDS_IN(cudaFree);
ASHLAR_STANDS_IN(cudaFreeAsync);
ASHLAR_STANDS_IN(cudaFreeAsync_ptsz);
ASHLAR_STANDS_IN(cudaDeviceReset);

// CUDA's driver. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.

using namespace ashlar::record;  // NOLINT: these are C functions
namespace abi = ashlar::hollow::abi;

namespace {

constexpr int kDeviceLocation = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kHost = -1;

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

int cuMemAlloc_v2(void** pointer, std::size_t bytes) {
  return Allocate({Name::cuMemAlloc_v2, ASHLAR_RETURN}, pointer, [&] { return Asked{bytes}; }, pointer, bytes);
}
int cuMemAllocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  const auto asked = [&] { return Asked{bytes}; };
  return Allocate({Name::cuMemAllocManaged, ASHLAR_RETURN}, pointer, asked, pointer, bytes, flags);
}
int cuMemAllocPitch_v2(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height, unsigned element) {
  if (pitch != nullptr) *pitch = width;  // what is asked for where it fails
  const auto asked = [&] { return Asked{(pitch == nullptr ? width : *pitch) * height}; };
  return Allocate({Name::cuMemAllocPitch_v2, ASHLAR_RETURN}, pointer, asked, pointer, pitch, width, height, element);
}
int cuMemAllocAsync(void** pointer, std::size_t bytes, void* stream) {
  const auto asked = [&] { return Asked{bytes, NumberOf(stream)}; };
  return Allocate({Name::cuMemAllocAsync, ASHLAR_RETURN}, pointer, asked, pointer, bytes, stream);
}
int cuMemAllocAsync_ptsz(void** pointer, std::size_t bytes, void* stream) {
  const auto asked = [&] { return Asked{bytes, NumberOf(stream)}; };
  return Allocate({Name::cuMemAllocAsync_ptsz, ASHLAR_RETURN}, pointer, asked, pointer, bytes, stream);
}
int cuMemAllocFromPoolAsync(void** pointer, std::size_t bytes, void* pool, void* stream) {
  const auto asked = [&] { return Asked{bytes, NumberOf(stream)}; };
  return Allocate({Name::cuMemAllocFromPoolAsync, ASHLAR_RETURN}, pointer, asked, pointer, bytes, pool, stream);
}
int cuMemAllocFromPoolAsync_ptsz(void** pointer, std::size_t bytes, void* pool, void* stream) {
  const auto asked = [&] { return Asked{bytes, NumberOf(stream)}; };
  return Allocate({Name::cuMemAllocFromPoolAsync_ptsz, ASHLAR_RETURN}, pointer, asked, pointer, bytes, pool, stream);
}

int cuMemFree_v2(void* pointer) { return Free({Name::cuMemFree_v2, ASHLAR_RETURN}, pointer, pointer); }
int cuMemFreeAsync(void* pointer, void* stream) {
  return Free({Name::cuMemFreeAsync, ASHLAR_RETURN}, pointer, pointer, stream);
}
int cuMemFreeAsync_ptsz(void* pointer, void* stream) {
  return Free({Name::cuMemFreeAsync_ptsz, ASHLAR_RETURN}, pointer, pointer, stream);
}

int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const abi::AllocationProp* prop, unsigned long long flags) {
  const OwnCall own;
  const int result = CallReal(Name::cuMemCreate, handle, bytes, prop, flags);
  if (!own.is_recorded() || handle == nullptr || prop == nullptr) return result;
  const Caller caller = {Name::cuMemCreate, ASHLAR_RETURN};
  const bool is_on_device = prop->location.type == kDeviceLocation;
  const Asked asked = {bytes, 0, is_on_device ? prop->location.id : kHost};
  if (result == 0) TellCreated(caller, asked, *handle);
  if (result != 0 && is_on_device) TellFailure(caller, asked, result);
  return result;
}
int cuMemMap(std::uint64_t address, std::size_t bytes, std::size_t offset, std::uint64_t handle,
             unsigned long long flags) {
  const OwnCall own;
  const int result = CallReal(Name::cuMemMap, address, bytes, offset, handle, flags);
  if (own.is_recorded() && result == 0) {
    TellMapped({Name::cuMemMap, ASHLAR_RETURN}, {address, bytes, offset, handle});
  }
  return result;
}
int cuMemUnmap(std::uint64_t address, std::size_t bytes) {
  const OwnCall own;
  const bool is_recorded = own.is_recorded();
  if (is_recorded) TellUnmapped({Name::cuMemUnmap, ASHLAR_RETURN}, address, bytes);
  const int result = CallReal(Name::cuMemUnmap, address, bytes);
  if (is_recorded && result != 0 && !IsShutDown(result)) TellKept(reinterpret_cast<void*>(address), result);
  return result;
}

int cuDevicePrimaryCtxReset_v2(int device) {
  const OwnCall own;
  const int result = CallReal(Name::cuDevicePrimaryCtxReset_v2, device);
  if (own.is_recorded() && result == 0) TellReset({Name::cuDevicePrimaryCtxReset_v2, ASHLAR_RETURN}, device);
  return result;
}

#pragma GCC visibility pop
}

ASHLAR_STANDS_IN(cuMemAlloc_v2);
ASHLAR_STANDS_IN(cuMemAllocManaged);
ASHLAR_STANDS_IN(cuMemAllocPitch_v2);
ASHLAR_STANDS_IN(cuMemAllocAsync);
ASHLAR_STANDS_IN(cuMemAllocAsync_ptsz);
ASHLAR_STANDS_IN(cuMemAllocFromPoolAsync);
ASHLAR_STANDS_IN(cuMemAllocFromPoolAsync_ptsz);
ASHLAR_STANDS_IN(cuMemFree_v2);
ASHLAR_STANDS_IN(cuMemFreeAsync);
ASHLAR_STANDS_IN(cuMemFreeAsync_ptsz);
ASHLAR_STANDS_IN(cuMemCreate);
ASHLAR_STANDS_IN(cuMemMap);
ASHLAR_STANDS_IN(cuMemUnmap);
ASHLAR_STANDS_IN(cuDevicePrimaryCtxReset_v2);
