// CUDA's driver: streams, events, captures, host functions. Source of the signatures: cuda.h of CUDA 11.8, 12.4
// and 13.0. Where the runtime has the same call, it is the same function.
#include "hollow/surfaces/cuda_capture.h"
#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/cuda_streams.h"
#include "hollow/surfaces/driver_call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

// `read(stream)`, of a stream that is there.
template <typename Read>
int OfStream(void* handle, Read read) {
  return Driven([&](Process& process) {
    const Stream* stream = StreamOf(process, handle);
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
  return Driven([&](Process& process) { return CreateStream(process, flags, priority, stream); });
}
ASHLAR_SURFACE int cuStreamCreate(void** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

ASHLAR_SURFACE int cuStreamDestroy_v2(void* stream) {
  return Driven([&](Process& process) { return DestroyStream(process, stream); });
}
ASHLAR_SAME(cuStreamDestroy, cuStreamDestroy_v2);

ASHLAR_SURFACE int cuStreamGetPriority(void* stream, int* priority) {
  return OfStream(stream, [&](Process&, const Stream& known) { return Give(priority, known.priority); });
}
ASHLAR_SURFACE int cuStreamGetFlags(void* stream, unsigned* flags) {
  return OfStream(stream, [&](Process&, const Stream& known) { return Give(flags, known.flags); });
}
ASHLAR_SURFACE int cuStreamGetId(void* stream, unsigned long long* id) {
  return OfStream(stream, [&](Process&, const Stream& known) { return Give(id, known.id); });
}
ASHLAR_SURFACE int cuStreamGetDevice(void* stream, int* device) {
  return OfStream(stream, [&](Process&, const Stream& known) { return Give(device, known.device); });
}
ASHLAR_SURFACE int cuStreamGetCtx(void* stream, void** context) {
  return OfStream(stream, [&](Process& process, const Stream& known) {
    return Give(context, PrimaryContext(process, known.device));
  });
}
ASHLAR_SURFACE int cuStreamGetCtx_v2(void* stream, void** context, void** green_context) {
  ASHLAR_NEEDS_INIT();
  if (green_context != nullptr) *green_context = nullptr;
  return cuStreamGetCtx(stream, context);
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
ASHLAR_SURFACE int cuStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data, unsigned flags) {
  ASHLAR_NEEDS_INIT();
  if (function == nullptr || flags != 0) return Number(Error::kInvalidValue);
  return Number(GiveHostFunction(stream, [function, stream, data] { function(stream, 0, data); }));
}

ASHLAR_SURFACE int cuStreamBeginCapture_v2(void* stream, int mode) {
  return Driven([&](Process& process) { return BeginCapture(process, stream, mode); });
}
ASHLAR_SURFACE int cuStreamBeginCapture(void* stream) { return cuStreamBeginCapture_v2(stream, 0); }
ASHLAR_SURFACE int cuStreamBeginCaptureToGraph(void* stream, void* graph, Node* const* after, const void*,
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
                                             Node* const** after, std::size_t* count) {
  return Driven(
      [&](Process& process) { return ReadCapture(process, stream, {status, id, graph, after, nullptr, count}); });
}
ASHLAR_SURFACE int cuStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph,
                                             Node* const** after, const void** edges, std::size_t* count) {
  return Driven(
      [&](Process& process) { return ReadCapture(process, stream, {status, id, graph, after, edges, count}); });
}
ASHLAR_SURFACE int cuStreamUpdateCaptureDependencies(void* stream, Node* const* nodes, std::size_t count,
                                                     unsigned flags) {
  return Driven([&](Process& process) { return SetCaptureAfter(process, stream, nodes, count, flags); });
}
ASHLAR_SURFACE int cuStreamUpdateCaptureDependencies_v2(void* stream, Node* const* nodes, const void*,
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
ASHLAR_SAME(cuStreamAddCallback_ptsz, cuStreamAddCallback);
ASHLAR_SAME(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture_v2);
ASHLAR_SAME(cuStreamEndCapture_ptsz, cuStreamEndCapture);
ASHLAR_SAME(cuStreamIsCapturing_ptsz, cuStreamIsCapturing);
ASHLAR_SAME(cuEventRecord_ptsz, cuEventRecord);
ASHLAR_SAME(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags);
