// CUDA's functions as a program declares them, without a toolkit: what the tests of the preloaded library call. They
// are linked from a stand-in for NVIDIA's runtime (real_runtime.cc), which answers kOfTheRealLibrary to every call: a
// call that the preloaded library does not take over is seen at once.
//
// Source of the signatures: cuda_runtime_api.h, cuda.h and nvml.h of CUDA 13.0. Handles are void pointers, enumerations
// ints, the driver's addresses std::uint64_t.
#ifndef ASHLAR_TESTS_HOLLOW_CLIENT_CUDA_CALLS_H_
#define ASHLAR_TESTS_HOLLOW_CLIENT_CUDA_CALLS_H_

#include <cstddef>
#include <cstdint>

#include "hollow/abi/cuda_types.h"

namespace ashlar::hollow::client {

inline constexpr int kOfTheRealLibrary = 4242;

inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNotInitialized = 3;
inline constexpr int kInvalidConfiguration = 9;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kInvalidContext = 201;
inline constexpr int kInvalidHandle = 400;
inline constexpr int kIllegalState = 401;
inline constexpr int kNotFound = 500;
inline constexpr int kNotReady = 600;
inline constexpr int kPeerAlreadyEnabled = 704;
inline constexpr int kPeerNotEnabled = 705;
inline constexpr int kAlreadyRegistered = 712;
inline constexpr int kNotRegistered = 713;
inline constexpr int kNotSupported = 801;
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kCaptureInvalidated = 901;
inline constexpr int kCapturedEvent = 907;
inline constexpr int kUpdateFailure = 910;
inline constexpr int kDefaultCopy = 4;  // cudaMemcpyDefault

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

extern "C" {

int cudaGetDeviceCount(int* count);
int cudaGetDevice(int* device);
int cudaSetDevice(int device);
int cudaDeviceReset();
int cudaDeviceSynchronize();
int cudaDeviceGetAttribute(int* value, int attribute, int device);
int cudaDeviceCanAccessPeer(int* can, int device, int peer);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaDeviceDisablePeerAccess(int peer);
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
int cudaDriverGetVersion(int* version);
int cudaDeviceGetLimit(std::size_t* value, int limit);
int cudaDeviceSetLimit(int limit, std::size_t value);
int cudaRuntimeGetVersion(int* version);
int cudaGetLastError();
int cudaPeekAtLastError();
const char* cudaGetErrorName(int error);
const char* cudaGetErrorString(int error);
int cudaGetDeviceProperties(void* prop, int device);

int cudaMalloc(void** pointer, std::size_t bytes);
int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags);
int cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height);
int cudaMalloc3D(abi::PitchedPtr* pointer, abi::Extent extent);
int cudaFree(void* pointer);
int cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags);
int cudaMallocHost(void** pointer, std::size_t bytes);
int cudaFreeHost(void* pointer);
int cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags);
int cudaHostUnregister(void* pointer);
int cudaHostGetDevicePointer(void** device_pointer, void* host, unsigned flags);
int cudaHostGetFlags(unsigned* flags, void* host);
int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);
int cudaPointerGetAttributes(abi::PointerAttributes* attributes, const void* pointer);
int cudaIpcGetMemHandle(abi::IpcHandle* handle, void* pointer);
int cudaIpcOpenMemHandle(void** pointer, abi::IpcHandle handle, unsigned flags);
int cudaIpcCloseMemHandle(void* pointer);

int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream);
int cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, void* pool, void* stream);
int cudaFreeAsync(void* pointer, void* stream);
int cudaMemPoolCreate(void** pool, const abi::PoolProps* props);
int cudaMemPoolDestroy(void* pool);
int cudaMemPoolTrimTo(void* pool, std::size_t keep_bytes);
int cudaMemPoolSetAttribute(void* pool, int attribute, void* value);
int cudaMemPoolGetAttribute(void* pool, int attribute, void* value);
int cudaDeviceGetDefaultMemPool(void** pool, int device);
int cudaDeviceGetMemPool(void** pool, int device);
int cudaDeviceSetMemPool(int device, void* pool);

int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);
int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream);
int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                 std::size_t height, int kind);
int cudaMemset(void* to, int value, std::size_t bytes);
int cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream);

int cudaStreamCreate(void** stream);
int cudaStreamCreateWithFlags(void** stream, unsigned flags);
int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority);
int cudaStreamDestroy(void* stream);
int cudaStreamGetPriority(void* stream, int* priority);
int cudaStreamQuery(void* stream);
int cudaStreamSynchronize(void* stream);
int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data);
int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*), void* data, unsigned flags);
int cudaEventCreate(void** event);
int cudaEventCreateWithFlags(void** event, unsigned flags);
int cudaEventDestroy(void* event);
int cudaEventRecord(void* event, void* stream);
int cudaEventRecordWithFlags(void* event, void* stream, unsigned flags);
int cudaEventQuery(void* event);
int cudaEventSynchronize(void* event);
int cudaEventElapsedTime(float* ms, void* begin, void* end);
int cudaLaunchKernel(const void* function, abi::Dim3 grid, abi::Dim3 block, void** arguments, std::size_t shared_bytes,
                     void* stream);

int cudaStreamBeginCapture(void* stream, int mode);
int cudaStreamEndCapture(void* stream, void** graph);
int cudaStreamIsCapturing(void* stream, int* status);
int cudaThreadExchangeStreamCaptureMode(int* mode);
int cudaGraphCreate(void** graph, unsigned flags);
int cudaGraphDestroy(void* graph);
int cudaGraphAddEmptyNode(void** node, void* graph, void* const* after, std::size_t count);
int cudaGraphDebugDotPrint(void* graph, const char* path, unsigned flags);
int cudaGraphAddKernelNode(void** node, void* graph, void* const* after, std::size_t count,
                           const abi::KernelNodeParams* params);
int cudaGraphKernelNodeGetParams(void* node, abi::KernelNodeParams* params);
int cudaGraphAddHostNode(void** node, void* graph, void* const* after, std::size_t count,
                         const abi::HostNodeParams* params);
int cudaGraphAddMemsetNode(void** node, void* graph, void* const* after, std::size_t count,
                           const abi::MemsetNodeParams* params);
int cudaGraphExecMemsetNodeSetParams(void* exec, void* node, const abi::MemsetNodeParams* params);
int cudaGraphAddMemcpyNode1D(void** node, void* graph, void* const* after, std::size_t count, void* to,
                             const void* from, std::size_t bytes, int kind);
int cudaGraphAddChildGraphNode(void** node, void* graph, void* const* after, std::size_t count, void* child);
int cudaGraphAddMemAllocNode(void** node, void* graph, void* const* after, std::size_t count,
                             abi::MemAllocNodeParams* params);
int cudaGraphAddMemFreeNode(void** node, void* graph, void* const* after, std::size_t count, void* address);
int cudaGraphAddDependencies(void* graph, void* const* from, void* const* to, const void* edges, std::size_t count);
int cudaGraphGetNodes(void* graph, void** nodes, std::size_t* count);
int cudaGraphGetEdges(void* graph, void** from, void** to, void* edges, std::size_t* count);
int cudaGraphNodeGetType(void* node, int* kind);
int cudaGraphAddNode(void** node, void* graph, void* const* after, const void* edges, std::size_t count, void* params);
int cudaGraphNodeSetParams(void* node, void* params);
int cudaGraphExecNodeSetParams(void* exec, void* node, void* params);
int cudaGraphNodeSetEnabled(void* exec, void* node, unsigned is_enabled);
int cudaGraphClone(void** clone, void* graph);
int cudaGraphNodeFindInClone(void** copy, void* original, void* clone);
int cudaGraphInstantiate(void** exec, void* graph, unsigned long long flags);
int cudaGraphExecUpdate(void* exec, void* graph, abi::UpdateResult* result);
int cudaGraphLaunch(void* exec, void* stream);
int cudaGraphExecDestroy(void* exec);
int cudaUserObjectCreate(void** object, void* data, void (*destroy)(void*), unsigned count, unsigned flags);
int cudaUserObjectRelease(void* object, unsigned count);
int cudaGraphRetainUserObject(void* graph, void* object, unsigned count, unsigned flags);

int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);
int cuDeviceGetCount(int* count);
int cuDeviceGet(int* device, int ordinal);
int cuDeviceGetName(char* name, int size, int device);
int cuDeviceTotalMem_v2(std::size_t* bytes, int device);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active);
int cuCtxCreate_v4(void** context, void* params, unsigned flags, int device);
int cuCtxDestroy_v2(void* context);
int cuCtxGetCurrent(void** context);
int cuCtxSetCurrent(void* context);
int cuCtxPushCurrent_v2(void* context);
int cuCtxPopCurrent_v2(void** context);
int cuCtxGetDevice(int* device);
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes);
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes);
int cuMemFree_v2(std::uint64_t address);
int cuMemGetAddressRange_v2(std::uint64_t* base, std::size_t* bytes, std::uint64_t address);
int cuMemGetAllocationGranularity(std::size_t* bytes, const abi::AllocationProp* prop, int option);
int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const abi::AllocationProp* prop, unsigned long long flags);
int cuMemRelease(std::uint64_t handle);
int cuMemRetainAllocationHandle(std::uint64_t* handle, std::uint64_t address);
int cuMemAddressReserve(std::uint64_t* address, std::size_t bytes, std::size_t alignment, std::uint64_t hint,
                        unsigned long long flags);
int cuMemAddressFree(std::uint64_t address, std::size_t bytes);
int cuMemMap(std::uint64_t address, std::size_t bytes, std::size_t offset, std::uint64_t handle,
             unsigned long long flags);
int cuMemUnmap(std::uint64_t address, std::size_t bytes);
int cuMemSetAccess(std::uint64_t address, std::size_t bytes, const abi::AccessDesc* access, std::size_t count);
int cuMemGetAccess(unsigned long long* flags, const abi::Location* location, std::uint64_t address);
int cuMemExportToShareableHandle(int* file, std::uint64_t handle, int type, unsigned long long flags);
int cuMemImportFromShareableHandle(std::uint64_t* handle, void* file, int type);
int cuModuleLoadData(void** module, const void* image);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuModuleGetGlobal_v2(void** address, std::size_t* bytes, void* module, const char* name);
int cuModuleUnload(void* module);
int cuPointerGetAttribute(void* data, int attribute, std::uint64_t address);
int cuGraphAddNode_v2(void** node, void* graph, void* const* after, const void* edges, std::size_t count, void* params);
int cuStreamGetGreenCtx(void* stream, void** context);
int cuStreamGetDevResource(void* stream, abi::DevResource* resource, int kind);
int cuCtxGetDevResource(void* context, abi::DevResource* resource, int kind);
int cuDeviceGetDevResource(int device, abi::DevResource* resource, int kind);
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
                   void** extra);
int cuEventRecordWithFlags(void* event, void* stream, unsigned flags);
int cuStreamWaitEvent(void* stream, void* event, unsigned flags);
int cuGetProcAddress_v2(const char* name, void** function, int cuda_version, std::uint64_t flags, int* status);
int cuGetErrorName(int error, const char** name);

int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetCount_v2(unsigned* count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);
int nvmlDeviceGetName(void* device, char* name, unsigned size);
int nvmlDeviceGetMemoryInfo(void* device, std::uint64_t* total_free_used);
int nvmlSystemGetDriverVersion(char* version, unsigned size);

}  // extern "C"

}  // namespace ashlar::hollow::client

#endif  // ASHLAR_TESTS_HOLLOW_CLIENT_CUDA_CALLS_H_
