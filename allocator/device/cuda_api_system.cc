// The real CUDA: the runtime by its static library, the driver by entry points that the runtime looks up, so that a
// program starts where there is no libcuda.so.1. Conversions only; what they are used for is in cuda_device.h.
// Versions of the entry points: cudaTypedefs.h of CUDA 12.0.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "allocator/device/cuda_api.h"

namespace ashlar::device {
namespace {

static_assert(cudaSuccess == kCudaSuccess && CUDA_SUCCESS == kCudaSuccess);
static_assert(cudaErrorInvalidValue == kCudaErrorInvalidValue && CUDA_ERROR_INVALID_VALUE == kCudaErrorInvalidValue);
static_assert(cudaErrorMemoryAllocation == kCudaErrorMemoryAllocation);
static_assert(CUDA_ERROR_OUT_OF_MEMORY == kCudaErrorMemoryAllocation);
static_assert(cudaErrorCudartUnloading == kCudaErrorUnloading && CUDA_ERROR_DEINITIALIZED == kCudaErrorUnloading);
static_assert(cudaErrorNoDevice == kCudaErrorNoDevice && CUDA_ERROR_NO_DEVICE == kCudaErrorNoDevice);
static_assert(cudaErrorInvalidDevice == kCudaErrorInvalidDevice);
static_assert(cudaErrorInvalidResourceHandle == kCudaErrorInvalidHandle);
static_assert(cudaErrorSymbolNotFound == kCudaErrorNotFound && CUDA_ERROR_NOT_FOUND == kCudaErrorNotFound);
static_assert(cudaErrorDeviceUninitialized == kCudaErrorInvalidContext);
static_assert(CUDA_ERROR_INVALID_CONTEXT == kCudaErrorInvalidContext);
static_assert(cudaErrorContextIsDestroyed == kCudaErrorContextDestroyed);
static_assert(CUDA_ERROR_CONTEXT_IS_DESTROYED == kCudaErrorContextDestroyed);
static_assert(cudaStreamCaptureModeGlobal == static_cast<int>(CudaCaptureMode::kGlobal));
static_assert(cudaStreamCaptureModeThreadLocal == static_cast<int>(CudaCaptureMode::kThreadLocal));
static_assert(cudaStreamCaptureModeRelaxed == static_cast<int>(CudaCaptureMode::kRelaxed));
static_assert(cudaErrorNotReady == kCudaErrorNotReady && cudaErrorIllegalAddress == kCudaErrorIllegalAddress);
static_assert(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ==
              static_cast<int>(CudaAttribute::kVirtualMemoryManagement));
static_assert(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED ==
              static_cast<int>(CudaAttribute::kPosixFdHandles));
static_assert(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED ==
              static_cast<int>(CudaAttribute::kGpuDirectRdmaWithVmm));
static_assert(sizeof(std::size_t) == sizeof(std::uint64_t) && sizeof(CUdeviceptr) == sizeof(std::uint64_t));
static_assert(sizeof(CUmemGenericAllocationHandle) == sizeof(std::uint64_t));

// CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED and CU_MEM_HANDLE_TYPE_FABRIC have names since CUDA 12.3 only.
constexpr int kFabricHandleType = 8;
#if CUDA_VERSION >= 12030
static_assert(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED == static_cast<int>(CudaAttribute::kFabricHandles));
static_assert(CU_MEM_HANDLE_TYPE_FABRIC == kFabricHandleType);
#endif

struct DriverCalls {
  PFN_cuGetErrorName_v6000 get_error_name = nullptr;
  PFN_cuGetErrorString_v6000 get_error_string = nullptr;
  PFN_cuDeviceGet_v2000 device_get = nullptr;
  PFN_cuDeviceGetAttribute_v2000 get_attribute = nullptr;
  PFN_cuDevicePrimaryCtxRetain_v7000 primary_retain = nullptr;
  PFN_cuDevicePrimaryCtxRelease_v11000 primary_release = nullptr;
  PFN_cuCtxGetCurrent_v4000 get_current = nullptr;
  PFN_cuCtxGetId_v12000 get_id = nullptr;
  PFN_cuCtxPushCurrent_v4000 push_current = nullptr;
  PFN_cuCtxPopCurrent_v4000 pop_current = nullptr;
  PFN_cuMemGetAllocationGranularity_v10020 get_granularity = nullptr;
  PFN_cuMemAddressReserve_v10020 address_reserve = nullptr;
  PFN_cuMemAddressFree_v10020 address_free = nullptr;
  PFN_cuMemCreate_v10020 create = nullptr;
  PFN_cuMemRelease_v10020 release = nullptr;
  PFN_cuMemMap_v10020 map = nullptr;
  PFN_cuMemUnmap_v10020 unmap = nullptr;
  PFN_cuMemSetAccess_v10020 set_access = nullptr;
};

std::string RuntimeText(cudaError_t code) {
  return absl::StrCat(cudaGetErrorName(code), ": ", cudaGetErrorString(code));
}

// The entry point `symbol` of at least the version that the pointer's type names.
template <typename Function>
absl::Status Find(const char* symbol, unsigned version, Function* function) {
  void* found = nullptr;
#if CUDART_VERSION >= 12050
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t code = cudaGetDriverEntryPointByVersion(symbol, &found, version, cudaEnableDefault, &result);
#else
  // Before CUDA 12.5 the version is the toolkit's own; every call here is older than that and unchanged.
  static_cast<void>(version);
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t code = cudaGetDriverEntryPoint(symbol, &found, cudaEnableDefault, &result);
#endif
  if (code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return absl::UnavailableError(absl::StrCat("no CUDA driver: looking up ", symbol, " failed: ", RuntimeText(code)));
  }
  if (result != cudaDriverEntryPointSuccess || found == nullptr) {
    return absl::UnavailableError(absl::StrCat("the CUDA driver has no ", symbol, ": it is older than version ",
                                               version / 1000, ".", version % 1000 / 10));
  }
  *function = reinterpret_cast<Function>(found);
  return absl::OkStatus();
}

absl::StatusOr<DriverCalls> FindAll() {
  DriverCalls calls;
  absl::Status status = Find("cuGetErrorName", 6000, &calls.get_error_name);
  status.Update(Find("cuGetErrorString", 6000, &calls.get_error_string));
  status.Update(Find("cuDeviceGet", 2000, &calls.device_get));
  status.Update(Find("cuDeviceGetAttribute", 2000, &calls.get_attribute));
  status.Update(Find("cuDevicePrimaryCtxRetain", 7000, &calls.primary_retain));
  status.Update(Find("cuDevicePrimaryCtxRelease", 11000, &calls.primary_release));
  status.Update(Find("cuCtxGetCurrent", 4000, &calls.get_current));
  status.Update(Find("cuCtxGetId", 12000, &calls.get_id));
  status.Update(Find("cuCtxPushCurrent", 4000, &calls.push_current));
  status.Update(Find("cuCtxPopCurrent", 4000, &calls.pop_current));
  status.Update(Find("cuMemGetAllocationGranularity", 10020, &calls.get_granularity));
  status.Update(Find("cuMemAddressReserve", 10020, &calls.address_reserve));
  status.Update(Find("cuMemAddressFree", 10020, &calls.address_free));
  status.Update(Find("cuMemCreate", 10020, &calls.create));
  status.Update(Find("cuMemRelease", 10020, &calls.release));
  status.Update(Find("cuMemMap", 10020, &calls.map));
  status.Update(Find("cuMemUnmap", 10020, &calls.unmap));
  status.Update(Find("cuMemSetAccess", 10020, &calls.set_access));
  if (!status.ok()) return status;
  return calls;
}

void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }
template <typename T>
std::uint64_t Number(T* pointer) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
}
cudaStream_t ToCuda(Stream stream) { return static_cast<cudaStream_t>(Pointer(Handle(stream))); }
cudaEvent_t ToCuda(CudaEvent event) { return static_cast<cudaEvent_t>(Pointer(static_cast<std::uint64_t>(event))); }
CUcontext ToCuda(CudaContext context) { return static_cast<CUcontext>(Pointer(static_cast<std::uint64_t>(context))); }

CUmemAllocationProp ToCuda(const CudaMemoryKind& kind) {
  int handle_types = CU_MEM_HANDLE_TYPE_NONE;
  if (kind.is_posix_fd_exportable) handle_types |= CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (kind.is_fabric_exportable) handle_types |= kFabricHandleType;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = kind.ordinal;
  properties.allocFlags.gpuDirectRDMACapable = kind.is_gpu_direct_rdma_capable ? 1 : 0;
  return properties;
}

class SystemApi final : public CudaApi {
 public:
  explicit SystemApi(const DriverCalls& driver) : driver_(driver) {}

  int GetDeviceCount(int* count) override { return cudaGetDeviceCount(count); }
  int Malloc(std::uint64_t* address, std::uint64_t size_bytes) override {
    void* pointer = nullptr;
    const cudaError_t code = cudaMalloc(&pointer, size_bytes);
    *address = Number(pointer);
    return code;
  }
  int Free(std::uint64_t address) override { return cudaFree(Pointer(address)); }
  int MemGetInfo(std::uint64_t* free_bytes, std::uint64_t* total_bytes) override {
    std::size_t free_now = 0;
    std::size_t total = 0;
    const cudaError_t code = cudaMemGetInfo(&free_now, &total);
    *free_bytes = free_now;
    *total_bytes = total;
    return code;
  }
  int EventCreate(CudaEvent* event) override {
    cudaEvent_t created = nullptr;
    const cudaError_t code = cudaEventCreateWithFlags(&created, cudaEventDisableTiming);
    *event = CudaEvent{Number(created)};
    return code;
  }
  int EventDestroy(CudaEvent event) override { return cudaEventDestroy(ToCuda(event)); }
  int EventRecord(CudaEvent event, Stream stream) override { return cudaEventRecord(ToCuda(event), ToCuda(stream)); }
  int EventQuery(CudaEvent event) override { return cudaEventQuery(ToCuda(event)); }
  int EventSynchronize(CudaEvent event) override { return cudaEventSynchronize(ToCuda(event)); }
  int StreamSynchronize(Stream stream) override { return cudaStreamSynchronize(ToCuda(stream)); }
  int StreamWaitEvent(Stream stream, CudaEvent event) override {
    return cudaStreamWaitEvent(ToCuda(stream), ToCuda(event), 0);
  }
  int ExchangeCaptureMode(CudaCaptureMode* mode) override {
    auto exchanged = static_cast<cudaStreamCaptureMode>(*mode);
    const cudaError_t code = cudaThreadExchangeStreamCaptureMode(&exchanged);
    *mode = static_cast<CudaCaptureMode>(exchanged);
    return code;
  }
  int DeviceSynchronize() override { return cudaDeviceSynchronize(); }
  int GetLastError() override { return cudaGetLastError(); }
  std::string RuntimeErrorText(int code) override { return RuntimeText(static_cast<cudaError_t>(code)); }

  int PrimaryContextRetain(CudaContext* context, int ordinal) override {
    CUdevice device = 0;
    if (const CUresult code = driver_.device_get(&device, ordinal); code != CUDA_SUCCESS) return code;
    CUcontext retained = nullptr;
    const CUresult code = driver_.primary_retain(&retained, device);
    *context = CudaContext{Number(retained)};
    return code;
  }
  int PrimaryContextRelease(int ordinal) override {
    CUdevice device = 0;
    if (const CUresult code = driver_.device_get(&device, ordinal); code != CUDA_SUCCESS) return code;
    return driver_.primary_release(device);
  }
  int ContextGetCurrent(CudaContext* context) override {
    CUcontext current = nullptr;
    const CUresult code = driver_.get_current(&current);
    *context = CudaContext{Number(current)};
    return code;
  }
  int ContextGetId(CudaContext context, std::uint64_t* id) override {
    unsigned long long found = 0;
    const CUresult code = driver_.get_id(ToCuda(context), &found);
    *id = found;
    return code;
  }
  int ContextPush(CudaContext context) override { return driver_.push_current(ToCuda(context)); }
  int ContextPop(CudaContext* context) override {
    CUcontext popped = nullptr;
    const CUresult code = driver_.pop_current(&popped);
    *context = CudaContext{Number(popped)};
    return code;
  }
  int GetAttribute(int* value, CudaAttribute attribute, int ordinal) override {
    CUdevice device = 0;
    if (const CUresult code = driver_.device_get(&device, ordinal); code != CUDA_SUCCESS) return code;
    return driver_.get_attribute(value, static_cast<CUdevice_attribute>(attribute), device);
  }
  int GetGranularity(std::uint64_t* size_bytes, const CudaMemoryKind& kind) override {
    const CUmemAllocationProp properties = ToCuda(kind);
    std::size_t granularity = 0;
    const CUresult code = driver_.get_granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    *size_bytes = granularity;
    return code;
  }
  int AddressReserve(std::uint64_t* address, std::uint64_t size_bytes) override {
    CUdeviceptr pointer = 0;
    const CUresult code = driver_.address_reserve(&pointer, size_bytes, 0, 0, 0);
    *address = pointer;
    return code;
  }
  int AddressFree(std::uint64_t address, std::uint64_t size_bytes) override {
    return driver_.address_free(address, size_bytes);
  }
  int MemCreate(CudaHandle* handle, std::uint64_t size_bytes, const CudaMemoryKind& kind) override {
    const CUmemAllocationProp properties = ToCuda(kind);
    CUmemGenericAllocationHandle created = 0;
    const CUresult code = driver_.create(&created, size_bytes, &properties, 0);
    *handle = CudaHandle{created};
    return code;
  }
  int MemRelease(CudaHandle handle) override {
    return driver_.release(static_cast<CUmemGenericAllocationHandle>(handle));
  }
  int MemMap(std::uint64_t address, std::uint64_t size_bytes, CudaHandle handle) override {
    return driver_.map(address, size_bytes, 0, static_cast<CUmemGenericAllocationHandle>(handle), 0);
  }
  int MemUnmap(std::uint64_t address, std::uint64_t size_bytes) override { return driver_.unmap(address, size_bytes); }
  int MemSetAccess(std::uint64_t address, std::uint64_t size_bytes, int ordinal) override {
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = ordinal;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return driver_.set_access(address, size_bytes, &access, 1);
  }
  std::string DriverErrorText(int code) override {
    const char* name = nullptr;
    const char* text = nullptr;
    driver_.get_error_name(static_cast<CUresult>(code), &name);
    driver_.get_error_string(static_cast<CUresult>(code), &text);
    return absl::StrCat(name != nullptr ? name : "an error unknown to the driver", ": ",
                        text != nullptr ? text : "no text");
  }

 private:
  DriverCalls driver_;
};

absl::StatusOr<CudaApi*> MakeSystemApi() {
  int count = 0;  // the first call of the runtime: it loads and initialises the driver
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return absl::UnavailableError(absl::StrCat("no CUDA device: cudaGetDeviceCount failed: ", RuntimeText(code)));
  }
  const absl::StatusOr<DriverCalls> driver = FindAll();
  if (!driver.ok()) return driver.status();
  return new SystemApi(*driver);  // never deleted: devices may outlive static destruction
}

}  // namespace

absl::StatusOr<CudaApi*> SystemCudaApi() {
  static const absl::StatusOr<CudaApi*>& api = *new absl::StatusOr<CudaApi*>(MakeSystemApi());
  return api;
}

}  // namespace ashlar::device
