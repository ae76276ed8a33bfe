// A CUDA of our own for tests: the calls that CudaDevice makes, with several devices, a capacity, events that complete
// when told to, and failures on demand. It is stricter than the real one: misuse aborts with the CUDA call's name
// ("fake CUDA: cudaFree: ..."), and so does destruction while anything is still out.
//
//   FakeCuda cuda({.device_count = 2, .capacity_bytes = kGiB});
//   cuda.FailCall(3, 999);  // the fourth call from now answers 999 and does nothing
//   auto device = CudaDevice::OpenWith(&cuda, {.ordinal = 1});
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

#include "allocator/device/cuda_api.h"
#include "allocator/device/stream_clock.h"

namespace ashlar::device {

struct FakeCudaOptions {
  int device_count = 1;
  std::uint64_t capacity_bytes = kGiB;  // of each device
  std::uint64_t granularity_bytes = 2 * kMiB;
  bool events_complete_immediately = false;
  std::set<CudaAttribute> lacks = {};  // attributes that every device answers 0
};

class FakeCuda final : public CudaApi {
 public:
  explicit FakeCuda(FakeCudaOptions options);
  ~FakeCuda() override;  // aborts when anything is still out
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  // --- the test's side ---
  // The call number `n` from now (0 = the next) answers `code` and does nothing. The calls that read or make texts of
  // errors do not count.
  void FailCall(std::uint64_t n, int code);
  // The same, counting only calls that do something: not cuCtxGetCurrent, cuCtxGetId and the capture mode.
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
  CudaContext ContextOf(int ordinal) const { return CudaContext{0xc000u + static_cast<unsigned>(ordinal)}; }
  bool HasContext(int ordinal) const { return devices_[static_cast<std::size_t>(ordinal)].retain_count > 0; }

  void CompleteAllWork() { clock_.FinishAll(); }
  // cudaDeviceReset: everything of that device is gone, and so is its context; `is_remade`: somebody has used the
  // device since, and a new context has the old one's handle.
  void ResetDevice(int ordinal, bool is_remade);
  // A stream of the program is being captured, in the mode that forbids most.
  void SetCapturing(bool is_capturing) { is_capturing_ = is_capturing; }
  void DestroyStream(Stream stream) { destroyed_.insert(stream); }
  // The stream is of that device; others are of any.
  void PutStreamOn(Stream stream, int ordinal) { stream_device_[stream] = ordinal; }
  int last_error() const { return last_error_; }
  std::uint64_t used_bytes(int ordinal = 0) const { return devices_[static_cast<std::size_t>(ordinal)].used_bytes; }
  // Mapped, and readable and writable by its device.
  bool IsAccessible(std::uint64_t address) const;
  std::size_t live_events() const { return events_.size(); }
  std::size_t live_reservations() const { return reservations_.size(); }
  const CudaMemoryKind& last_kind() const { return last_kind_; }

  // --- CUDA's side ---
  int GetDeviceCount(int* count) override;
  int Malloc(std::uint64_t* address, std::uint64_t size_bytes) override;
  int Free(std::uint64_t address) override;
  int MemGetInfo(std::uint64_t* free_bytes, std::uint64_t* total_bytes) override;
  int EventCreate(CudaEvent* event) override;
  int EventDestroy(CudaEvent event) override;
  int EventRecord(CudaEvent event, Stream stream) override;
  int EventQuery(CudaEvent event) override;
  int EventSynchronize(CudaEvent event) override;
  int StreamSynchronize(Stream stream) override;
  int StreamWaitEvent(Stream stream, CudaEvent event) override;
  int ExchangeCaptureMode(CudaCaptureMode* mode) override;
  int DeviceSynchronize() override;
  int GetLastError() override;
  std::string RuntimeErrorText(int code) override;
  int PrimaryContextRetain(CudaContext* context, int ordinal) override;
  int PrimaryContextRelease(int ordinal) override;
  int ContextGetCurrent(CudaContext* context) override;
  int ContextGetId(CudaContext context, std::uint64_t* id) override;
  int ContextPush(CudaContext context) override;
  int ContextPop(CudaContext* context) override;
  int GetAttribute(int* value, CudaAttribute attribute, int ordinal) override;
  int GetGranularity(std::uint64_t* size_bytes, const CudaMemoryKind& kind) override;
  int AddressReserve(std::uint64_t* address, std::uint64_t size_bytes) override;
  int AddressFree(std::uint64_t address, std::uint64_t size_bytes) override;
  int MemCreate(CudaHandle* handle, std::uint64_t size_bytes, const CudaMemoryKind& kind) override;
  int MemRelease(CudaHandle handle) override;
  int MemMap(std::uint64_t address, std::uint64_t size_bytes, CudaHandle handle) override;
  int MemUnmap(std::uint64_t address, std::uint64_t size_bytes) override;
  int MemSetAccess(std::uint64_t address, std::uint64_t size_bytes, int ordinal) override;
  std::string DriverErrorText(int code) override;

 private:
  struct PerDevice {
    std::uint64_t used_bytes = 0;
    int retain_count = 0;
    std::uint64_t context_id = 0;
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
  };
  struct Mapping {
    std::uint64_t size_bytes = 0;
    CudaHandle handle{};
    bool has_access = false;
  };
  struct Event {
    int ordinal = 0;
    bool is_recorded = false;
    DeviceEvent point;
  };

  // The failure that this call was told to answer, if any.
  std::optional<int> Fails(const char* call);
  int Runtime(int code);
  int CurrentDevice(const char* call) const;
  // Aborts where the call breaks a capture.
  void RequireNoCapture(const char* call) const;
  Event& LiveEvent(const char* call, CudaEvent event);
  bool IsDone(const Event& event) const;
  bool Charge(int ordinal, std::uint64_t size_bytes);
  void Drop(CudaHandle handle);

  FakeCudaOptions options_;
  std::vector<PerDevice> devices_;
  std::vector<CudaContext> contexts_ = {CudaContext{}};  // the stack; the last is current
  std::map<std::uint64_t, Segment> segments_;
  std::map<std::uint64_t, std::uint64_t> reservations_;
  std::map<std::uint64_t, Mapping> mappings_;
  std::map<CudaHandle, Memory> memory_;
  std::map<CudaEvent, Event> events_;
  StreamClock clock_;
  std::set<Stream> destroyed_;
  std::map<Stream, int> stream_device_;
  std::map<std::string, std::uint64_t> call_counts_;
  std::uint64_t next_address_ = std::uint64_t{1} << 40;
  std::uint64_t next_id_ = 1;
  bool is_capturing_ = false;
  CudaCaptureMode capture_mode_ = CudaCaptureMode::kGlobal;
  std::uint64_t calls_ = 0;
  std::optional<std::uint64_t> fail_at_;
  std::optional<std::uint64_t> fail_in_work_;  // calls that do something before the one that fails
  bool fails_for_good_ = false;
  int fail_code_ = 0;
  bool has_failed_ = false;
  std::string failed_call_;
  int last_error_ = 0;
  CudaMemoryKind last_kind_;
};

}  // namespace ashlar::device

#endif  // ASHLAR_TESTS_FAKE_CUDA_FAKE_CUDA_H_
