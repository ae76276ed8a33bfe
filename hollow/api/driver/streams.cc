// CUDA's driver: streams, events, captures, host functions. Source of the signatures: cuda.h of CUDA 11.8, 12.4
// and 13.0. Where the runtime has the same call, it is the same function.

#include "hollow/api/cuda/streams.h"

#include "hollow/api/cuda/arrays.h"
#include "hollow/api/cuda/green_contexts.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/driver/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

// `read(stream)`, of a stream that is there.
template <typename Read>
int OfStream(void* handle, Read read) {
  return Driven([&](Process& process) {
    const StreamModel* stream = StreamOf(process, handle);
    return stream == nullptr ? Error::kInvalidHandle : read(process, *stream);
  });
}

template <typename Value, typename From>
Error Give(Value* out, From value) {
  if (out == nullptr) return Error::kInvalidValue;
  *out = static_cast<Value>(value);
  return Error::kNone;
}

}  // namespace

ASHLAR_SURFACE int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return Driven([&](Process& process) {
    const void* green = GreenOfContext(process, nullptr);
    return green != nullptr && stream != nullptr && flags <= 1
               ? MakeGreenStream(process, stream, green, flags, priority)
               : CreateStream(process, flags, priority, stream);
  });
}
ASHLAR_SURFACE int cuStreamCreate(void** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

ASHLAR_SURFACE int cuStreamDestroy_v2(void* stream) {
  return Driven([&](Process& process) { return DestroyStream(process, stream); });
}
ASHLAR_SAME(cuStreamDestroy, cuStreamDestroy_v2);

ASHLAR_SURFACE int cuStreamGetPriority(void* stream, int* priority) {
  return OfStream(stream, [&](Process&, const StreamModel& known) { return Give(priority, known.priority); });
}
ASHLAR_SURFACE int cuStreamGetFlags(void* stream, unsigned* flags) {
  return OfStream(stream, [&](Process&, const StreamModel& known) { return Give(flags, known.flags); });
}
ASHLAR_SURFACE int cuStreamGetId(void* stream, unsigned long long* id) {
  return OfStream(stream, [&](Process&, const StreamModel& known) { return Give(id, known.id); });
}
ASHLAR_SURFACE int cuStreamGetDevice(void* stream, int* device) {
  return OfStream(stream, [&](Process&, const StreamModel& known) { return Give(device, known.device); });
}
ASHLAR_SURFACE int cuStreamGetCtx(void* stream, void** context) {
  return OfStream(stream, [&](Process& process, const StreamModel& known) {
    return Give(context, PrimaryContext(process, known.device));
  });
}
ASHLAR_SURFACE int cuStreamGetCtx_v2(void* stream, void** context, void** green_context) {
  const int error = cuStreamGetCtx(stream, context);
  if (error != 0 || green_context == nullptr) return error;
  return OfStream(stream,
                  [&](Process&, const StreamModel& known) { return Give(green_context, GreenHandleOf(known)); });
}

ASHLAR_SURFACE int cuStreamQuery(void* stream) {
  return AfterInit([=] { return QueryStream(stream); });
}
ASHLAR_SURFACE int cuStreamSynchronize(void* stream) {
  return AfterInit([=] { return SynchronizeStream(stream); });
}
ASHLAR_SURFACE int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return AfterInit([=] { return WaitForEvent(stream, event, flags); });
}

ASHLAR_IGNORED_AFTER_INIT(cuStreamSetAttribute, "a hint of how fast work is done: nothing runs")
ASHLAR_IGNORED_AFTER_INIT(cuStreamCopyAttributes, "a hint of how fast work is done: nothing runs")
ASHLAR_SURFACE int cuStreamAttachMemAsync(void* stream, void*, std::size_t, unsigned) {
  return AfterInit([=] { return GiveKernel(stream); });
}

ASHLAR_SURFACE int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  ASHLAR_NEEDS_INIT();
  if (function == nullptr) return Number(Error::kInvalidValue);
  return Number(GiveHostFunction(stream, [function, data] { function(data); }));
}
// How the stream waits for the function makes no difference to the order.
ASHLAR_SURFACE int cuLaunchHostFunc_v2(void* stream, void (*function)(void*), void* data, unsigned) {
  return cuLaunchHostFunc(stream, function, data);
}
ASHLAR_SURFACE int cuStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data, unsigned flags) {
  ASHLAR_NEEDS_INIT();
  if (function == nullptr || flags != 0) return Number(Error::kInvalidValue);
  return Number(GiveHostFunction(stream, [function, stream, data] { function(stream, 0, data); }));
}

ASHLAR_SURFACE int cuStreamBeginCapture_v2(void* stream, int mode) {
  return Driven([&](Process& process) { return BeginCapture(process, stream, mode); });
}
ASHLAR_SURFACE int cuStreamBeginCapture(void* stream) { return cuStreamBeginCapture_v2(stream, 0); }
ASHLAR_SURFACE int cuStreamBeginCaptureToGraph(void* stream, void* graph, GraphNode* const* after, const void*,
                                               std::size_t count, int mode) {
  return Driven([&](Process& process) { return BeginCaptureInto(process, stream, mode, graph, after, count); });
}
ASHLAR_SURFACE int cuStreamEndCapture(void* stream, void** graph) {
  return Driven([&](Process& process) { return EndCapture(process, stream, graph); });
}
ASHLAR_SURFACE int cuStreamIsCapturing(void* stream, int* status) {
  return Driven([&](Process& process) { return ReadCapture(process, stream, {status}); });
}
ASHLAR_SURFACE int cuStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  return Driven([&](Process& process) { return ReadCapture(process, stream, {status, id}); });
}
ASHLAR_SURFACE int cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                                             GraphNode* const** after, std::size_t* count) {
  return Driven(
      [&](Process& process) { return ReadCapture(process, stream, {status, id, graph, after, nullptr, count}); });
}
ASHLAR_SURFACE int cuStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                                             GraphNode* const** after, const void** edges, std::size_t* count) {
  return Driven(
      [&](Process& process) { return ReadCapture(process, stream, {status, id, graph, after, edges, count}); });
}
ASHLAR_SURFACE int cuStreamUpdateCaptureDependencies(void* stream, GraphNode* const* nodes, std::size_t count,
                                                     unsigned flags) {
  return Driven([&](Process& process) { return SetCaptureAfter(process, stream, nodes, count, flags); });
}
ASHLAR_SURFACE int cuStreamUpdateCaptureDependencies_v2(void* stream, GraphNode* const* nodes, const void*,
                                                        std::size_t count, unsigned flags) {
  return cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}
ASHLAR_SURFACE int cuThreadExchangeStreamCaptureMode(int* mode) {
  return AfterInit([=] { return ExchangeCaptureMode(mode); });
}

ASHLAR_SURFACE int cuEventCreate(void** event, unsigned flags) {
  return Driven([&](Process& process) { return CreateEvent(process, flags, event); });
}
ASHLAR_SURFACE int cuEventDestroy_v2(void* event) {
  return Driven([&](Process& process) { return DestroyEvent(process, event); });
}
ASHLAR_SAME(cuEventDestroy, cuEventDestroy_v2);

ASHLAR_SURFACE int cuEventRecord(void* event, void* stream) {
  return AfterInit([=] { return RecordEvent(event, stream); });
}
ASHLAR_SURFACE int cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
  return AfterInit([=] { return RecordEvent(event, stream, flags); });
}
ASHLAR_SURFACE int cuEventQuery(void* event) {
  return AfterInit([=] { return QueryEvent(event); });
}
ASHLAR_SURFACE int cuEventSynchronize(void* event) {
  return AfterInit([=] { return SynchronizeEvent(event); });
}

ASHLAR_SURFACE int cuEventElapsedTime_v2(float* ms, void* begin, void* end) {
  return Driven([&](Process& process) { return ElapsedTime(process, begin, end, ms); });
}
ASHLAR_SAME(cuEventElapsedTime, cuEventElapsedTime_v2);

ASHLAR_SURFACE int cuIpcGetEventHandle(abi::IpcHandle* handle, void* event) {
  return Driven([&](Process& process) { return ExportEvent(process, event, handle); });
}
ASHLAR_SURFACE int cuIpcOpenEventHandle(void** event, abi::IpcHandle handle) {
  return Driven([&](Process& process) { return CreateEvent(process, handle.bytes[0], event); });
}

ASHLAR_SAME(cuStreamGetPriority_ptsz, cuStreamGetPriority);
ASHLAR_SAME(cuStreamGetFlags_ptsz, cuStreamGetFlags);
ASHLAR_SAME(cuStreamGetId_ptsz, cuStreamGetId);
ASHLAR_SAME(cuStreamGetCtx_ptsz, cuStreamGetCtx);
ASHLAR_SAME(cuStreamQuery_ptsz, cuStreamQuery);
ASHLAR_SAME(cuStreamSynchronize_ptsz, cuStreamSynchronize);
ASHLAR_SAME(cuStreamWaitEvent_ptsz, cuStreamWaitEvent);
ASHLAR_SAME(cuLaunchHostFunc_ptsz, cuLaunchHostFunc);
ASHLAR_SAME(cuLaunchHostFunc_v2_ptsz, cuLaunchHostFunc_v2);
ASHLAR_SAME(cuStreamAddCallback_ptsz, cuStreamAddCallback);
ASHLAR_SAME(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture_v2);
ASHLAR_SAME(cuStreamEndCapture_ptsz, cuStreamEndCapture);
ASHLAR_SAME(cuStreamIsCapturing_ptsz, cuStreamIsCapturing);
ASHLAR_SAME(cuEventRecord_ptsz, cuEventRecord);
ASHLAR_SAME(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags);

// CUDA's driver: copies and fills. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

CopyShape Line(std::size_t bytes) { return {bytes, 1, bytes, bytes}; }

int CopyAndWait(void* to, const void* from, const CopyShape& shape) {
  if (const Error error = WaitForLegacy(); error != Error::kNone) return Number(error);
  return Number(CopyBytes(to, from, shape));
}

int FillAndWait(void* to, std::uint32_t pattern, unsigned element_bytes, const CopyShape& shape) {
  if (const Error error = WaitForLegacy(); error != Error::kNone) return Number(error);
  return Number(FillBytes(to, pattern, element_bytes, shape));
}

// Of CUDA_MEMCPY2D and CUDA_MEMCPY3D.
template <typename Params>
int CopyBox(const Params* params) {
  ASHLAR_NEEDS_INIT();
  CopyWork copy = {};
  if (params == nullptr) return Number(Error::kInvalidValue);
  if (const Error error = ReadCopy(*params, &copy); error != Error::kNone) return Number(error);
  return CopyAndWait(copy.to, copy.from, copy.shape);
}
template <typename Params>
int CopyBoxOnStream(const Params* params, void* stream) {
  ASHLAR_NEEDS_INIT();
  CopyWork copy = {};
  if (params == nullptr) return Number(Error::kInvalidValue);
  if (const Error error = ReadCopy(*params, &copy); error != Error::kNone) return Number(error);
  return Number(CopyOnStream(copy.to, copy.from, copy.shape, stream));
}

}  // namespace

ASHLAR_SURFACE int cuMemcpy(void* to, const void* from, std::size_t bytes) {
  ASHLAR_NEEDS_INIT();
  return CopyAndWait(to, from, Line(bytes));
}
ASHLAR_SURFACE int cuMemcpyHtoD_v2(void* to, const void* from, std::size_t bytes) { return cuMemcpy(to, from, bytes); }
ASHLAR_SURFACE int cuMemcpyDtoH_v2(void* to, const void* from, std::size_t bytes) { return cuMemcpy(to, from, bytes); }
ASHLAR_SURFACE int cuMemcpyDtoD_v2(void* to, const void* from, std::size_t bytes) { return cuMemcpy(to, from, bytes); }
ASHLAR_SURFACE int cuMemcpyPeer(void* to, void*, const void* from, void*, std::size_t bytes) {
  return cuMemcpy(to, from, bytes);
}

ASHLAR_SURFACE int cuMemcpyAsync(void* to, const void* from, std::size_t bytes, void* stream) {
  return AfterInit([=] { return CopyOnStream(to, from, Line(bytes), stream); });
}
ASHLAR_SURFACE int cuMemcpyHtoDAsync_v2(void* to, const void* from, std::size_t bytes, void* stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
ASHLAR_SURFACE int cuMemcpyDtoHAsync_v2(void* to, const void* from, std::size_t bytes, void* stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
ASHLAR_SURFACE int cuMemcpyDtoDAsync_v2(void* to, const void* from, std::size_t bytes, void* stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
ASHLAR_SURFACE int cuMemcpyPeerAsync(void* to, void*, const void* from, void*, std::size_t bytes, void* stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}

ASHLAR_SURFACE int cuMemcpy2D_v2(const abi::Memcpy2D* params) { return CopyBox(params); }
ASHLAR_SURFACE int cuMemcpy2DUnaligned_v2(const abi::Memcpy2D* params) { return CopyBox(params); }
ASHLAR_SURFACE int cuMemcpy2DAsync_v2(const abi::Memcpy2D* params, void* stream) {
  return CopyBoxOnStream(params, stream);
}
ASHLAR_SURFACE int cuMemcpy3D_v2(const abi::DriverMemcpy3D* params) { return CopyBox(params); }
ASHLAR_SURFACE int cuMemcpy3DAsync_v2(const abi::DriverMemcpy3D* params, void* stream) {
  return CopyBoxOnStream(params, stream);
}

ASHLAR_SURFACE int cuMemsetD8_v2(void* to, unsigned char value, std::size_t count) {
  ASHLAR_NEEDS_INIT();
  return FillAndWait(to, value, 1, Line(count));
}
ASHLAR_SURFACE int cuMemsetD16_v2(void* to, unsigned short value, std::size_t count) {
  ASHLAR_NEEDS_INIT();
  return FillAndWait(to, value, 2, Line(count * 2));
}
ASHLAR_SURFACE int cuMemsetD32_v2(void* to, unsigned value, std::size_t count) {
  ASHLAR_NEEDS_INIT();
  return FillAndWait(to, value, 4, Line(count * 4));
}
ASHLAR_SURFACE int cuMemsetD8Async(void* to, unsigned char value, std::size_t count, void* stream) {
  return AfterInit([=] { return FillOnStream(to, value, 1, Line(count), stream); });
}
ASHLAR_SURFACE int cuMemsetD16Async(void* to, unsigned short value, std::size_t count, void* stream) {
  return AfterInit([=] { return FillOnStream(to, value, 2, Line(count * 2), stream); });
}
ASHLAR_SURFACE int cuMemsetD32Async(void* to, unsigned value, std::size_t count, void* stream) {
  return AfterInit([=] { return FillOnStream(to, value, 4, Line(count * 4), stream); });
}

ASHLAR_SURFACE int cuMemsetD2D8_v2(void* to, std::size_t pitch, unsigned char value, std::size_t width,
                                   std::size_t height) {
  ASHLAR_NEEDS_INIT();
  return FillAndWait(to, value, 1, {width, height, pitch, pitch});
}
ASHLAR_SURFACE int cuMemsetD2D16_v2(void* to, std::size_t pitch, unsigned short value, std::size_t width,
                                    std::size_t height) {
  ASHLAR_NEEDS_INIT();
  return FillAndWait(to, value, 2, {width * 2, height, pitch, pitch});
}
ASHLAR_SURFACE int cuMemsetD2D32_v2(void* to, std::size_t pitch, unsigned value, std::size_t width,
                                    std::size_t height) {
  ASHLAR_NEEDS_INIT();
  return FillAndWait(to, value, 4, {width * 4, height, pitch, pitch});
}
ASHLAR_SURFACE int cuMemsetD2D8Async(void* to, std::size_t pitch, unsigned char value, std::size_t width,
                                     std::size_t height, void* stream) {
  return AfterInit([=] { return FillOnStream(to, value, 1, {width, height, pitch, pitch}, stream); });
}
ASHLAR_SURFACE int cuMemsetD2D16Async(void* to, std::size_t pitch, unsigned short value, std::size_t width,
                                      std::size_t height, void* stream) {
  return AfterInit([=] { return FillOnStream(to, value, 2, {width * 2, height, pitch, pitch}, stream); });
}
ASHLAR_SURFACE int cuMemsetD2D32Async(void* to, std::size_t pitch, unsigned value, std::size_t width,
                                      std::size_t height, void* stream) {
  return AfterInit([=] { return FillOnStream(to, value, 4, {width * 4, height, pitch, pitch}, stream); });
}

// Values that streams write are real; one that a stream waits for counts as there.
ASHLAR_SURFACE int cuStreamWriteValue32_v2(void* stream, void* to, unsigned value, unsigned) {
  return AfterInit([=] { return FillOnStream(to, value, 4, Line(4), stream); });
}
ASHLAR_SURFACE int cuStreamWriteValue64_v2(void* stream, void* to, unsigned long long value, unsigned) {
  ASHLAR_NEEDS_INIT();
  const Error error = FillOnStream(to, static_cast<unsigned>(value), 4, Line(4), stream);
  if (error != Error::kNone) return Number(error);
  return Number(FillOnStream(static_cast<char*>(to) + 4, static_cast<unsigned>(value >> 32), 4, Line(4), stream));
}
ASHLAR_SURFACE int cuStreamWaitValue32_v2(void* stream, void*, unsigned, unsigned) {
  return AfterInit([=] { return GiveKernel(stream); });
}
ASHLAR_SURFACE int cuStreamWaitValue64_v2(void* stream, void*, unsigned long long, unsigned) {
  return AfterInit([=] { return GiveKernel(stream); });
}
ASHLAR_SAME(cuStreamWriteValue32, cuStreamWriteValue32_v2);
ASHLAR_SAME(cuStreamWriteValue64, cuStreamWriteValue64_v2);
ASHLAR_SAME(cuStreamWaitValue32, cuStreamWaitValue32_v2);
ASHLAR_SAME(cuStreamWaitValue64, cuStreamWaitValue64_v2);

ASHLAR_SAME(cuMemcpy_ptds, cuMemcpy);
ASHLAR_SAME(cuMemcpyAsync_ptsz, cuMemcpyAsync);
ASHLAR_SAME(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2);
ASHLAR_SAME(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2);
ASHLAR_SAME(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2);
ASHLAR_SAME(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync_v2);
ASHLAR_SAME(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync_v2);
ASHLAR_SAME(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync_v2);
ASHLAR_SAME(cuMemcpy2D_v2_ptds, cuMemcpy2D_v2);
ASHLAR_SAME(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2DUnaligned_v2);
ASHLAR_SAME(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync_v2);
ASHLAR_SAME(cuMemcpy3D_v2_ptds, cuMemcpy3D_v2);
ASHLAR_SAME(cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DAsync_v2);
ASHLAR_SAME(cuMemsetD8_v2_ptds, cuMemsetD8_v2);
ASHLAR_SAME(cuMemsetD32_v2_ptds, cuMemsetD32_v2);
ASHLAR_SAME(cuMemsetD8Async_ptsz, cuMemsetD8Async);
ASHLAR_SAME(cuMemsetD16Async_ptsz, cuMemsetD16Async);
ASHLAR_SAME(cuMemsetD32Async_ptsz, cuMemsetD32Async);
