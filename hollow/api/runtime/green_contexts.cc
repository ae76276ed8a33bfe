// CUDA's runtime: green contexts, which it calls execution contexts, since CUDA 13.1. Source of the signatures:
// cuda_runtime_api.h of CUDA 13.5.
#include "hollow/api/cuda/green_contexts.h"

#include "hollow/api/cuda/streams.h"
#include "hollow/api/runtime/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cudaDeviceGetDevResource(int device, abi::DevResource* resource, int kind) {
  return Locked([&](Process& process) { return GetDeviceResource(process, device, kind, resource); });
}
ASHLAR_SURFACE int cudaExecutionCtxGetDevResource(void* context, abi::DevResource* resource, int kind) {
  return Locked([&](Process& process) { return GetGreenResource(process, context, kind, resource); });
}
ASHLAR_SURFACE int cudaStreamGetDevResource(void* stream, abi::DevResource* resource, int kind) {
  return Locked([&](Process& process) { return GetStreamResource(process, stream, kind, resource); });
}
ASHLAR_SAME(cudaStreamGetDevResource_ptsz, cudaStreamGetDevResource);

ASHLAR_SURFACE int cudaDevSmResourceSplitByCount(abi::DevResource* parts, unsigned* count,
                                                 const abi::DevResource* input, abi::DevResource* remaining,
                                                 unsigned flags, unsigned least) {
  return Locked([&](Process& process) { return SplitByCount(process, parts, count, input, remaining, flags, least); });
}
ASHLAR_SURFACE int cudaDevResourceGenerateDesc(void** description, abi::DevResource* resources, unsigned count) {
  return Locked([&](Process&) { return DescribeResources(description, resources, count); });
}

ASHLAR_SURFACE int cudaGreenCtxCreate(void** context, void* description, int device, unsigned flags) {
  return Locked([&](Process& process) {
    return flags != 0 ? Error::kInvalidValue : MakeGreenContext(process, context, description, device);
  });
}
ASHLAR_SURFACE int cudaExecutionCtxDestroy(void* context) {
  return Locked([&](Process& process) { return DestroyGreenContext(process, context); });
}
ASHLAR_SURFACE int cudaDeviceGetExecutionCtx(void** context, int device) {
  return Locked([&](Process& process) { return GetWholeDevice(process, context, device); });
}

ASHLAR_SURFACE int cudaExecutionCtxGetDevice(int* device, void* context) {
  return Locked([&](Process&) {
    const GreenContext* found = GreenContextOf(context);
    if (device == nullptr) return Error::kInvalidValue;
    if (found == nullptr) return Error::kInvalidContext;
    *device = found->device;
    return Error::kNone;
  });
}
ASHLAR_SURFACE int cudaExecutionCtxGetId(void* context, unsigned long long* id) {
  return Locked([&](Process&) {
    const GreenContext* found = GreenContextOf(context);
    if (id == nullptr) return Error::kInvalidValue;
    if (found == nullptr) return Error::kInvalidContext;
    *id = found->id;
    return Error::kNone;
  });
}
ASHLAR_SURFACE int cudaExecutionCtxStreamCreate(void** stream, void* context, unsigned flags, int priority) {
  return Locked([&](Process& process) {
    return stream == nullptr || flags > 1 ? Error::kInvalidValue
                                          : MakeGreenStream(process, stream, context, flags, priority);
  });
}

ASHLAR_SURFACE int cudaExecutionCtxSynchronize(void* context) {
  (void)StartedProcess();
  return Last(SynchronizeGreen(context));
}
ASHLAR_SURFACE int cudaExecutionCtxRecordEvent(void* context, void* event) {
  (void)StartedProcess();
  if (IsWholeDevice(context)) CountRefused("cudaExecutionCtxRecordEvent of a whole device");
  return Last(RecordOfGreen(context, event));
}
ASHLAR_SURFACE int cudaExecutionCtxWaitEvent(void* context, void* event) {
  (void)StartedProcess();
  if (IsWholeDevice(context)) CountRefused("cudaExecutionCtxWaitEvent of a whole device");
  return Last(WaitOfGreen(context, event));
}
