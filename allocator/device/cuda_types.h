// The types and numbers of CUDA's driver that CudaDevice needs, declared by us, so that neither building it nor using
// it takes a toolkit. cuda_driver.h has the calls.
//
// Source: cuda.h of CUDA 13.0. The driver keeps its binary interface: each number and layout is what it was in the
// first version that had it, which is CUDA 11.0 or earlier but where a later one is named. The test cuda_types_test
// compares all of them with the toolkit's header where there is one.
#ifndef ASHLAR_ALLOCATOR_DEVICE_CUDA_TYPES_H_
#define ASHLAR_ALLOCATOR_DEVICE_CUDA_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace ashlar::device {

// CUresult: what every call returns. cudaError_t has the same numbers since CUDA 10.1.
inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaErrorInvalidValue = 1;
inline constexpr int kCudaErrorOutOfMemory = 2;
inline constexpr int kCudaErrorDeinitialized = 4;
inline constexpr int kCudaErrorNoDevice = 100;
inline constexpr int kCudaErrorInvalidDevice = 101;
inline constexpr int kCudaErrorInvalidContext = 201;
inline constexpr int kCudaErrorInvalidHandle = 400;
inline constexpr int kCudaErrorNotFound = 500;
inline constexpr int kCudaErrorNotReady = 600;
inline constexpr int kCudaErrorIllegalAddress = 700;
inline constexpr int kCudaErrorContextIsDestroyed = 709;
inline constexpr int kCudaErrorNotPermitted = 800;
inline constexpr int kCudaErrorNotSupported = 801;

// CUdevice_attribute, of which these are.
enum class CudaAttribute : int {
  kVirtualMemoryManagement = 102,  // ..._VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
  kPosixFdHandles = 103,           // ..._HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
  kGpuDirectRdmaWithVmm = 110,     // ..._GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
  kFabricHandles = 128,            // ..._HANDLE_TYPE_FABRIC_SUPPORTED, CUDA 12.3
};

// CUstreamCaptureMode: which calls break a capture that is under way somewhere.
enum class CudaCaptureMode : int {
  kGlobal = 0,
  kThreadLocal = 1,
  kRelaxed = 2,
};

// Handles. A device's is an int, a mapped memory's a number, the others point to what only the driver knows.
using CudaDeviceId = int;                         // CUdevice
using CudaContext = struct CudaContextInDriver*;  // CUcontext
using CudaEvent = struct CudaEventInDriver*;      // CUevent
using CudaNode = struct CudaNodeInDriver*;        // CUgraphNode
using CudaStream = struct CudaStreamInDriver*;    // CUstream
enum class CudaHandle : std::uint64_t {};         // CUmemGenericAllocationHandle

inline constexpr unsigned kCudaEventDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kCudaStreamWaitDefault = 0;   // CU_EVENT_WAIT_DEFAULT
inline constexpr unsigned kCudaHostPortable = 1;        // CU_MEMHOSTALLOC_PORTABLE
inline constexpr int kCudaCaptureActive = 1;            // CU_STREAM_CAPTURE_STATUS_ACTIVE
inline constexpr int kCudaGranularityMinimum = 0;       // CU_MEM_ALLOC_GRANULARITY_MINIMUM
inline constexpr int kCudaAllocationPinned = 1;         // CU_MEM_ALLOCATION_TYPE_PINNED
inline constexpr int kCudaLocationDevice = 1;           // CU_MEM_LOCATION_TYPE_DEVICE
inline constexpr int kCudaHandlePosixFd = 1;            // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
inline constexpr int kCudaHandleFabric = 8;             // CU_MEM_HANDLE_TYPE_FABRIC, CUDA 12.3
inline constexpr int kCudaAccessReadWrite = 3;          // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
inline constexpr std::uint64_t kCudaLegacyStream = 1;   // CU_GET_PROC_ADDRESS_LEGACY_STREAM, CUDA 11.3

// CUmemLocation.
struct CudaLocation {
  int type = kCudaLocationDevice;
  int ordinal = 0;
};

// CUmemAllocationProp: what memory cuMemCreate is asked for.
struct CudaAllocation {
  int type = kCudaAllocationPinned;
  int handle_types = 0;  // by which it can be exported: kCudaHandle...
  CudaLocation location;
  void* win32_attributes = nullptr;
  unsigned char compression = 0;
  unsigned char is_gpu_direct_rdma_capable = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

// CUmemAccessDesc.
struct CudaAccess {
  CudaLocation location;
  int flags = kCudaAccessReadWrite;
};

// CUgraphEdgeData, CUDA 12.3.
struct CudaEdge {
  unsigned char from_port = 0;
  unsigned char to_port = 0;
  unsigned char type = 0;
  unsigned char reserved[5] = {};
};

// CUDA's driver is a 64 bit library: elsewhere what is above compiles, and is never called.
#if INTPTR_MAX == INT64_MAX
static_assert(sizeof(CudaLocation) == 8 && offsetof(CudaLocation, ordinal) == 4);
static_assert(sizeof(CudaAllocation) == 32 && offsetof(CudaAllocation, location) == 8);
static_assert(offsetof(CudaAllocation, win32_attributes) == 16 && offsetof(CudaAllocation, compression) == 24);
static_assert(offsetof(CudaAllocation, is_gpu_direct_rdma_capable) == 25 && offsetof(CudaAllocation, usage) == 26);
static_assert(sizeof(CudaEdge) == 8);
static_assert(sizeof(CudaAccess) == 12 && offsetof(CudaAccess, flags) == 8);
#endif

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_CUDA_TYPES_H_
