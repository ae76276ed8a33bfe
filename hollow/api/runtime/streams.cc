// CUDA's runtime: streams, events, host functions. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and
// 13.0.

#include "hollow/api/cuda/streams.h"

#include <cstdint>
#include <cstring>

#include "hollow/api/cuda/arrays.h"
#include "hollow/api/cuda/loaded_code.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/runtime/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return Locked([&](Process& process) { return CreateStream(process, flags, priority, stream); });
}
ASHLAR_SURFACE int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
ASHLAR_SURFACE int cudaStreamCreate(void** stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

ASHLAR_SURFACE int cudaStreamDestroy(void* stream) {
  return Locked([&](Process& process) { return DestroyStream(process, stream); });
}

ASHLAR_SURFACE int cudaStreamGetPriority(void* stream, int* priority) {
  return Locked([&](Process& process) {
    const StreamModel* known = StreamOf(process, stream);
    if (known == nullptr) return Error::kInvalidHandle;
    if (priority == nullptr) return Error::kInvalidValue;
    *priority = known->priority;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaStreamGetFlags(void* stream, unsigned* flags) {
  return Locked([&](Process& process) {
    const StreamModel* known = StreamOf(process, stream);
    if (known == nullptr) return Error::kInvalidHandle;
    if (flags == nullptr) return Error::kInvalidValue;
    *flags = known->flags;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaStreamGetId(void* stream, unsigned long long* id) {
  return Locked([&](Process& process) {
    const StreamModel* known = StreamOf(process, stream);
    if (known == nullptr) return Error::kInvalidHandle;
    if (id == nullptr) return Error::kInvalidValue;
    *id = known->id;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaStreamGetDevice(void* stream, int* device) {
  return Locked([&](Process& process) {
    const StreamModel* known = StreamOf(process, stream);
    if (known == nullptr) return Error::kInvalidHandle;
    if (device == nullptr) return Error::kInvalidValue;
    *device = known->device;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaStreamQuery(void* stream) {
  const Error error = QueryStream(stream);
  return error == Error::kNotReady ? static_cast<int>(error) : Last(error);
}
ASHLAR_SURFACE int cudaStreamSynchronize(void* stream) { return Last(SynchronizeStream(stream)); }
ASHLAR_SURFACE int cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return Last(WaitForEvent(stream, event, flags));
}

ASHLAR_IGNORED(cudaStreamSetAttribute, "a hint of how fast work is done: nothing runs")
ASHLAR_IGNORED(cudaStreamCopyAttributes, "a hint of how fast work is done: nothing runs")
ASHLAR_SURFACE int cudaStreamAttachMemAsync(void* stream, void*, std::size_t, unsigned) {
  return Last(GiveKernel(stream));
}
ASHLAR_IGNORED(cudaCtxResetPersistingL2Cache, "there is no cache to reset")

ASHLAR_SURFACE int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  if (function == nullptr) return Last(Error::kInvalidValue);
  return Last(GiveHostFunction(stream, [function, data] { function(data); }));
}

ASHLAR_SURFACE int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data,
                                         unsigned flags) {
  if (function == nullptr || flags != 0) return Last(Error::kInvalidValue);
  return Last(GiveHostFunction(stream, [function, stream, data] { function(stream, 0, data); }));
}

ASHLAR_SURFACE int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return Locked([&](Process& process) { return CreateEvent(process, flags, event); });
}
ASHLAR_SURFACE int cudaEventCreate(void** event) { return cudaEventCreateWithFlags(event, 0); }

ASHLAR_SURFACE int cudaEventDestroy(void* event) {
  return Locked([&](Process& process) { return DestroyEvent(process, event); });
}

ASHLAR_SURFACE int cudaEventRecord(void* event, void* stream) { return Last(RecordEvent(event, stream)); }
ASHLAR_SURFACE int cudaEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return Last(RecordEvent(event, stream, flags));
}

// An event that is not done is no error to remember.
ASHLAR_SURFACE int cudaEventQuery(void* event) {
  const Error error = QueryEvent(event);
  return error == Error::kNotReady ? static_cast<int>(error) : Last(error);
}
ASHLAR_SURFACE int cudaEventSynchronize(void* event) { return Last(SynchronizeEvent(event)); }

ASHLAR_SURFACE int cudaEventElapsedTime(float* ms, void* begin, void* end) {
  return Locked([&](Process& process) { return ElapsedTime(process, begin, end, ms); });
}
ASHLAR_SURFACE int cudaEventElapsedTime_v2(float* ms, void* begin, void* end) {
  return cudaEventElapsedTime(ms, begin, end);
}

ASHLAR_SURFACE int cudaIpcGetEventHandle(abi::IpcHandle* handle, void* event) {
  return Locked([&](Process& process) { return ExportEvent(process, event, handle); });
}
ASHLAR_SURFACE int cudaIpcOpenEventHandle(void** event, abi::IpcHandle handle) {
  return Locked([&](Process& process) { return CreateEvent(process, handle.bytes[0], event); });
}

ASHLAR_SAME(cudaStreamGetPriority_ptsz, cudaStreamGetPriority);
ASHLAR_SAME(cudaStreamGetFlags_ptsz, cudaStreamGetFlags);
ASHLAR_SAME(cudaStreamGetId_ptsz, cudaStreamGetId);
ASHLAR_SAME(cudaStreamGetDevice_ptsz, cudaStreamGetDevice);
ASHLAR_SAME(cudaStreamQuery_ptsz, cudaStreamQuery);
ASHLAR_SAME(cudaStreamSynchronize_ptsz, cudaStreamSynchronize);
ASHLAR_SAME(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent);
ASHLAR_SAME(cudaStreamSetAttribute_ptsz, cudaStreamSetAttribute);
ASHLAR_SAME(cudaStreamCopyAttributes_ptsz, cudaStreamCopyAttributes);
ASHLAR_SAME(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync);
ASHLAR_SAME(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc);
ASHLAR_SAME(cudaStreamAddCallback_ptsz, cudaStreamAddCallback);
ASHLAR_SAME(cudaEventRecord_ptsz, cudaEventRecord);
ASHLAR_SAME(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags);

// CUDA's runtime: captures of streams. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaStreamBeginCapture(void* stream, int mode) {
  return Locked([&](Process& process) { return BeginCapture(process, stream, mode); });
}

ASHLAR_SURFACE int cudaStreamBeginCaptureToGraph(void* stream, void* graph, GraphNode* const* after, const void*,
                                                 std::size_t count, int mode) {
  return Locked([&](Process& process) { return BeginCaptureInto(process, stream, mode, graph, after, count); });
}

ASHLAR_SURFACE int cudaStreamEndCapture(void* stream, void** graph) {
  return Locked([&](Process& process) { return EndCapture(process, stream, graph); });
}

ASHLAR_SURFACE int cudaStreamIsCapturing(void* stream, int* status) {
  return Locked([&](Process& process) { return ReadCapture(process, stream, {status}); });
}

// CUDA 11 and 12 export this name with three arguments, CUDA 13 with seven.
ASHLAR_SURFACE int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id, void** graph,
                                            GraphNode* const** after, const void** edges, std::size_t* count) {
  const CaptureOut out =
      RuntimeMajor() < 13 ? CaptureOut{status, id} : CaptureOut{status, id, graph, after, edges, count};
  return Locked([&](Process& process) { return ReadCapture(process, stream, out); });
}
#define ASHLAR_CAPTURE_INFO(name)                                                                                \
  ASHLAR_OF_VERSIONS(name, cudaStreamGetCaptureInfo,                                                             \
                     (void* stream, int* status, unsigned long long* id, void** graph, GraphNode* const** after, \
                      const void** edges, std::size_t* count),                                                   \
                     (stream, status, id, graph, after, edges, count))
ASHLAR_CAPTURE_INFO(cudaStreamGetCaptureInfo)
ASHLAR_CAPTURE_INFO(cudaStreamGetCaptureInfo_ptsz)
ASHLAR_SURFACE int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                                               GraphNode* const** after, std::size_t* count) {
  return Locked(
      [&](Process& process) { return ReadCapture(process, stream, {status, id, graph, after, nullptr, count}); });
}
ASHLAR_SURFACE int cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                                               GraphNode* const** after, const void** edges, std::size_t* count) {
  return Locked(
      [&](Process& process) { return ReadCapture(process, stream, {status, id, graph, after, edges, count}); });
}

namespace {

int UpdateAfter(void* stream, GraphNode* const* nodes, std::size_t count, unsigned flags) {
  return Locked([&](Process& process) { return SetCaptureAfter(process, stream, nodes, count, flags); });
}

}  // namespace

ASHLAR_SURFACE int cudaStreamUpdateCaptureDependencies_v2(void* stream, GraphNode* const* nodes, const void*,
                                                          std::size_t count, unsigned flags) {
  return UpdateAfter(stream, nodes, count, flags);
}
// CUDA 11 and 12: (stream, nodes, count, flags); CUDA 13 has the edges' data third.
ASHLAR_SURFACE int cudaStreamUpdateCaptureDependencies(void* stream, GraphNode* const* nodes, std::uint64_t third,
                                                       std::uint64_t fourth, unsigned flags) {
  if (RuntimeMajor() < 13) return UpdateAfter(stream, nodes, third, static_cast<unsigned>(fourth));
  return UpdateAfter(stream, nodes, fourth, flags);
}
#define ASHLAR_CAPTURE_UPDATE(name)                                                                       \
  ASHLAR_OF_VERSIONS(                                                                                     \
      name, cudaStreamUpdateCaptureDependencies,                                                          \
      (void* stream, GraphNode* const* nodes, std::uint64_t third, std::uint64_t fourth, unsigned flags), \
      (stream, nodes, third, fourth, flags))
ASHLAR_CAPTURE_UPDATE(cudaStreamUpdateCaptureDependencies)
ASHLAR_CAPTURE_UPDATE(cudaStreamUpdateCaptureDependencies_ptsz)

ASHLAR_SURFACE int cudaThreadExchangeStreamCaptureMode(int* mode) { return Last(ExchangeCaptureMode(mode)); }

ASHLAR_SAME(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture);
ASHLAR_SAME(cudaStreamBeginCaptureToGraph_ptsz, cudaStreamBeginCaptureToGraph);
ASHLAR_SAME(cudaStreamEndCapture_ptsz, cudaStreamEndCapture);
ASHLAR_SAME(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing);
ASHLAR_SAME(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo);
ASHLAR_SAME(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo_v2);
ASHLAR_SAME(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo_v3);
ASHLAR_SAME(cudaStreamUpdateCaptureDependencies_ptsz, cudaStreamUpdateCaptureDependencies);
ASHLAR_SAME(cudaStreamUpdateCaptureDependencies_v2_ptsz, cudaStreamUpdateCaptureDependencies_v2);

// CUDA's runtime: copies and fills. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and 13.0.
// Addresses tell where bytes lie; a kind that says otherwise is refused, as CUDA does.

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

CopyShape Line(std::size_t bytes) { return {bytes, 1, bytes, bytes}; }

CopyShape BoxShape(const abi::PitchedPtr& rows, const abi::Extent& extent) {
  const std::uint64_t slice = rows.pitch * rows.ysize;
  return {extent.width, extent.height, rows.pitch, rows.pitch, extent.depth, slice, slice};
}

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
  if (const Error error = ReadCopy(*params, &copy); error != Error::kNone) return Last(error);
  return CopyAndWait(copy.to, copy.from, copy.shape);
}

ASHLAR_SURFACE int cudaMemcpy3DAsync(const abi::Memcpy3D* params, void* stream) {
  CopyWork copy = {};
  if (params == nullptr) return Last(Error::kInvalidValue);
  if (const Error error = ReadCopy(*params, &copy); error != Error::kNone) return Last(error);
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
  return FillAndWait(to.ptr, value, BoxShape(to, extent));
}

ASHLAR_SURFACE int cudaMemset3DAsync(abi::PitchedPtr to, int value, abi::Extent extent, void* stream) {
  return Last(FillOnStream(to.ptr, static_cast<std::uint32_t>(value), 1, BoxShape(to, extent), stream));
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
  return Locked([&](Process& process) {
    TellVariable(process, known, SymbolBytes(symbol));
    return Error::kNone;
  });
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
ASHLAR_SAME(cudaMemset3D_ptds, cudaMemset3D);
ASHLAR_SAME(cudaMemset3DAsync_ptsz, cudaMemset3DAsync);
ASHLAR_SAME(cudaMemset_ptds, cudaMemset);
ASHLAR_SAME(cudaMemsetAsync_ptsz, cudaMemsetAsync);
ASHLAR_SAME(cudaMemset2D_ptds, cudaMemset2D);
ASHLAR_SAME(cudaMemset2DAsync_ptsz, cudaMemset2DAsync);
ASHLAR_SAME(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol);
ASHLAR_SAME(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync);
ASHLAR_SAME(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol);
ASHLAR_SAME(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync);
