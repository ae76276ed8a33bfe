// Our declarations of CUDA's own types and numbers against the headers of a toolkit, 11.8 or later. What is wrong does
// not compile; without a toolkit the one test says that nothing was compared.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "hollow/abi/cuda_types.h"
#include "hollow/api/cuda/device_properties.h"
#include "hollow/model/error.h"
#include "hollow/model/graphs.h"
#include "hollow/model/streams.h"

#if __has_include(<cuda.h>) && __has_include(<cuda_runtime_api.h>)
#include <cuda.h>
#include <cuda_runtime_api.h>

namespace ashlar::hollow {
namespace {

#define ASHLAR_SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define ASHLAR_SAME_PLACE(ours, field, theirs, their_field) \
  static_assert(offsetof(ours, field) == offsetof(theirs, their_field), #theirs)

ASHLAR_SAME_SIZE(abi::Dim3, dim3);
ASHLAR_SAME_SIZE(abi::Extent, cudaExtent);
ASHLAR_SAME_SIZE(abi::Pos, cudaPos);
ASHLAR_SAME_SIZE(abi::PitchedPtr, cudaPitchedPtr);
ASHLAR_SAME_PLACE(abi::PitchedPtr, ysize, cudaPitchedPtr, ysize);
ASHLAR_SAME_SIZE(abi::Memcpy3D, cudaMemcpy3DParms);
ASHLAR_SAME_PLACE(abi::Memcpy3D, src_ptr, cudaMemcpy3DParms, srcPtr);
ASHLAR_SAME_PLACE(abi::Memcpy3D, extent, cudaMemcpy3DParms, extent);
ASHLAR_SAME_PLACE(abi::Memcpy3D, kind, cudaMemcpy3DParms, kind);
ASHLAR_SAME_PLACE(abi::PointerAttributes, device, cudaPointerAttributes, device);
ASHLAR_SAME_PLACE(abi::PointerAttributes, device_pointer, cudaPointerAttributes, devicePointer);
ASHLAR_SAME_PLACE(abi::PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);
static_assert(sizeof(cudaPointerAttributes) ==
              sizeof(abi::PointerAttributes) + (CUDART_VERSION >= 13000 ? 8 * sizeof(long) : 0));
ASHLAR_SAME_SIZE(abi::Location, cudaMemLocation);
ASHLAR_SAME_SIZE(abi::AccessDesc, cudaMemAccessDesc);
ASHLAR_SAME_SIZE(abi::AccessDesc, CUmemAccessDesc);
ASHLAR_SAME_SIZE(abi::PoolProps, cudaMemPoolProps);
ASHLAR_SAME_SIZE(abi::PoolProps, CUmemPoolProps);
ASHLAR_SAME_PLACE(abi::PoolProps, location, cudaMemPoolProps, location);
ASHLAR_SAME_SIZE(abi::AllocationProp, CUmemAllocationProp);
ASHLAR_SAME_PLACE(abi::AllocationProp, location, CUmemAllocationProp, location);
ASHLAR_SAME_PLACE(abi::AllocationProp, win32_attributes, CUmemAllocationProp, win32HandleMetaData);
ASHLAR_SAME_PLACE(abi::FuncAttributes, max_threads, cudaFuncAttributes, maxThreadsPerBlock);
ASHLAR_SAME_PLACE(abi::FuncAttributes, max_dynamic_shared_bytes, cudaFuncAttributes, maxDynamicSharedSizeBytes);
ASHLAR_SAME_PLACE(abi::FuncAttributes, carveout, cudaFuncAttributes, preferredShmemCarveout);
#if CUDART_VERSION >= 12000
ASHLAR_SAME_PLACE(abi::FuncAttributes, non_portable_cluster, cudaFuncAttributes, nonPortableClusterSizeAllowed);
ASHLAR_SAME_SIZE(abi::InstantiateParams, cudaGraphInstantiateParams);
ASHLAR_SAME_PLACE(abi::InstantiateParams, result, cudaGraphInstantiateParams, result_out);
ASHLAR_SAME_SIZE(abi::UpdateResult, cudaGraphExecUpdateResultInfo);
ASHLAR_SAME_SIZE(abi::UpdateResult, CUgraphExecUpdateResultInfo);
ASHLAR_SAME_SIZE(abi::KernelNodeParamsV2, CUDA_KERNEL_NODE_PARAMS_v2);
#endif
ASHLAR_SAME_SIZE(abi::ChannelFormat, cudaChannelFormatDesc);
ASHLAR_SAME_SIZE(abi::ArrayDescriptor, CUDA_ARRAY3D_DESCRIPTOR);
ASHLAR_SAME_PLACE(abi::ArrayDescriptor, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
ASHLAR_SAME_SIZE(abi::FlatArrayDescriptor, CUDA_ARRAY_DESCRIPTOR);
#if CUDART_VERSION >= 12040
ASHLAR_SAME_SIZE(abi::GraphNodeParams, CUgraphNodeParams);
ASHLAR_SAME_PLACE(abi::GraphNodeParams, kernel, CUgraphNodeParams, kernel);
ASHLAR_SAME_SIZE(abi::MemcpyNodeParams, CUDA_MEMCPY_NODE_PARAMS);
ASHLAR_SAME_PLACE(abi::MemcpyNodeParams, copy, CUDA_MEMCPY_NODE_PARAMS, copyParams);
ASHLAR_SAME_PLACE(abi::MemsetNodeParams, height, CUDA_MEMSET_NODE_PARAMS_v2, height);
ASHLAR_SAME_SIZE(abi::DevResource, CUdevResource);
ASHLAR_SAME_PLACE(abi::DevResource, sm_count, CUdevResource, sm);
#endif
ASHLAR_SAME_SIZE(abi::LaunchConfig, cudaLaunchConfig_t);
ASHLAR_SAME_PLACE(abi::LaunchConfig, stream, cudaLaunchConfig_t, stream);
ASHLAR_SAME_PLACE(abi::LaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
ASHLAR_SAME_SIZE(abi::DriverLaunchConfig, CUlaunchConfig);
ASHLAR_SAME_PLACE(abi::DriverLaunchConfig, stream, CUlaunchConfig, hStream);
ASHLAR_SAME_SIZE(abi::IpcHandle, cudaIpcMemHandle_t);
ASHLAR_SAME_SIZE(abi::IpcHandle, cudaIpcEventHandle_t);
ASHLAR_SAME_SIZE(abi::Uuid, CUuuid);
ASHLAR_SAME_SIZE(abi::Memcpy2D, CUDA_MEMCPY2D);
ASHLAR_SAME_PLACE(abi::Memcpy2D, dst_device, CUDA_MEMCPY2D, dstDevice);
ASHLAR_SAME_PLACE(abi::Memcpy2D, width_bytes, CUDA_MEMCPY2D, WidthInBytes);
ASHLAR_SAME_SIZE(abi::DriverMemcpy3D, CUDA_MEMCPY3D);
ASHLAR_SAME_PLACE(abi::DriverMemcpy3D, dst_type, CUDA_MEMCPY3D, dstMemoryType);
ASHLAR_SAME_PLACE(abi::DriverMemcpy3D, width_bytes, CUDA_MEMCPY3D, WidthInBytes);
ASHLAR_SAME_SIZE(abi::HostNodeParams, cudaHostNodeParams);
ASHLAR_SAME_SIZE(abi::MemsetNodeParams, cudaMemsetParams);
ASHLAR_SAME_PLACE(abi::MemsetNodeParams, element_bytes, cudaMemsetParams, elementSize);
ASHLAR_SAME_PLACE(abi::MemsetNodeParams, width, cudaMemsetParams, width);
ASHLAR_SAME_SIZE(abi::MemAllocNodeParams, cudaMemAllocNodeParams);
ASHLAR_SAME_PLACE(abi::MemAllocNodeParams, bytes, cudaMemAllocNodeParams, bytesize);
ASHLAR_SAME_PLACE(abi::MemAllocNodeParams, address, cudaMemAllocNodeParams, dptr);
ASHLAR_SAME_SIZE(abi::KernelNodeParams, cudaKernelNodeParams);
ASHLAR_SAME_PLACE(abi::KernelNodeParams, params, cudaKernelNodeParams, kernelParams);

#define ASHLAR_SAME_NUMBER(ours, runtime, driver)                      \
  static_assert(static_cast<int>(ours) == static_cast<int>(runtime) && \
                static_cast<int>(ours) == static_cast<int>(driver))

ASHLAR_SAME_NUMBER(Error::kInvalidValue, cudaErrorInvalidValue, CUDA_ERROR_INVALID_VALUE);
ASHLAR_SAME_NUMBER(Error::kOutOfMemory, cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY);
ASHLAR_SAME_NUMBER(Error::kNotInitialized, cudaErrorInitializationError, CUDA_ERROR_NOT_INITIALIZED);
ASHLAR_SAME_NUMBER(Error::kNoDevice, cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE);
ASHLAR_SAME_NUMBER(Error::kInvalidDevice, cudaErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
ASHLAR_SAME_NUMBER(Error::kInvalidContext, cudaErrorDeviceUninitialized, CUDA_ERROR_INVALID_CONTEXT);
ASHLAR_SAME_NUMBER(Error::kPeerAccessUnsupported, cudaErrorPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
ASHLAR_SAME_NUMBER(Error::kInvalidHandle, cudaErrorInvalidResourceHandle, CUDA_ERROR_INVALID_HANDLE);
ASHLAR_SAME_NUMBER(Error::kIllegalState, cudaErrorIllegalState, CUDA_ERROR_ILLEGAL_STATE);
ASHLAR_SAME_NUMBER(Error::kNotFound, cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND);
ASHLAR_SAME_NUMBER(Error::kNotReady, cudaErrorNotReady, CUDA_ERROR_NOT_READY);
ASHLAR_SAME_NUMBER(Error::kPeerAccessAlreadyEnabled, cudaErrorPeerAccessAlreadyEnabled,
                   CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
ASHLAR_SAME_NUMBER(Error::kPeerAccessNotEnabled, cudaErrorPeerAccessNotEnabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
ASHLAR_SAME_NUMBER(Error::kHostMemoryAlreadyRegistered, cudaErrorHostMemoryAlreadyRegistered,
                   CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
ASHLAR_SAME_NUMBER(Error::kHostMemoryNotRegistered, cudaErrorHostMemoryNotRegistered,
                   CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
ASHLAR_SAME_NUMBER(Error::kNotPermitted, cudaErrorNotPermitted, CUDA_ERROR_NOT_PERMITTED);
ASHLAR_SAME_NUMBER(Error::kNotSupported, cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED);
ASHLAR_SAME_NUMBER(Error::kCaptureUnsupported, cudaErrorStreamCaptureUnsupported,
                   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
ASHLAR_SAME_NUMBER(Error::kCaptureInvalidated, cudaErrorStreamCaptureInvalidated,
                   CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
ASHLAR_SAME_NUMBER(Error::kCaptureMerge, cudaErrorStreamCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
ASHLAR_SAME_NUMBER(Error::kCaptureUnmatched, cudaErrorStreamCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
ASHLAR_SAME_NUMBER(Error::kCaptureUnjoined, cudaErrorStreamCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
ASHLAR_SAME_NUMBER(Error::kCaptureIsolation, cudaErrorStreamCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
ASHLAR_SAME_NUMBER(Error::kCaptureImplicit, cudaErrorStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
ASHLAR_SAME_NUMBER(Error::kCapturedEvent, cudaErrorCapturedEvent, CUDA_ERROR_CAPTURED_EVENT);
ASHLAR_SAME_NUMBER(Error::kCaptureWrongThread, cudaErrorStreamCaptureWrongThread,
                   CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
ASHLAR_SAME_NUMBER(Error::kUnknown, cudaErrorUnknown, CUDA_ERROR_UNKNOWN);
ASHLAR_SAME_NUMBER(NodeKind::kKernel, cudaGraphNodeTypeKernel, CU_GRAPH_NODE_TYPE_KERNEL);
ASHLAR_SAME_NUMBER(NodeKind::kEmpty, cudaGraphNodeTypeEmpty, CU_GRAPH_NODE_TYPE_EMPTY);
ASHLAR_SAME_NUMBER(NodeKind::kRecordEvent, cudaGraphNodeTypeEventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
ASHLAR_SAME_NUMBER(NodeKind::kMemoryFree, cudaGraphNodeTypeMemFree, CU_GRAPH_NODE_TYPE_MEM_FREE);
ASHLAR_SAME_NUMBER(CaptureMode::kRelaxed, cudaStreamCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(kEventInterprocess == cudaEventInterprocess);

// The place of every field that we fill, and not a byte behind the last.
TEST(CudaLayoutsTest, DevicePropertiesAreWhereTheHeaderHasThem) {
  const Settings settings;
  struct {
    cudaDeviceProp prop;
    unsigned char behind[64];
  } out;
  std::memset(&out, 0x5A, sizeof(out));
  FillDeviceProp(settings, 1, CUDART_VERSION / 1000, &out.prop);
  EXPECT_EQ(settings.name, out.prop.name);
  EXPECT_EQ(out.prop.totalGlobalMem, settings.total_bytes);
  EXPECT_EQ(out.prop.major, settings.compute_major);
  EXPECT_EQ(out.prop.minor, settings.compute_minor);
  EXPECT_EQ(out.prop.multiProcessorCount, settings.sm_count);
  EXPECT_EQ(static_cast<std::uint64_t>(out.prop.l2CacheSize), settings.l2_bytes);
  EXPECT_EQ(out.prop.sharedMemPerBlockOptin, settings.shared_per_block_optin);
  EXPECT_EQ(out.prop.sharedMemPerMultiprocessor, settings.shared_per_sm);
  EXPECT_EQ(out.prop.maxThreadsPerMultiProcessor, settings.threads_per_sm);
  EXPECT_EQ(out.prop.memoryBusWidth, settings.memory_bus_bits);
  EXPECT_EQ(out.prop.warpSize, 32);
  EXPECT_EQ(out.prop.regsPerBlock, 65536);
  EXPECT_EQ(out.prop.maxThreadsDim[2], 64);
  EXPECT_EQ(out.prop.maxGridSize[0], 2147483647);
  EXPECT_EQ(out.prop.totalConstMem, 65536U);
  EXPECT_EQ(out.prop.pciBusID, PciBus(1));
  EXPECT_EQ(out.prop.managedMemory, 1);
  EXPECT_EQ(out.prop.cooperativeLaunch, 1);
  EXPECT_EQ(out.prop.maxBlocksPerMultiProcessor, 32);
#if CUDART_VERSION >= 12000
  EXPECT_EQ(out.prop.memoryPoolsSupported, 1);
#endif
  for (const unsigned char byte : out.behind) EXPECT_EQ(byte, 0x5A);
}

TEST(CudaLayoutsTest, AttributesAgreeWithTheProperties) {
  const Settings settings;
  const auto is = [&](int attribute, int wanted) {
    EXPECT_EQ(DeviceAttribute(settings, attribute, 0), wanted) << attribute;
  };
  is(cudaDevAttrComputeCapabilityMajor, settings.compute_major);
  is(cudaDevAttrMultiProcessorCount, settings.sm_count);
  is(cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(settings.shared_per_block_optin));
  is(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1);
  is(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1);
  is(cudaDevAttrMemoryPoolsSupported, 1);
  is(cudaDevAttrWarpSize, 32);
  EXPECT_FALSE(DeviceAttribute(settings, 100'000, 0).has_value());
}

}  // namespace
}  // namespace ashlar::hollow
#else
TEST(CudaLayoutsTest, NothingIsCompared) {
  GTEST_SKIP() << "no toolkit: <cuda.h> and <cuda_runtime_api.h> are not here";
}
#endif
