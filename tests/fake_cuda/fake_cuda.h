// A CUDA driver of our own for tests: the libcuda.so.1 that a test program finds, with several devices, a capacity,
// events that complete when told to, and failures on demand. CudaDevice reaches it as it reaches the real one, by
// looking up each call (libcuda.cc). It is stricter than the real one: misuse aborts with the call's name
// ("fake CUDA: cuMemFree: ..."), and so does destruction while anything is still out.
//
//   FakeCuda cuda({.device_count = 2, .capacity_bytes = kGiB});  // from now on the driver's calls come here
//   cuda.FailCall(3, 999);  // the fourth call from now answers 999 and does nothing
//   auto device = CudaDevice::Open({.ordinal = 1});
//
// Of several the newest is called, until it goes. A program that makes none, as it looked the library up by
// LD_LIBRARY_PATH, has one of FAKE_CUDA_DEVICES devices (1) whose events complete at once.
//
// Memory is charged by the granularity and addresses are never used twice, so that a stale one is always misuse. There
// is no memory behind an address. The current context is the fake's, not the thread's: one thread at a time.
#ifndef ASHLAR_TESTS_FAKE_CUDA_FAKE_CUDA_H_
#define ASHLAR_TESTS_FAKE_CUDA_FAKE_CUDA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/device/cuda_types.h"
#include "tests/fake_cuda/fake_streams.h"

namespace ashlar::device {

struct FakeCudaOptions {
  int device_count = 1;
  std::uint64_t capacity_bytes = kGiB;  // of each device
  std::uint64_t granularity_bytes = 2 * kMiB;
  bool events_complete_immediately = false;
  std::set<CudaAttribute> lacks = {};  // attributes that every device answers 0
};

// The version that cuDriverGetVersion tells; a driver has the calls of its version.
int FakeCudaVersion();

class __attribute__((visibility("default"))) FakeCuda {
 public:
  explicit FakeCuda(FakeCudaOptions options);
  ~FakeCuda();  // aborts when anything is still out
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  // The one that the driver's calls come to.
  static FakeCuda& Called();

  // --- the test's side ---
  // The call number `n` from now (0 = the next) answers `code` and does nothing. The calls that read or make texts of
  // errors do not count.
  void FailCall(std::uint64_t n, int code);
  // The same, counting only calls that do something: not those of the context and of the
  // capture mode that come with each call.
  void FailWork(std::uint64_t n, int code);
  // Every call from the call number `n` on answers `code`: a context that is broken for good.
  void FailFrom(std::uint64_t n, int code);
  void StopFailing();
  // Whether the failure asked for has been given.
  bool has_failed() const { return has_failed_; }
  const std::string& failed_call() const { return failed_call_; }
  std::uint64_t calls() const { return calls_; }
  std::uint64_t calls_of(const std::string& name) const;

  // Nothing of the process' own: no context is current, and this is a context of no device.
  void MakeCurrent(CudaContext context) { contexts_ = {context}; }
  CudaContext current() const { return contexts_.back(); }
  static CudaContext ContextOf(int ordinal) {
    return reinterpret_cast<CudaContext>(std::uintptr_t{0xc000} + static_cast<unsigned>(ordinal));
  }
  bool HasContext(int ordinal) const { return devices_[static_cast<std::size_t>(ordinal)].retain_count > 0; }

  void CompleteAllWork() { streams_.FinishAll(); }
  // cudaDeviceReset: everything of that device is gone, and so is its context; `is_remade`: somebody has used the
  // device since, and a new context has the old one's handle.
  void ResetDevice(int ordinal, bool is_remade);
  // A stream of the program is being captured, in the mode that forbids most.
  void SetCapturing(bool is_capturing) { is_capturing_ = is_capturing; }
  // The stream is being captured, and stands after these nodes of the graph.
  void PutInCapture(Stream stream, std::uint64_t id, const std::vector<std::uint64_t>& nodes);
  void PutBefore(std::uint64_t node, const std::vector<std::uint64_t>& nodes);
  void DestroyStream(Stream stream) { destroyed_.insert(Native(stream)); }
  // The stream is of that device; others are of any.
  void PutStreamOn(Stream stream, int ordinal) { stream_device_[Native(stream)] = ordinal; }
  std::uint64_t used_bytes(int ordinal = 0) const { return devices_[static_cast<std::size_t>(ordinal)].used_bytes; }
  // Mapped, and readable and writable by its device.
  bool IsAccessible(std::uint64_t address) const;
  std::size_t live_events() const { return events_.size(); }
  std::size_t live_reservations() const { return reservations_.size(); }
  const CudaAllocation& last_kind() const { return last_kind_; }

  // --- CUDA's side: the calls of cuda_driver.h ---
  int Init();
  int DeviceGetCount(int* count);
  int DeviceGet(CudaDeviceId* device, int ordinal);
  int DeviceGetAttribute(int* value, CudaAttribute attribute, CudaDeviceId device);
  int PrimaryRetain(CudaContext* context, CudaDeviceId device);
  int PrimaryRelease(CudaDeviceId device);
  int PrimaryGetState(CudaDeviceId device, unsigned* flags, int* is_active);
  int PrimaryReset(CudaDeviceId device);
  int ContextGetCurrent(CudaContext* context);
  int ContextGetId(CudaContext context, std::uint64_t* id);
  int ContextPush(CudaContext context);
  int ContextPop(CudaContext* context);
  int ContextSynchronize();
  int MemAlloc(std::uint64_t* address, std::uint64_t size_bytes);
  int MemFree(std::uint64_t address);
  int MemGetInfo(std::uint64_t* free_bytes, std::uint64_t* total_bytes);
  int EventCreate(CudaEvent* event, unsigned flags);
  int EventDestroy(CudaEvent event);
  int EventRecord(CudaEvent event, CudaStream stream);
  int EventQuery(CudaEvent event);
  int EventSynchronize(CudaEvent event);
  int StreamSynchronize(CudaStream stream);
  int StreamWaitEvent(CudaStream stream, CudaEvent event, unsigned flags);
  int ExchangeCaptureMode(CudaCaptureMode* mode);
  int StreamGetCaptureInfo(CudaStream stream, int* status, std::uint64_t* id, const CudaNode** nodes,
                           const CudaEdge** edges, std::size_t* count);
  int GraphNodeGetDependencies(CudaNode node, CudaNode* nodes, CudaEdge* edges, std::size_t* count);
  int MemGetGranularity(std::uint64_t* size_bytes, const CudaAllocation& kind, int option);
  int MemAddressReserve(std::uint64_t* address, std::uint64_t size_bytes, std::uint64_t alignment);
  int MemAddressFree(std::uint64_t address, std::uint64_t size_bytes);
  int MemCreate(CudaHandle* handle, std::uint64_t size_bytes, const CudaAllocation& kind);
  int MemRelease(CudaHandle handle);
  // A descriptor of an empty file.
  int MemExport(int* file, CudaHandle handle, int handle_type);
  int MemMap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t offset, CudaHandle handle);
  int MemUnmap(std::uint64_t address, std::uint64_t size_bytes);
  int MemSetAccess(std::uint64_t address, std::uint64_t size_bytes, const CudaAccess& access);

 private:
  struct PerDevice {
    std::uint64_t used_bytes = 0;
    int retain_count = 0;
    std::uint64_t context_id = 0;  // 0 = there is no context
  };
  struct Segment {
    std::uint64_t charged_bytes = 0;
    int ordinal = 0;
  };
  struct Memory {  // behind a handle
    std::uint64_t size_bytes = 0;
    int ordinal = 0;
    bool is_released = false;
    int map_count = 0;
    int handle_types = 0;
  };
  struct Mapping {
    std::uint64_t size_bytes = 0;
    CudaHandle handle{};
    bool has_access = false;
  };
  struct Event {
    int ordinal = 0;
    bool is_recorded = false;
    FakeStreams::Point point = 0;
  };

  struct Capture {
    std::uint64_t id = 0;
    std::vector<CudaNode> nodes;
    std::vector<CudaEdge> edges;
  };

  // The failure that this call was told to answer, if any.
  std::optional<int> Fails(const char* call);
  static CudaStream Native(Stream stream) { return reinterpret_cast<CudaStream>(std::uintptr_t{Handle(stream)}); }
  // -1: no device has that id.
  int OrdinalOf(CudaDeviceId device) const;
  PerDevice& At(int ordinal) { return devices_[static_cast<std::size_t>(ordinal)]; }
  int CurrentDevice(const char* call) const;
  [[noreturn]] static void Misuse(const char* call, const std::string& what);
  static void Require(bool is_right, const char* call, const std::string& otherwise);
  // Each aborts where the call breaks a capture, or asks for memory that nobody should.
  void RequireNoCapture(const char* call) const;
  void RequirePlace(const char* call, const CudaLocation& location) const;
  void RequireKind(const char* call, const CudaAllocation& kind) const;
  Event& LiveEvent(const char* call, CudaEvent event);
  bool IsDone(const Event& event) const;
  bool Charge(int ordinal, std::uint64_t size_bytes);
  void Drop(CudaHandle handle);

  FakeCudaOptions options_;
  std::vector<PerDevice> devices_;
  std::vector<CudaContext> contexts_ = {nullptr};  // the stack; the last is current
  std::map<std::uint64_t, Segment> segments_;
  std::map<std::uint64_t, std::uint64_t> reservations_;
  std::map<std::uint64_t, Mapping> mappings_;
  std::map<CudaHandle, Memory> memory_;
  std::map<CudaEvent, Event> events_;
  FakeStreams streams_;
  std::set<CudaStream> destroyed_;
  std::map<CudaStream, int> stream_device_;
  std::map<std::string, std::uint64_t> call_counts_;
  std::uint64_t next_address_ = std::uint64_t{1} << 40;
  std::uint64_t next_id_ = 1;
  bool is_capturing_ = false;
  std::map<CudaStream, Capture> captures_;
  std::map<CudaNode, std::vector<CudaNode>> before_;
  CudaCaptureMode capture_mode_ = CudaCaptureMode::kGlobal;
  std::uint64_t calls_ = 0;
  std::optional<std::uint64_t> fail_at_;
  std::optional<std::uint64_t> fail_in_work_;  // calls that do something before the one that fails
  bool fails_for_good_ = false;
  int fail_code_ = 0;
  bool has_failed_ = false;
  std::string failed_call_;
  CudaAllocation last_kind_;
};

}  // namespace ashlar::device

#endif  // ASHLAR_TESTS_FAKE_CUDA_FAKE_CUDA_H_
