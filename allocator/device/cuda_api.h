// The calls that CudaDevice makes to CUDA's runtime and driver, and no others, as an interface with plain types: this
// header needs no toolkit. SystemCudaApi is the real CUDA; tests/fake_cuda has one of ours, so that CudaDevice is
// tested where there is no GPU.
//
// Each call names the CUDA call that it is, makes nothing else, and returns that call's code: 0 is success. Codes of
// cudaError_t and CUresult are the same numbers since CUDA 10.1; their names differ, so the driver's calls are apart.
// Thread rule: as the CUDA calls: any thread; the current context belongs to the calling thread.
#ifndef ASHLAR_ALLOCATOR_DEVICE_CUDA_API_H_
#define ASHLAR_ALLOCATOR_DEVICE_CUDA_API_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"

namespace ashlar::device {

// cudaError_t and CUresult; the real interface asserts that they are the headers' values.
inline constexpr int kCudaSuccess = 0;
inline constexpr int kCudaErrorInvalidValue = 1;
inline constexpr int kCudaErrorMemoryAllocation = 2;
inline constexpr int kCudaErrorUnloading = 4;  // cudaErrorCudartUnloading, CUDA_ERROR_DEINITIALIZED
inline constexpr int kCudaErrorNoDevice = 100;
inline constexpr int kCudaErrorInvalidDevice = 101;
inline constexpr int kCudaErrorInvalidContext = 201;  // cudaErrorDeviceUninitialized, CUDA_ERROR_INVALID_CONTEXT
inline constexpr int kCudaErrorInvalidHandle = 400;
inline constexpr int kCudaErrorNotFound = 500;
inline constexpr int kCudaErrorNotReady = 600;
inline constexpr int kCudaErrorIllegalAddress = 700;
inline constexpr int kCudaErrorContextDestroyed = 709;  // cudaErrorContextIsDestroyed

// CU_DEVICE_ATTRIBUTE_...
enum class CudaAttribute : int {
  kVirtualMemoryManagement = 102,  // ..._VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
  kPosixFdHandles = 103,           // ..._HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
  kGpuDirectRdmaWithVmm = 110,     // ..._GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
  kFabricHandles = 128,            // ..._HANDLE_TYPE_FABRIC_SUPPORTED
};

// cudaStreamCaptureMode: which calls break a capture that is under way somewhere.
enum class CudaCaptureMode : int {
  kGlobal = 0,
  kThreadLocal = 1,
  kRelaxed = 2,
};

// Opaque: what the driver calls CUcontext, cudaEvent_t and CUmemGenericAllocationHandle.
enum class CudaContext : std::uint64_t {};
enum class CudaEvent : std::uint64_t {};
enum class CudaHandle : std::uint64_t {};

// What cuMemCreate is asked for (CUmemAllocationProp): pinned memory of a device, exportable or not.
struct CudaMemoryKind {
  int ordinal = 0;
  bool is_posix_fd_exportable = false;
  bool is_fabric_exportable = false;
  bool is_gpu_direct_rdma_capable = false;
};

class CudaApi {
 public:
  virtual ~CudaApi() = default;

  // --- runtime ---
  virtual int GetDeviceCount(int* count) = 0;                                         // cudaGetDeviceCount
  virtual int Malloc(std::uint64_t* address, std::uint64_t size_bytes) = 0;           // cudaMalloc
  virtual int Free(std::uint64_t address) = 0;                                        // cudaFree
  virtual int MemGetInfo(std::uint64_t* free_bytes, std::uint64_t* total_bytes) = 0;  // cudaMemGetInfo
  virtual int EventCreate(CudaEvent* event) = 0;                    // cudaEventCreateWithFlags(cudaEventDisableTiming)
  virtual int EventDestroy(CudaEvent event) = 0;                    // cudaEventDestroy
  virtual int EventRecord(CudaEvent event, Stream stream) = 0;      // cudaEventRecord
  virtual int EventQuery(CudaEvent event) = 0;                      // cudaEventQuery
  virtual int EventSynchronize(CudaEvent event) = 0;                // cudaEventSynchronize
  virtual int StreamSynchronize(Stream stream) = 0;                 // cudaStreamSynchronize
  virtual int StreamWaitEvent(Stream stream, CudaEvent event) = 0;  // cudaStreamWaitEvent, no flags
  // cudaThreadExchangeStreamCaptureMode: sets the thread's mode and returns the one before.
  virtual int ExchangeCaptureMode(CudaCaptureMode* mode) = 0;
  virtual int DeviceSynchronize() = 0;  // cudaDeviceSynchronize
  virtual int GetLastError() = 0;       // cudaGetLastError, which clears it
  // "cudaErrorMemoryAllocation: out of memory", by cudaGetErrorName and cudaGetErrorString.
  virtual std::string RuntimeErrorText(int code) = 0;

  // --- driver ---
  virtual int PrimaryContextRetain(CudaContext* context, int ordinal) = 0;         // cuDevicePrimaryCtxRetain
  virtual int PrimaryContextRelease(int ordinal) = 0;                              // cuDevicePrimaryCtxRelease
  virtual int ContextGetCurrent(CudaContext* context) = 0;                         // cuCtxGetCurrent
  virtual int ContextGetId(CudaContext context, std::uint64_t* id) = 0;            // cuCtxGetId
  virtual int ContextPush(CudaContext context) = 0;                                // cuCtxPushCurrent
  virtual int ContextPop(CudaContext* context) = 0;                                // cuCtxPopCurrent
  virtual int GetAttribute(int* value, CudaAttribute attribute, int ordinal) = 0;  // cuDeviceGetAttribute
  virtual int GetGranularity(std::uint64_t* size_bytes,
                             const CudaMemoryKind& kind) = 0;                        // cuMemGetAllocationGranularity
  virtual int AddressReserve(std::uint64_t* address, std::uint64_t size_bytes) = 0;  // cuMemAddressReserve
  virtual int AddressFree(std::uint64_t address, std::uint64_t size_bytes) = 0;      // cuMemAddressFree
  virtual int MemCreate(CudaHandle* handle, std::uint64_t size_bytes, const CudaMemoryKind& kind) = 0;  // cuMemCreate
  virtual int MemRelease(CudaHandle handle) = 0;                                                        // cuMemRelease
  virtual int MemMap(std::uint64_t address, std::uint64_t size_bytes, CudaHandle handle) = 0;           // cuMemMap
  virtual int MemUnmap(std::uint64_t address, std::uint64_t size_bytes) = 0;                            // cuMemUnmap
  // cuMemSetAccess: the device reads and writes.
  virtual int MemSetAccess(std::uint64_t address, std::uint64_t size_bytes, int ordinal) = 0;
  // "CUDA_ERROR_OUT_OF_MEMORY: out of memory", by cuGetErrorName and cuGetErrorString.
  virtual std::string DriverErrorText(int code) = 0;
};

// The CUDA of this machine; it lives as long as the program. kUnimplemented in a build without CUDA (ASHLAR_CUDA);
// kUnavailable where there is no driver, or one that lacks a call: the text says which and why.
absl::StatusOr<CudaApi*> SystemCudaApi();

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_CUDA_API_H_
