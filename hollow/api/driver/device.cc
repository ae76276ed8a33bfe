// CUDA's driver: start, devices, errors. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "hollow/api/cuda/device_properties.h"
#include "hollow/api/cuda/error_names.h"
#include "hollow/api/cuda/green_contexts.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/api/driver/call.h"

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cuInit(unsigned flags) {
  if (flags != 0) return Number(Error::kInvalidValue);
  if (TheProcess().is_orphan) return Number(Error::kNotInitialized);
  TheProcess().Initialize();
  return 0;
}

ASHLAR_SURFACE int cuDriverGetVersion(int* version) {
  if (version == nullptr) return Number(Error::kInvalidValue);
  *version = TheSettings().driver_version;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetCount(int* count) {
  ASHLAR_NEEDS_INIT();
  if (count == nullptr) return Number(Error::kInvalidValue);
  *count = TheSettings().devices;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGet(int* device, int ordinal) {
  ASHLAR_NEEDS_INIT();
  if (device == nullptr) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), ordinal)) return Number(Error::kInvalidDevice);
  *device = ordinal;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetName(char* name, int size, int device) {
  ASHLAR_NEEDS_INIT();
  if (name == nullptr || size < 1) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  std::snprintf(name, static_cast<std::size_t>(size), "%s", TheSettings().name.c_str());
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetUuid_v2(abi::Uuid* uuid, int device) {
  ASHLAR_NEEDS_INIT();
  if (uuid == nullptr) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  *uuid = DeviceUuid(device);
  return 0;
}
ASHLAR_SAME(cuDeviceGetUuid, cuDeviceGetUuid_v2);

ASHLAR_SURFACE int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  ASHLAR_NEEDS_INIT();
  if (bytes == nullptr) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  *bytes = TotalBytes(device);
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  const std::optional<int> known = DeviceAttribute(TheSettings(), attribute, device);
  if (value == nullptr || !known.has_value()) return Number(Error::kInvalidValue);
  *value = *known;
  return 0;
}

ASHLAR_SURFACE int cuDeviceComputeCapability(int* major, int* minor, int device) {
  ASHLAR_NEEDS_INIT();
  if (major == nullptr || minor == nullptr) return Number(Error::kInvalidValue);
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  *major = TheSettings().compute_major;
  *minor = TheSettings().compute_minor;
  return 0;
}

// Of CUPTI this alone: JAX asks whether there is one that is new enough. It is the version of CUDA 12.0's.
ASHLAR_SURFACE int cuptiGetVersion(unsigned* version) {
  constexpr unsigned kVersion = 18;
  constexpr int kInvalidParameter = 1;  // CUPTI_ERROR_INVALID_PARAMETER
  if (version == nullptr) return kInvalidParameter;
  *version = kVersion;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetPCIBusId(char* text, int size, int device) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  if (text == nullptr || size < 13) return Number(Error::kInvalidValue);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", static_cast<unsigned>(PciBus(device)));
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetByPCIBusId(int* device, const char* text) {
  ASHLAR_NEEDS_INIT();
  unsigned domain = 0;
  unsigned bus = 0;
  if (device == nullptr || text == nullptr || std::sscanf(text, "%x:%x:", &domain, &bus) != 2) {
    return Number(Error::kInvalidValue);
  }
  *device = static_cast<int>(bus) - PciBus(0);
  return Number(IsDevice(TheProcess(), *device) && domain == 0 ? Error::kNone : Error::kInvalidDevice);
}

ASHLAR_SURFACE int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device) || !IsDevice(TheProcess(), peer)) return Number(Error::kInvalidDevice);
  if (can == nullptr) return Number(Error::kInvalidValue);
  *can = device != peer ? 1 : 0;
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device) || !IsDevice(TheProcess(), peer)) return Number(Error::kInvalidDevice);
  if (value == nullptr || attribute < 1 || attribute > 5) return Number(Error::kInvalidValue);
  *value = attribute == 1 ? 0 : 1;  // performance rank 0, all else is there
  return 0;
}

ASHLAR_SURFACE int cuDeviceGetExecAffinitySupport(int* supported, int, int device) {
  ASHLAR_NEEDS_INIT();
  if (!IsDevice(TheProcess(), device)) return Number(Error::kInvalidDevice);
  if (supported == nullptr) return Number(Error::kInvalidValue);
  *supported = 0;
  return 0;
}

ASHLAR_SURFACE int cuGetErrorString(int error, const char** text) {
  if (text == nullptr) return Number(Error::kInvalidValue);
  *text = DriverErrorName(error) == nullptr ? nullptr : ErrorText(error);
  return Number(*text == nullptr ? Error::kInvalidValue : Error::kNone);
}

ASHLAR_SURFACE int cuGetErrorName(int error, const char** name) {
  if (name == nullptr) return Number(Error::kInvalidValue);
  *name = DriverErrorName(error);
  return Number(*name == nullptr ? Error::kInvalidValue : Error::kNone);
}

ASHLAR_IGNORED(cuProfilerStart, "no profiler watches a hollow device")
ASHLAR_IGNORED(cuProfilerStop, "no profiler watches a hollow device")

// The driver's log, which stays empty.
ASHLAR_SURFACE int cuLogsRegisterCallback(void*, void*, void** handle) {
  static char callback = 0;
  if (handle != nullptr) *handle = &callback;
  return 0;
}
ASHLAR_IGNORED(cuLogsUnregisterCallback, "no log was registered")
ASHLAR_SURFACE int cuLogsCurrent(unsigned* iterator, unsigned) {
  if (iterator == nullptr) return Number(Error::kInvalidValue);
  *iterator = 0;
  return 0;
}
ASHLAR_SURFACE int cuLogsDumpToMemory(unsigned*, char* buffer, std::size_t* size, unsigned) {
  if (size == nullptr) return Number(Error::kInvalidValue);
  if (buffer != nullptr && *size > 0) buffer[0] = 0;
  *size = 0;
  return 0;
}

// CUDA's driver: contexts. Source of the signatures: cuda.h of CUDA 11.8, 12.4 and 13.0.
//
// Each device has a primary context, which is charged at its first use. Contexts that a program makes besides are
// handles of their own over the same accounting: what a second context of a device would take is not charged.

namespace ashlar::hollow {
namespace {

struct DriverContext {
  int device = 0;
  unsigned flags = 0;
  bool is_primary = false;
  std::uint64_t retained = 0;  // of a primary one
  void* green = nullptr;       // the green context that it stands for
};

// The primary ones first, by device. Guarded by the process's lock, as all here.
std::vector<std::unique_ptr<DriverContext>>& Contexts(const Process& process) {
  static auto* contexts = new std::vector<std::unique_ptr<DriverContext>>;
  while (contexts->size() < static_cast<std::size_t>(process.settings.devices)) {
    contexts->push_back(std::make_unique<DriverContext>(DriverContext{static_cast<int>(contexts->size()), 0, true, 0}));
  }
  return *contexts;
}

DriverContext* Find(const Process& process, const void* handle) {
  for (const auto& context : Contexts(process)) {
    if (context.get() != handle) continue;
    const bool is_gone = context->green != nullptr && GreenContextOf(context->green) == nullptr;
    return is_gone ? nullptr : context.get();
  }
  return nullptr;
}

// What was current when another context was pushed: that, and the device that cudaSetDevice had chosen.
struct PushedContext {
  DriverContext* context = nullptr;
  int device = 0;
};

// Of the calling thread; its last is current, where that is of the current device: else cudaSetDevice came after it.
// It outlives the thread's own destructors: those of a program call CUDA.
std::vector<PushedContext>& Stack() {
  thread_local auto* stack = new std::vector<PushedContext>;
  return *stack;
}

DriverContext* Current(Process& process) {
  const std::vector<PushedContext>& stack = Stack();
  const DriverContext* last = stack.empty() ? nullptr : stack.back().context;
  if (!stack.empty() && (last == nullptr || last->device == CurrentDevice())) return stack.back().context;
  return process.devices[CurrentDevice()]->has_context() ? Contexts(process)[CurrentDevice()].get() : nullptr;
}

Error MakeCurrent(Process& process, DriverContext* context) {
  if (context == nullptr) return Error::kNone;
  CurrentDevice() = context->device;
  return UseDevice(process, context->device);
}

Error Create(Process& process, void** handle, unsigned flags, int device) {
  if (handle == nullptr) return Error::kInvalidValue;
  if (!IsDevice(process, device)) return Error::kInvalidDevice;
  auto context = std::make_unique<DriverContext>(DriverContext{device, flags, false, 0});
  if (const Error error = MakeCurrent(process, context.get()); error != Error::kNone) return error;
  Stack().push_back({context.get(), device});
  *handle = context.get();
  Contexts(process).push_back(std::move(context));
  return Error::kNone;
}

}  // namespace

int DeviceOfContext(Process& process, const void* context) {
  const DriverContext* known = Find(process, context);
  return known == nullptr ? -1 : known->device;
}

void* PrimaryContext(Process& process, int device) { return Contexts(process)[device].get(); }

void* ContextOfGreen(Process& process, void* green, int device) {
  auto& contexts = Contexts(process);
  const auto it =
      std::find_if(contexts.begin(), contexts.end(), [&](const auto& context) { return context->green == green; });
  if (it != contexts.end()) return it->get();
  contexts.push_back(std::make_unique<DriverContext>(DriverContext{device, 0, false, 0, green}));
  return contexts.back().get();
}

void* GreenOfContext(Process& process, const void* context) {
  const DriverContext* known = context == nullptr ? Current(process) : Find(process, context);
  return known == nullptr || GreenContextOf(known->green) == nullptr ? nullptr : known->green;
}

}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: a surface is C functions

ASHLAR_SURFACE int cuDevicePrimaryCtxRetain(void** context, int device) {
  return Driven([&](Process& process) {
    if (context == nullptr) return Error::kInvalidValue;
    if (!IsDevice(process, device)) return Error::kInvalidDevice;
    if (const Error error = UseDevice(process, device); error != Error::kNone) return error;
    ++Contexts(process)[device]->retained;
    *context = PrimaryContext(process, device);
    return Error::kNone;
  });
}

// The context stays: the runtime, whose work is answered here as well, may hold it.
ASHLAR_SURFACE int cuDevicePrimaryCtxRelease_v2(int device) {
  return Driven([&](Process& process) {
    if (!IsDevice(process, device)) return Error::kInvalidDevice;
    DriverContext& context = *Contexts(process)[device];
    if (context.retained == 0) return Error::kInvalidContext;
    --context.retained;
    return Error::kNone;
  });
}
ASHLAR_SAME(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

ASHLAR_SURFACE int cuDevicePrimaryCtxReset_v2(int device) {
  return Driven([&](Process& process) {
    return IsDevice(process, device) ? ResetDevice(process, device) : Error::kInvalidDevice;
  });
}
ASHLAR_SAME(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

ASHLAR_SURFACE int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  return Driven([&](Process& process) {
    if (!IsDevice(process, device)) return Error::kInvalidDevice;
    Contexts(process)[device]->flags = flags;
    return Error::kNone;
  });
}
ASHLAR_SAME(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

ASHLAR_SURFACE int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return Driven([&](Process& process) {
    if (flags == nullptr || active == nullptr) return Error::kInvalidValue;
    if (!IsDevice(process, device)) return Error::kInvalidDevice;
    *flags = Contexts(process)[device]->flags;
    *active = process.devices[device]->has_context() ? 1 : 0;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  return Driven([&](Process& process) { return Create(process, context, flags, device); });
}
// With limits of multiprocessors, which nothing runs on.
ASHLAR_SURFACE int cuCtxCreate_v3(void** context, void*, int, unsigned flags, int device) {
  return cuCtxCreate_v2(context, flags, device);
}
ASHLAR_SURFACE int cuCtxCreate_v4(void** context, void*, unsigned flags, int device) {
  return cuCtxCreate_v2(context, flags, device);
}
ASHLAR_SAME(cuCtxCreate, cuCtxCreate_v2);

ASHLAR_SURFACE int cuCtxDestroy_v2(void* handle) {
  return Driven([&](Process& process) {
    const DriverContext* context = Find(process, handle);
    if (context == nullptr || context->is_primary) return Error::kInvalidContext;
    std::erase_if(Stack(), [&](const PushedContext& frame) { return frame.context == context; });
    std::erase_if(Contexts(process), [&](const auto& own) { return own.get() == context; });
    return Error::kNone;
  });
}
ASHLAR_SAME(cuCtxDestroy, cuCtxDestroy_v2);

ASHLAR_SURFACE int cuCtxSetCurrent(void* handle) {
  return Driven([&](Process& process) {
    DriverContext* context = handle == nullptr ? nullptr : Find(process, handle);
    if (handle != nullptr && context == nullptr) return Error::kInvalidContext;
    std::vector<PushedContext>& stack = Stack();
    if (stack.empty()) stack.emplace_back();
    stack.back() = {context, CurrentDevice()};
    return MakeCurrent(process, context);
  });
}

ASHLAR_SURFACE int cuCtxGetCurrent(void** context) {
  return Driven([&](Process& process) {
    if (context == nullptr) return Error::kInvalidValue;
    *context = Current(process);
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuCtxPushCurrent_v2(void* handle) {
  return Driven([&](Process& process) {
    DriverContext* context = Find(process, handle);
    if (context == nullptr) return Error::kInvalidContext;
    const PushedContext before = {Current(process), CurrentDevice()};
    std::vector<PushedContext>& stack = Stack();
    if (stack.empty()) stack.emplace_back();
    stack.back() = before;
    stack.push_back({context, context->device});
    return MakeCurrent(process, context);
  });
}
ASHLAR_SAME(cuCtxPushCurrent, cuCtxPushCurrent_v2);

ASHLAR_SURFACE int cuCtxPopCurrent_v2(void** popped) {
  return Driven([&](Process& process) {
    DriverContext* current = Current(process);
    if (current == nullptr) return Error::kInvalidContext;
    if (popped != nullptr) *popped = current;
    std::vector<PushedContext>& stack = Stack();
    if (stack.empty()) {  // the one that the runtime made current: none is, until the next
      stack.push_back({nullptr, CurrentDevice()});
      return Error::kNone;
    }
    stack.pop_back();
    if (stack.empty()) return Error::kNone;
    CurrentDevice() = stack.back().device;
    return MakeCurrent(process, stack.back().context);
  });
}
ASHLAR_SAME(cuCtxPopCurrent, cuCtxPopCurrent_v2);

ASHLAR_SURFACE int cuCtxGetDevice(int* device) {
  return Driven([&](Process& process) {
    if (device == nullptr) return Error::kInvalidValue;
    const DriverContext* current = Current(process);
    if (current == nullptr) return Error::kInvalidContext;
    *device = current->device;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuCtxGetDevice_v2(int* device, void* handle) {
  ASHLAR_NEEDS_INIT();
  if (handle == nullptr) return cuCtxGetDevice(device);
  return Driven([&](Process& process) {
    if (device == nullptr) return Error::kInvalidValue;
    *device = DeviceOfContext(process, handle);
    return *device < 0 ? Error::kInvalidContext : Error::kNone;
  });
}

ASHLAR_SURFACE int cuCtxGetFlags(unsigned* flags) {
  return Driven([&](Process& process) {
    if (flags == nullptr) return Error::kInvalidValue;
    const DriverContext* current = Current(process);
    if (current == nullptr) return Error::kInvalidContext;
    *flags = current->flags;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuCtxGetId(void* handle, unsigned long long* id) {
  return Driven([&](Process& process) {
    if (id == nullptr) return Error::kInvalidValue;
    const DriverContext* context = handle == nullptr ? Current(process) : Find(process, handle);
    if (context == nullptr) return Error::kInvalidContext;
    const auto& all = Contexts(process);
    const auto is_it = [&](const auto& own) { return own.get() == context; };
    *id = static_cast<unsigned long long>(std::find_if(all.begin(), all.end(), is_it) - all.begin()) + 1;
    return Error::kNone;
  });
}

ASHLAR_SURFACE int cuCtxGetApiVersion(void*, unsigned* version) {
  ASHLAR_NEEDS_INIT();
  if (version == nullptr) return Number(Error::kInvalidValue);
  *version = 3020;  // of all contexts since CUDA 3.2
  return 0;
}

ASHLAR_SURFACE int cuCtxSynchronize() {
  return AfterInit([=] { return SynchronizeDevice(); });
}
ASHLAR_SURFACE int cuCtxSynchronize_v2(void*) {
  return AfterInit([=] { return SynchronizeDevice(); });
}

ASHLAR_SURFACE int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  ASHLAR_NEEDS_INIT();
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return 0;
}

ASHLAR_SURFACE int cuCtxEnablePeerAccess(void* peer, unsigned) {
  return Driven([&](Process& process) {
    const int device = DeviceOfContext(process, peer);
    if (device < 0) return Error::kInvalidContext;
    return process.peers.Enable(CurrentDevice(), device, process.settings.devices);
  });
}

ASHLAR_SURFACE int cuCtxDisablePeerAccess(void* peer) {
  return Driven([&](Process& process) {
    const int device = DeviceOfContext(process, peer);
    return device < 0 ? Error::kInvalidContext : process.peers.Disable(CurrentDevice(), device);
  });
}

ASHLAR_SURFACE int cuCtxGetLimit(std::size_t* value, int limit) {
  return Driven([&](Process& process) { return GetLimit(process, limit, value); });
}
ASHLAR_SURFACE int cuCtxSetLimit(int limit, std::size_t value) {
  return Driven([&](Process& process) { return SetLimit(process, limit, value); });
}
ASHLAR_SURFACE int cuCtxGetCacheConfig(int* config) {
  ASHLAR_NEEDS_INIT();
  if (config == nullptr) return Number(Error::kInvalidValue);
  *config = 0;
  return 0;
}
ASHLAR_IGNORED_AFTER_INIT(cuCtxSetCacheConfig, "a hint of how a kernel shares its cache: no kernel runs")
ASHLAR_IGNORED_AFTER_INIT(cuCtxSetFlags, "how the host waits: nothing is waited for by spinning or sleeping")
ASHLAR_IGNORED_AFTER_INIT(cuCtxResetPersistingL2Cache, "there is no cache to reset")
