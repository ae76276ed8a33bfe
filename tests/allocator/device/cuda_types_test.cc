// Our declarations of CUDA's driver beside the toolkit's own, where there is one: every number, layout, argument,
// version and exported name.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "allocator/device/cuda_driver.h"
#include "gtest/gtest.h"

namespace ashlar::device {
namespace {

static_assert(kCudaSuccess == CUDA_SUCCESS && kCudaErrorInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(kCudaErrorOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kCudaErrorDeinitialized == CUDA_ERROR_DEINITIALIZED && kCudaErrorNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kCudaErrorInvalidDevice == CUDA_ERROR_INVALID_DEVICE);
static_assert(kCudaErrorInvalidContext == CUDA_ERROR_INVALID_CONTEXT);
static_assert(kCudaErrorInvalidHandle == CUDA_ERROR_INVALID_HANDLE && kCudaErrorNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(kCudaErrorNotReady == CUDA_ERROR_NOT_READY && kCudaErrorIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(kCudaErrorContextIsDestroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(kCudaErrorNotPermitted == CUDA_ERROR_NOT_PERMITTED && kCudaErrorNotSupported == CUDA_ERROR_NOT_SUPPORTED);

static_assert(int{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED} ==
              static_cast<int>(CudaAttribute::kVirtualMemoryManagement));
static_assert(int{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED} ==
              static_cast<int>(CudaAttribute::kPosixFdHandles));
static_assert(int{CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED} ==
              static_cast<int>(CudaAttribute::kGpuDirectRdmaWithVmm));
static_assert(int{CU_STREAM_CAPTURE_MODE_GLOBAL} == static_cast<int>(CudaCaptureMode::kGlobal));
static_assert(int{CU_STREAM_CAPTURE_MODE_THREAD_LOCAL} == static_cast<int>(CudaCaptureMode::kThreadLocal));
static_assert(int{CU_STREAM_CAPTURE_MODE_RELAXED} == static_cast<int>(CudaCaptureMode::kRelaxed));

static_assert(kCudaEventDisableTiming == CU_EVENT_DISABLE_TIMING && kCudaStreamWaitDefault == CU_EVENT_WAIT_DEFAULT);
static_assert(kCudaCaptureActive == CU_STREAM_CAPTURE_STATUS_ACTIVE);
static_assert(kCudaGranularityMinimum == CU_MEM_ALLOC_GRANULARITY_MINIMUM);
static_assert(kCudaAllocationPinned == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(kCudaLocationDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(kCudaHandlePosixFd == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(kCudaAccessReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(kCudaLegacyStream == CU_GET_PROC_ADDRESS_LEGACY_STREAM);
#if CUDA_VERSION >= 12030
static_assert(int{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED} == static_cast<int>(CudaAttribute::kFabricHandles));
static_assert(kCudaHandleFabric == CU_MEM_HANDLE_TYPE_FABRIC);
static_assert(sizeof(CudaEdge) == sizeof(CUgraphEdgeData) &&
              offsetof(CudaEdge, type) == offsetof(CUgraphEdgeData, type));
#endif

static_assert(sizeof(CudaLocation) == sizeof(CUmemLocation));
static_assert(offsetof(CudaLocation, type) == offsetof(CUmemLocation, type));
static_assert(offsetof(CudaLocation, ordinal) == offsetof(CUmemLocation, id));
static_assert(sizeof(CudaAllocation) == sizeof(CUmemAllocationProp));
static_assert(offsetof(CudaAllocation, type) == offsetof(CUmemAllocationProp, type));
static_assert(offsetof(CudaAllocation, handle_types) == offsetof(CUmemAllocationProp, requestedHandleTypes));
static_assert(offsetof(CudaAllocation, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(CudaAllocation, win32_attributes) == offsetof(CUmemAllocationProp, win32HandleMetaData));
static_assert(offsetof(CudaAllocation, compression) == offsetof(CUmemAllocationProp, allocFlags.compressionType));
static_assert(offsetof(CudaAllocation, is_gpu_direct_rdma_capable) ==
              offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable));
static_assert(offsetof(CudaAllocation, usage) == offsetof(CUmemAllocationProp, allocFlags.usage));
static_assert(offsetof(CudaAllocation, reserved) == offsetof(CUmemAllocationProp, allocFlags.reserved));
static_assert(sizeof(CudaAccess) == sizeof(CUmemAccessDesc));
static_assert(offsetof(CudaAccess, location) == offsetof(CUmemAccessDesc, location));
static_assert(offsetof(CudaAccess, flags) == offsetof(CUmemAccessDesc, flags));

template <typename T>
concept Known = requires { sizeof(T); };

// Passed alike: a pointer for a pointer, to what is alike, and else a number as large. What neither knows is alike.
template <typename Ours, typename Theirs>
constexpr bool IsAlike() {
  if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
    if constexpr (!std::is_pointer_v<Ours> || !std::is_pointer_v<Theirs>)
      return false;
    else
      return IsAlike<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>();
  } else if constexpr (Known<Ours> && Known<Theirs>) {
    return sizeof(Ours) == sizeof(Theirs) && std::is_class_v<Ours> == std::is_class_v<Theirs> &&
           std::is_const_v<Ours> == std::is_const_v<Theirs>;
  } else {
    return !Known<Ours> && !Known<Theirs>;
  }
}
static_assert(IsAlike<CudaContext*, CUcontext*>() && IsAlike<std::uint64_t, CUdeviceptr>());
static_assert(!IsAlike<CudaContext*, CUcontext>() && !IsAlike<unsigned, CUdeviceptr>());
static_assert(!IsAlike<CudaAllocation*, const CUmemAllocationProp*>());

template <typename... Ours, typename... Theirs>
constexpr bool TakeAlike(const CudaCall<int(Ours...)>*, CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs))
    return false;
  else
    return (IsAlike<Ours, Theirs>() && ...);
}

#define TEXT_OF(text) #text
#define EXPORTED_AS(call) TEXT_OF(call)  // cuda.h defines cuMemAlloc as cuMemAlloc_v2
#define EXPECT_ROW(row, call, abi)                                                                          \
  static_assert(TakeAlike(static_cast<decltype(CudaDriver::row)*>(nullptr), PFN_##call##_v##abi{nullptr})); \
  EXPECT_STREQ(driver.row.name(), #call);                                                                   \
  EXPECT_STREQ(driver.row.exported(), EXPORTED_AS(call));                                                   \
  EXPECT_EQ(driver.row.version(), abi) << #call;                                                            \
  ++rows

TEST(CudaTypesTest, EachCallIsTheHeadersOwn) {
  const CudaDriver driver{CudaLookup(nullptr)};
  std::size_t rows = 0;
  EXPECT_ROW(init, cuInit, 2000);
  EXPECT_ROW(driver_get_version, cuDriverGetVersion, 2020);
  EXPECT_ROW(get_error_name, cuGetErrorName, 6000);
  EXPECT_ROW(get_error_string, cuGetErrorString, 6000);
  EXPECT_ROW(device_get_count, cuDeviceGetCount, 2000);
  EXPECT_ROW(device_get, cuDeviceGet, 2000);
  EXPECT_ROW(device_get_attribute, cuDeviceGetAttribute, 2000);
  EXPECT_ROW(primary_retain, cuDevicePrimaryCtxRetain, 7000);
  EXPECT_ROW(primary_release, cuDevicePrimaryCtxRelease, 11000);
  EXPECT_ROW(primary_get_state, cuDevicePrimaryCtxGetState, 7000);
  EXPECT_ROW(context_get_current, cuCtxGetCurrent, 4000);
  EXPECT_ROW(context_push, cuCtxPushCurrent, 4000);
  EXPECT_ROW(context_pop, cuCtxPopCurrent, 4000);
  EXPECT_ROW(context_synchronize, cuCtxSynchronize, 2000);
  EXPECT_ROW(context_get_id, cuCtxGetId, 12000);
  EXPECT_ROW(mem_alloc, cuMemAlloc, 3020);
  EXPECT_ROW(mem_free, cuMemFree, 3020);
  EXPECT_ROW(mem_get_info, cuMemGetInfo, 3020);
  EXPECT_ROW(memcpy_to_host, cuMemcpyDtoHAsync, 3020);
  EXPECT_ROW(memcpy_to_device, cuMemcpyHtoDAsync, 3020);
  EXPECT_ROW(mem_host_alloc, cuMemHostAlloc, 2020);
  EXPECT_ROW(mem_free_host, cuMemFreeHost, 2000);
  EXPECT_ROW(event_create, cuEventCreate, 2000);
  EXPECT_ROW(event_destroy, cuEventDestroy, 4000);
  EXPECT_ROW(event_record, cuEventRecord, 2000);
  EXPECT_ROW(event_query, cuEventQuery, 2000);
  EXPECT_ROW(event_synchronize, cuEventSynchronize, 2000);
  EXPECT_ROW(stream_synchronize, cuStreamSynchronize, 2000);
  EXPECT_ROW(stream_wait_event, cuStreamWaitEvent, 3020);
  EXPECT_ROW(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, 10010);
  EXPECT_ROW(stream_get_capture_info, cuStreamGetCaptureInfo, 12030);
  EXPECT_ROW(graph_node_get_dependencies, cuGraphNodeGetDependencies, 12030);
  EXPECT_ROW(mem_get_granularity, cuMemGetAllocationGranularity, 10020);
  EXPECT_ROW(mem_address_reserve, cuMemAddressReserve, 10020);
  EXPECT_ROW(mem_address_free, cuMemAddressFree, 10020);
  EXPECT_ROW(mem_create, cuMemCreate, 10020);
  EXPECT_ROW(mem_release, cuMemRelease, 10020);
  EXPECT_ROW(mem_map, cuMemMap, 10020);
  EXPECT_ROW(mem_unmap, cuMemUnmap, 10020);
  EXPECT_ROW(mem_set_access, cuMemSetAccess, 10020);
  EXPECT_ROW(mem_export, cuMemExportToShareableHandle, 10020);
  EXPECT_EQ(rows, (sizeof(CudaDriver) - sizeof(CudaLookup)) / sizeof(CudaCall<int()>)) << "a row is not compared";
}

}  // namespace
}  // namespace ashlar::device
