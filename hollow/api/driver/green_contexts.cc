// CUDA's driver: green contexts and the resources that they are made of. Source of the signatures: cuda.h of CUDA 12.4,
// 13.0 and 13.5.
#include "hollow/api/cuda/green_contexts.h"

#include "hollow/api/cuda/streams.h"
#include "hollow/api/driver/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

namespace {

constexpr unsigned kDefaultStream = 1;  // CU_GREEN_CTX_DEFAULT_STREAM: required before CUDA 13.1
constexpr int kFirstWithout = 13010;

}  // namespace

ASHLAR_SURFACE int cuDeviceGetDevResource(int device, abi::DevResource* resource, int kind) {
  return Driven([&](Process& process) { return GetDeviceResource(process, device, kind, resource); });
}

// Of the current context, where none is given.
ASHLAR_SURFACE int cuCtxGetDevResource(void* context, abi::DevResource* resource, int kind) {
  return Driven([&](Process& process) {
    const void* green = GreenOfContext(process, context);
    if (green != nullptr) return GetGreenResource(process, green, kind, resource);
    const int device = context == nullptr ? CurrentDevice() : DeviceOfContext(process, context);
    return device < 0 ? Error::kInvalidContext : GetDeviceResource(process, device, kind, resource);
  });
}

ASHLAR_SURFACE int cuGreenCtxGetDevResource(void* green, abi::DevResource* resource, int kind) {
  return Driven([&](Process& process) { return GetGreenResource(process, green, kind, resource); });
}

ASHLAR_SURFACE int cuStreamGetDevResource(void* stream, abi::DevResource* resource, int kind) {
  return Driven([&](Process& process) { return GetStreamResource(process, stream, kind, resource); });
}
ASHLAR_SAME(cuStreamGetDevResource_ptsz, cuStreamGetDevResource);

ASHLAR_SURFACE int cuDevSmResourceSplitByCount(abi::DevResource* parts, unsigned* count, const abi::DevResource* input,
                                               abi::DevResource* remaining, unsigned flags, unsigned least) {
  return Driven([&](Process& process) { return SplitByCount(process, parts, count, input, remaining, flags, least); });
}

ASHLAR_SURFACE int cuDevResourceGenerateDesc(void** description, abi::DevResource* resources, unsigned count) {
  return Driven([&](Process&) { return DescribeResources(description, resources, count); });
}

ASHLAR_SURFACE int cuGreenCtxCreate(void** green, void* description, int device, unsigned flags) {
  return Driven([&](Process& process) {
    const bool is_without = flags == 0 && process.settings.driver_version >= kFirstWithout;
    if (flags != kDefaultStream && !is_without) return Error::kInvalidValue;
    return MakeGreenContext(process, green, description, device);
  });
}

ASHLAR_SURFACE int cuGreenCtxDestroy(void* green) {
  return Driven([&](Process& process) { return DestroyGreenContext(process, green); });
}

ASHLAR_SURFACE int cuCtxFromGreenCtx(void** context, void* green) {
  return Driven([&](Process& process) {
    if (context == nullptr) return Error::kInvalidValue;
    const GreenContext* found = GreenContextOf(green);
    if (found == nullptr) return Error::kInvalidContext;
    *context = ContextOfGreen(process, green, found->device);
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuGreenCtxGetId(void* green, unsigned long long* id) {
  return Driven([&](Process& process) {
    if (id == nullptr) return Error::kInvalidValue;
    const GreenContext* found = GreenContextOf(green != nullptr ? green : GreenOfContext(process, nullptr));
    if (found == nullptr) return Error::kInvalidContext;
    *id = found->id;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuGreenCtxStreamCreate(void** stream, void* green, unsigned flags, int priority) {
  constexpr unsigned kNonBlockingStream = 1;  // CU_STREAM_NON_BLOCKING: required
  return Driven([&](Process& process) {
    if (stream == nullptr || flags != kNonBlockingStream) return Error::kInvalidValue;
    return MakeGreenStream(process, stream, green, flags, priority);
  });
}

ASHLAR_SURFACE int cuStreamGetGreenCtx(void* stream, void** green) {
  return Driven([&](Process& process) {
    const StreamModel* found = StreamOf(process, stream);
    if (green == nullptr) return Error::kInvalidValue;
    if (found == nullptr) return Error::kInvalidHandle;
    *green = GreenHandleOf(*found);
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuGreenCtxRecordEvent(void* green, void* event) {
  return AfterInit([&] { return RecordOfGreen(green, event); });
}
ASHLAR_SURFACE int cuGreenCtxWaitEvent(void* green, void* event) {
  return AfterInit([&] { return WaitOfGreen(green, event); });
}
