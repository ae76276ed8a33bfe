// CUDA's runtime: copies and fills. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
// Addresses tell where bytes lie; a kind that says otherwise is refused, as CUDA does.
#include <cstring>

#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/cuda_streams.h"
#include "hollow/surfaces/runtime_call.h"
#include "hollow/surfaces/symbols.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

CopyShape Line(std::size_t bytes) { return {bytes, 1, bytes, bytes}; }

constexpr int kDefaultKind = 4;  // cudaMemcpyDefault

// A copy that returns when it is done.
int CopyAndWait(void* to, const void* from, const CopyShape& shape, int kind = kDefaultKind) {
  if (const Error error = CheckKind(to, from, shape, kind); error != Error::kNone) return Last(error);
  if (const Error error = WaitForLegacy(); error != Error::kNone) return Last(error);
  return Last(CopyBytes(to, from, shape));
}

int CopyInOrder(void* to, const void* from, const CopyShape& shape, void* stream, int kind = kDefaultKind) {
  const Error error = CheckKind(to, from, shape, kind);
  return Last(error != Error::kNone ? error : CopyOnStream(to, from, shape, stream));
}

int FillAndWait(void* to, int value, const CopyShape& shape) {
  if (const Error error = WaitForLegacy(); error != Error::kNone) return Last(error);
  return Last(FillBytes(to, static_cast<std::uint32_t>(value), 1, shape));
}

}  // namespace

ASHLAR_SURFACE int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  return CopyAndWait(to, from, Line(bytes), kind);
}

ASHLAR_SURFACE int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  return CopyInOrder(to, from, Line(bytes), stream, kind);
}

ASHLAR_SURFACE int cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return CopyAndWait(to, from, Line(bytes));
}

ASHLAR_SURFACE int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void* stream) {
  return CopyInOrder(to, from, Line(bytes), stream);
}

ASHLAR_SURFACE int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                std::size_t width, std::size_t height, int kind) {
  return CopyAndWait(to, from, {width, height, to_pitch, from_pitch}, kind);
}

ASHLAR_SURFACE int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                     std::size_t width, std::size_t height, int kind, void* stream) {
  return CopyInOrder(to, from, {width, height, to_pitch, from_pitch}, stream, kind);
}

ASHLAR_SURFACE int cudaMemcpy3D(const abi::Memcpy3D* params) {
  CopyWork copy = {};
  if (params == nullptr) return Last(Error::kInvalidValue);
  if (!ReadCopy3D(*params, &copy)) {
    CountRefused("cudaMemcpy3D");
    return Last(Error::kNotSupported);
  }
  return CopyAndWait(copy.to, copy.from, copy.shape);
}

ASHLAR_SURFACE int cudaMemcpy3DAsync(const abi::Memcpy3D* params, void* stream) {
  CopyWork copy = {};
  if (params == nullptr) return Last(Error::kInvalidValue);
  if (!ReadCopy3D(*params, &copy)) {
    CountRefused("cudaMemcpy3DAsync");
    return Last(Error::kNotSupported);
  }
  return CopyInOrder(copy.to, copy.from, copy.shape, stream);
}

ASHLAR_SURFACE int cudaMemset(void* to, int value, std::size_t bytes) { return FillAndWait(to, value, Line(bytes)); }

ASHLAR_SURFACE int cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
  return Last(FillOnStream(to, static_cast<std::uint32_t>(value), 1, Line(bytes), stream));
}

ASHLAR_SURFACE int cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return FillAndWait(to, value, {width, height, pitch, pitch});
}

ASHLAR_SURFACE int cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                     void* stream) {
  return Last(FillOnStream(to, static_cast<std::uint32_t>(value), 1, {width, height, pitch, pitch}, stream));
}

ASHLAR_SURFACE int cudaMemset3D(abi::PitchedPtr to, int value, abi::Extent extent) {
  if (extent.depth > 1 && to.ysize != extent.height) {
    CountRefused("cudaMemset3D");
    return Last(Error::kNotSupported);
  }
  return FillAndWait(to.ptr, value, {extent.width, extent.height * extent.depth, to.pitch, to.pitch});
}

ASHLAR_SURFACE int cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                      int) {
  char* address = static_cast<char*>(SymbolAddress(symbol));
  if (address == nullptr) return Last(Error::kInvalidValue);
  std::memcpy(address + offset, from, bytes);
  return 0;
}

ASHLAR_SURFACE int cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                           int kind, void*) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}

// What a kernel wrote to a symbol is not there: the host reads what it wrote itself, and it counts as made up.
ASHLAR_SURFACE int cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset, int) {
  const char* address = static_cast<const char*>(SymbolAddress(symbol));
  if (address == nullptr) return Last(Error::kInvalidValue);
  ReadMadeUp(to, bytes);
  std::memcpy(to, address + offset, bytes);
  return 0;
}

ASHLAR_SURFACE int cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                             int kind, void*) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}

ASHLAR_SURFACE int cudaGetSymbolAddress(void** address, const void* symbol) {
  void* known = SymbolAddress(symbol);
  if (address == nullptr || known == nullptr) return Last(Error::kInvalidValue);
  *address = known;
  return 0;
}

ASHLAR_SURFACE int cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  const std::size_t known = SymbolBytes(symbol);
  if (bytes == nullptr || known == 0) return Last(Error::kInvalidValue);
  *bytes = known;
  return 0;
}

ASHLAR_SAME(cudaMemcpy_ptds, cudaMemcpy);
ASHLAR_SAME(cudaMemcpyAsync_ptsz, cudaMemcpyAsync);
ASHLAR_SAME(cudaMemcpyPeer_ptds, cudaMemcpyPeer);
ASHLAR_SAME(cudaMemcpyPeerAsync_ptsz, cudaMemcpyPeerAsync);
ASHLAR_SAME(cudaMemcpy2D_ptds, cudaMemcpy2D);
ASHLAR_SAME(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync);
ASHLAR_SAME(cudaMemcpy3D_ptds, cudaMemcpy3D);
ASHLAR_SAME(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync);
ASHLAR_SAME(cudaMemset_ptds, cudaMemset);
ASHLAR_SAME(cudaMemsetAsync_ptsz, cudaMemsetAsync);
ASHLAR_SAME(cudaMemset2D_ptds, cudaMemset2D);
ASHLAR_SAME(cudaMemset2DAsync_ptsz, cudaMemset2DAsync);
ASHLAR_SAME(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol);
ASHLAR_SAME(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync);
ASHLAR_SAME(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol);
ASHLAR_SAME(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync);
