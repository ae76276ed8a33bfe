// CUDA's runtime: arrays, and the objects by which kernels read them. Source of the signatures: cuda_runtime_api.h of
// CUDA 11.8, 12.4 and 13.0.
#include "hollow/api/cuda/arrays.h"

#include <algorithm>
#include <atomic>

#include "hollow/api/cuda/memory.h"
#include "hollow/api/runtime/call.h"
#include "hollow/model/calling_library.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

int NewArray(void** array, const abi::ChannelFormat* channels, const abi::Extent& extent, unsigned flags) {
  if (channels == nullptr) return Last(Error::kInvalidValue);
  const int bits[] = {channels->x, channels->y, channels->z, channels->w};
  const auto used = std::count_if(std::begin(bits), std::end(bits), [](int one) { return one != 0; });
  const abi::ArrayDescriptor form = {
      extent.width, extent.height, extent.depth, FormatOf(channels->x, channels->kind), static_cast<unsigned>(used),
      flags};
  return Locked([&](Process& process) { return MakeArray(process, form, array); });
}

// Of a texture or a surface, which nothing here reads: a number that is never given twice.
int NewObject(std::uint64_t* object, const void* resource) {
  static std::atomic<std::uint64_t> next = 1;
  (void)StartedProcess();
  if (object == nullptr || resource == nullptr) return Last(Error::kInvalidValue);
  *object = next.fetch_add(1);
  return 0;
}

int CopyArray(const CopyWork& copy, void* stream, bool is_async) {
  if (is_async) return Last(CopyOnStream(copy.to, copy.from, copy.shape, stream));
  if (const Error error = WaitForLegacy(); error != Error::kNone) return Last(error);
  return Last(CopyBytes(copy.to, copy.from, copy.shape));
}

// Rows of a flat array, from a byte of a row on. A null array is none.
BoxSide RowsOfArray(const void* array, std::size_t byte, std::size_t row) {
  BoxSide out;
  out.array = array;
  out.x_bytes = byte;
  out.y = row;
  return out;
}
BoxSide RowsFrom(const void* address, std::size_t pitch) {
  BoxSide out;
  out.base = address;
  out.pitch = pitch;
  return out;
}

int CopyRows(const BoxSide& to, const BoxSide& from, std::size_t width, std::size_t height, void* stream,
             bool is_async) {
  CopyWork copy = {};
  if (to.array == nullptr && from.array == nullptr) return Last(Error::kInvalidValue);
  if (const Error error = WorkOf({to, from, width, height}, &copy); error != Error::kNone) return Last(error);
  return CopyArray(copy, stream, is_async);
}

}  // namespace

ASHLAR_SURFACE int cudaMallocArray(void** array, const abi::ChannelFormat* channels, std::size_t width,
                                   std::size_t height, unsigned flags) {
  const CallFrom call(ASHLAR_CALLER);
  return NewArray(array, channels, {width, height, 0}, flags);
}
ASHLAR_SURFACE int cudaMalloc3DArray(void** array, const abi::ChannelFormat* channels, abi::Extent extent,
                                     unsigned flags) {
  const CallFrom call(ASHLAR_CALLER);
  return NewArray(array, channels, extent, flags);
}
ASHLAR_SURFACE int cudaFreeArray(void* array) {
  return Locked([&](Process& process) { return FreeArray(process, array); });
}
ASHLAR_SURFACE int cudaArrayGetInfo(abi::ChannelFormat* channels, abi::Extent* extent, unsigned* flags, void* array) {
  const DeviceArray* found = ArrayOf(array);
  if (found == nullptr) return Last(Error::kInvalidHandle);
  if (channels != nullptr) *channels = ChannelsOf(found->form);
  if (extent != nullptr) *extent = {found->form.width, found->form.height, found->form.depth};
  if (flags != nullptr) *flags = found->form.flags;
  return 0;
}

ASHLAR_SURFACE int cudaMemcpy2DToArray(void* array, std::size_t byte, std::size_t row, const void* from,
                                       std::size_t pitch, std::size_t width, std::size_t height, int) {
  return CopyRows(RowsOfArray(array, byte, row), RowsFrom(from, pitch), width, height, nullptr, /*is_async=*/false);
}
ASHLAR_SURFACE int cudaMemcpy2DToArrayAsync(void* array, std::size_t byte, std::size_t row, const void* from,
                                            std::size_t pitch, std::size_t width, std::size_t height, int,
                                            void* stream) {
  return CopyRows(RowsOfArray(array, byte, row), RowsFrom(from, pitch), width, height, stream, /*is_async=*/true);
}
ASHLAR_SURFACE int cudaMemcpy2DFromArray(void* to, std::size_t pitch, const void* array, std::size_t byte,
                                         std::size_t row, std::size_t width, std::size_t height, int) {
  return CopyRows(RowsFrom(to, pitch), RowsOfArray(array, byte, row), width, height, nullptr, /*is_async=*/false);
}
ASHLAR_SURFACE int cudaMemcpy2DFromArrayAsync(void* to, std::size_t pitch, const void* array, std::size_t byte,
                                              std::size_t row, std::size_t width, std::size_t height, int,
                                              void* stream) {
  return CopyRows(RowsFrom(to, pitch), RowsOfArray(array, byte, row), width, height, stream, /*is_async=*/true);
}
ASHLAR_SURFACE int cudaMemcpy2DArrayToArray(void* to, std::size_t to_byte, std::size_t to_row, const void* from,
                                            std::size_t from_byte, std::size_t from_row, std::size_t width,
                                            std::size_t height, int) {
  if (to == nullptr || from == nullptr) return Last(Error::kInvalidValue);
  return CopyRows(RowsOfArray(to, to_byte, to_row), RowsOfArray(from, from_byte, from_row), width, height, nullptr,
                  /*is_async=*/false);
}

ASHLAR_SURFACE int cudaCreateTextureObject(std::uint64_t* object, const void* resource, const void*, const void*) {
  return NewObject(object, resource);
}
ASHLAR_SURFACE int cudaCreateSurfaceObject(std::uint64_t* object, const void* resource) {
  return NewObject(object, resource);
}
ASHLAR_IGNORED(cudaDestroyTextureObject, "its number is not given again")
ASHLAR_IGNORED(cudaDestroySurfaceObject, "its number is not given again")

ASHLAR_SAME(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArray);
ASHLAR_SAME(cudaMemcpy2DToArrayAsync_ptsz, cudaMemcpy2DToArrayAsync);
ASHLAR_SAME(cudaMemcpy2DArrayToArray_ptds, cudaMemcpy2DArrayToArray);
ASHLAR_SAME(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArray);
ASHLAR_SAME(cudaMemcpy2DFromArrayAsync_ptsz, cudaMemcpy2DFromArrayAsync);
