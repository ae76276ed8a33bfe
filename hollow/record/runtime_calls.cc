// CUDA's runtime. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
#include <cstddef>

#include "hollow/abi/cuda_types.h"
#include "hollow/record/calls.h"
#include "hollow/record/device_state.h"

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
