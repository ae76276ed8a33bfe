// CUDA's runtime: streams, events, host functions. Source of the signatures: cuda_runtime_api.h of CUDA 11.8, 12.4 and
// 13.0.
#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/cuda_streams.h"
#include "hollow/surfaces/runtime_call.h"

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
    const Stream* known = StreamOf(process, stream);
    if (known == nullptr) return Error::kInvalidHandle;
    if (priority == nullptr) return Error::kInvalidValue;
    *priority = known->priority;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaStreamGetFlags(void* stream, unsigned* flags) {
  return Locked([&](Process& process) {
    const Stream* known = StreamOf(process, stream);
    if (known == nullptr) return Error::kInvalidHandle;
    if (flags == nullptr) return Error::kInvalidValue;
    *flags = known->flags;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaStreamGetId(void* stream, unsigned long long* id) {
  return Locked([&](Process& process) {
    const Stream* known = StreamOf(process, stream);
    if (known == nullptr) return Error::kInvalidHandle;
    if (id == nullptr) return Error::kInvalidValue;
    *id = known->id;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cudaStreamGetDevice(void* stream, int* device) {
  return Locked([&](Process& process) {
    const Stream* known = StreamOf(process, stream);
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
