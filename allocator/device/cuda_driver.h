// CUDA's driver, libcuda.so.1, looked up at run time: a program that has this in it starts where there is none, and is
// the same program for every driver from CUDA 11.0 on. It needs no CUDA runtime and touches none: the runtime that the
// program uses, of whatever version and however linked, works on the same primary contexts.
//
//   absl::StatusOr<const CudaDriver*> cuda = SystemCudaDriver();
//   if (!cuda.ok()) return cuda.status();  // one line: no driver, or one that is too old, and what it lacks
//   std::uint64_t address = 0;
//   const int code = (*cuda)->mem_alloc(&address, size_bytes);
//
// Thread rule: as CUDA's calls: any thread; the current context belongs to the calling thread.
#ifndef ASHLAR_ALLOCATOR_DEVICE_CUDA_DRIVER_H_
#define ASHLAR_ALLOCATOR_DEVICE_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/device/cuda_types.h"

namespace ashlar::device {

// What a driver without the call is good for.
enum class CudaNeed : std::uint8_t {
  kAlways,         // nothing
  kVirtualMemory,  // segments; no expandable ones
  kIfThere,        // everything: there is another way
};

// Where the calls of a driver come from: cuGetProcAddress, as every driver from CUDA 11.3 on has it, else the exported
// names. It is asked for a call as it was in a given version, since a later one may take other arguments.
class CudaLookup {
 public:
  // `library` is dlopen's; with nullptr every call is missing.
  explicit CudaLookup(void* library);

  // `exported` is the name under which the library exports that version.
  void* Find(const char* name, int version, const char* exported, CudaNeed need);

  // "cuMemMap of CUDA 10.2", the first call of this need that was not found; empty: none.
  const std::string& missing(CudaNeed need) const {
    return need == CudaNeed::kAlways ? missing_always_ : missing_virtual_memory_;
  }

 private:
  void* library_;
  int (*ask_)(const char*, void**, int, std::uint64_t) = nullptr;           // cuGetProcAddress of CUDA 11.3
  int (*ask_v2_)(const char*, void**, int, std::uint64_t, int*) = nullptr;  // cuGetProcAddress of CUDA 12.0
  std::string missing_always_;
  std::string missing_virtual_memory_;
};

template <typename Signature>
class CudaCall;

// A call of the driver, found when it is made.
template <typename... Args>
class CudaCall<int(Args...)> {
 public:
  CudaCall(CudaLookup& lookup, const char* name, int version, const char* exported, CudaNeed need = CudaNeed::kAlways)
      : name_(name),
        version_(version),
        exported_(exported),
        function_(reinterpret_cast<int (*)(Args...)>(lookup.Find(name, version, exported, need))) {}

  // The driver's code: kCudaSuccess or an error.
  int operator()(Args... args) const { return function_(args...); }
  bool is_there() const { return function_ != nullptr; }
  const char* name() const { return name_; }
  int version() const { return version_; }
  const char* exported() const { return exported_; }

 private:
  const char* name_;
  int version_;  // 1000 * major + 10 * minor: the CUDA version that brought these arguments (cudaTypedefs.h)
  const char* exported_;
  int (*function_)(Args...);
};

// A row a call.
struct CudaDriver {
  CudaLookup lookup;

  using Name = const char*;
  CudaCall<int(unsigned flags)> init{lookup, "cuInit", 2000, "cuInit"};
  CudaCall<int(int* version)> driver_get_version{lookup, "cuDriverGetVersion", 2020, "cuDriverGetVersion"};
  CudaCall<int(int code, Name* name)> get_error_name{lookup, "cuGetErrorName", 6000, "cuGetErrorName"};
  CudaCall<int(int code, Name* text)> get_error_string{lookup, "cuGetErrorString", 6000, "cuGetErrorString"};

  CudaCall<int(int* count)> device_get_count{lookup, "cuDeviceGetCount", 2000, "cuDeviceGetCount"};
  CudaCall<int(CudaDeviceId* device, int ordinal)> device_get{lookup, "cuDeviceGet", 2000, "cuDeviceGet"};
  CudaCall<int(int* value, CudaAttribute, CudaDeviceId)> device_get_attribute{lookup, "cuDeviceGetAttribute", 2000,
                                                                              "cuDeviceGetAttribute"};
  CudaCall<int(CudaContext*, CudaDeviceId)> primary_retain{lookup, "cuDevicePrimaryCtxRetain", 7000,
                                                           "cuDevicePrimaryCtxRetain"};
  CudaCall<int(CudaDeviceId)> primary_release{lookup, "cuDevicePrimaryCtxRelease", 11000,
                                              "cuDevicePrimaryCtxRelease_v2"};
  CudaCall<int(CudaDeviceId, unsigned* flags, int* is_active)> primary_get_state{lookup, "cuDevicePrimaryCtxGetState",
                                                                                 7000, "cuDevicePrimaryCtxGetState"};

  CudaCall<int(CudaContext*)> context_get_current{lookup, "cuCtxGetCurrent", 4000, "cuCtxGetCurrent"};
  CudaCall<int(CudaContext)> context_push{lookup, "cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"};
  CudaCall<int(CudaContext*)> context_pop{lookup, "cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"};
  CudaCall<int()> context_synchronize{lookup, "cuCtxSynchronize", 2000, "cuCtxSynchronize"};  // 13.0 takes a context
  CudaCall<int(CudaContext, std::uint64_t* id)> context_get_id{lookup, "cuCtxGetId", 12000, "cuCtxGetId",
                                                               CudaNeed::kIfThere};

  CudaCall<int(std::uint64_t* address, std::uint64_t size_bytes)> mem_alloc{lookup, "cuMemAlloc", 3020,
                                                                            "cuMemAlloc_v2"};
  CudaCall<int(std::uint64_t address)> mem_free{lookup, "cuMemFree", 3020, "cuMemFree_v2"};
  CudaCall<int(std::uint64_t* free_bytes, std::uint64_t* total_bytes)> mem_get_info{lookup, "cuMemGetInfo", 3020,
                                                                                    "cuMemGetInfo_v2"};

  CudaCall<int(void* to, std::uint64_t from, std::size_t size_bytes, CudaStream)> memcpy_to_host{
      lookup, "cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2", CudaNeed::kIfThere};
  CudaCall<int(std::uint64_t to, const void* from, std::size_t size_bytes, CudaStream)> memcpy_to_device{
      lookup, "cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2", CudaNeed::kIfThere};
  CudaCall<int(void** memory, std::size_t size_bytes, unsigned flags)> mem_host_alloc{
      lookup, "cuMemHostAlloc", 2020, "cuMemHostAlloc", CudaNeed::kIfThere};
  CudaCall<int(void* memory)> mem_free_host{lookup, "cuMemFreeHost", 2000, "cuMemFreeHost", CudaNeed::kIfThere};

  // Streams as cuStreamCreate and cudaStreamCreate give them; nullptr is the legacy default stream.
  CudaCall<int(CudaEvent*, unsigned flags)> event_create{lookup, "cuEventCreate", 2000, "cuEventCreate"};
  CudaCall<int(CudaEvent)> event_destroy{lookup, "cuEventDestroy", 4000, "cuEventDestroy_v2"};
  CudaCall<int(CudaEvent, CudaStream)> event_record{lookup, "cuEventRecord", 2000, "cuEventRecord"};
  CudaCall<int(CudaEvent)> event_query{lookup, "cuEventQuery", 2000, "cuEventQuery"};
  CudaCall<int(CudaEvent)> event_synchronize{lookup, "cuEventSynchronize", 2000, "cuEventSynchronize"};
  CudaCall<int(CudaStream)> stream_synchronize{lookup, "cuStreamSynchronize", 2000, "cuStreamSynchronize"};
  CudaCall<int(CudaStream, CudaEvent, unsigned flags)> stream_wait_event{lookup, "cuStreamWaitEvent", 3020,
                                                                         "cuStreamWaitEvent"};
  CudaCall<int(CudaCaptureMode* exchanged)> exchange_capture_mode{lookup, "cuThreadExchangeStreamCaptureMode", 10010,
                                                                  "cuThreadExchangeStreamCaptureMode"};
  CudaCall<int(CudaStream, int* status, std::uint64_t* id, void** graph, const CudaNode** nodes, const CudaEdge** edges,
               std::size_t* count)>
      stream_get_capture_info{lookup, "cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3", CudaNeed::kIfThere};
  CudaCall<int(CudaNode, CudaNode* nodes, CudaEdge* edges, std::size_t* count)> graph_node_get_dependencies{
      lookup, "cuGraphNodeGetDependencies", 12030, "cuGraphNodeGetDependencies_v2", CudaNeed::kIfThere};

  CudaCall<int(std::uint64_t* size_bytes, const CudaAllocation*, int option)> mem_get_granularity{
      lookup, "cuMemGetAllocationGranularity", 10020, "cuMemGetAllocationGranularity", CudaNeed::kVirtualMemory};
  CudaCall<int(std::uint64_t* address, std::uint64_t size_bytes, std::uint64_t alignment, std::uint64_t wish,
               std::uint64_t flags)>
      mem_address_reserve{lookup, "cuMemAddressReserve", 10020, "cuMemAddressReserve", CudaNeed::kVirtualMemory};
  CudaCall<int(std::uint64_t address, std::uint64_t size_bytes)> mem_address_free{
      lookup, "cuMemAddressFree", 10020, "cuMemAddressFree", CudaNeed::kVirtualMemory};
  CudaCall<int(CudaHandle*, std::uint64_t size_bytes, const CudaAllocation*, std::uint64_t flags)> mem_create{
      lookup, "cuMemCreate", 10020, "cuMemCreate", CudaNeed::kVirtualMemory};
  CudaCall<int(CudaHandle)> mem_release{lookup, "cuMemRelease", 10020, "cuMemRelease", CudaNeed::kVirtualMemory};
  CudaCall<int(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t offset, CudaHandle, std::uint64_t flags)>
      mem_map{lookup, "cuMemMap", 10020, "cuMemMap", CudaNeed::kVirtualMemory};
  CudaCall<int(std::uint64_t address, std::uint64_t size_bytes)> mem_unmap{lookup, "cuMemUnmap", 10020, "cuMemUnmap",
                                                                           CudaNeed::kVirtualMemory};
  CudaCall<int(std::uint64_t address, std::uint64_t size_bytes, const CudaAccess*, std::uint64_t count)> mem_set_access{
      lookup, "cuMemSetAccess", 10020, "cuMemSetAccess", CudaNeed::kVirtualMemory};
  CudaCall<int(void* exported, CudaHandle, int handle_type, std::uint64_t flags)> mem_export{
      lookup, "cuMemExportToShareableHandle", 10020, "cuMemExportToShareableHandle", CudaNeed::kIfThere};

  // "12.4", or "unknown" where the driver does not say.
  std::string VersionText() const;
  // "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  std::string ErrorText(int code) const;
};

// The driver of this machine; it lives as long as the program. kUnavailable where there is none, or one that lacks a
// call: the text says which and why. Nothing is initialised yet (cuInit).
absl::StatusOr<const CudaDriver*> SystemCudaDriver();

// Makes the CUDA calls of CudaDevice: turns their codes into a Status, and sets the context that they run in.

// What "out of memory" says in the answer of a call: cuMemAlloc means device memory, cuMemAddressReserve addresses.
enum class OutOfMemoryMeans : std::uint8_t { kDeviceMemory, kSomethingElse };

// "cuMemAlloc(20.00 MiB) failed on CUDA device 0: CUDA_ERROR_OUT_OF_MEMORY: out of memory". kResourceExhausted for
// device memory that is proven to be exhausted, kDataLoss where CUDA says that the context is destroyed or the driver
// shut down (nothing allocated before is left), else kInternal.
absl::Status CudaStatus(const CudaDriver& cuda, int ordinal, int code, absl::string_view call,
                        OutOfMemoryMeans means = OutOfMemoryMeans::kSomethingElse);

// While it exists, a call of this thread that obtains memory breaks no capture that is under way on any stream. Where
// the mode cannot be set, the call is made all the same.
class RelaxedCaptureScope {
 public:
  RelaxedCaptureScope(const CudaDriver& cuda, int ordinal, absl::Status* last_error);
  ~RelaxedCaptureScope();
  RelaxedCaptureScope(const RelaxedCaptureScope&) = delete;
  RelaxedCaptureScope& operator=(const RelaxedCaptureScope&) = delete;

 private:
  bool Exchange();

  const CudaDriver& cuda_;
  int ordinal_;
  absl::Status* last_error_;
  CudaCaptureMode mode_ = CudaCaptureMode::kRelaxed;
  bool is_set_ = false;
};

// A device's primary context, as it was found: after cudaDeviceReset its handle stands for another, or for none.
struct KnownContext {
  CudaDeviceId device = 0;
  CudaContext context = nullptr;
  std::uint64_t id = 0;  // cuCtxGetId; 0 where the driver, before CUDA 12.0, has none
};

// Makes a device's primary context current in this thread, and the one before it again at the end; makes no call but
// cuCtxGetCurrent where it is current already. The thread's device is pushed and popped, never set: cudaSetDevice back
// to a device that the program has not used yet would create a context there.
class CudaContextScope {
 public:
  // `refused`, if not OK, is the status, and no call is made. `restore_error` receives the error of the pop; then the
  // device's context stays current.
  CudaContextScope(const CudaDriver& cuda, const KnownContext& known, int ordinal, const absl::Status& refused,
                   absl::Status* restore_error);
  ~CudaContextScope();
  CudaContextScope(const CudaContextScope&) = delete;
  CudaContextScope& operator=(const CudaContextScope&) = delete;

  // Not OK: the context is not current, or not the one that was known, and no call should be made.
  const absl::Status& status() const { return status_; }

 private:
  void Check(const KnownContext& known);

  const CudaDriver& cuda_;
  int ordinal_;
  absl::Status* restore_error_;
  absl::Status status_;
  bool is_pushed_ = false;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_CUDA_DRIVER_H_
