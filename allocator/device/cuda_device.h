// A CUDA device behind the device seam: cuMemAlloc for segments, the driver's virtual memory for expandable ones,
// pooled events. No kernel, no CUDA header, no library of CUDA's: what builds with this builds without the toolkit, and
// starts without a driver (cuda_driver.h).
//
//   absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open({.ordinal = 1});
//   core::CachingAllocator allocator(device->get(), policy::Options{});
//
// Streams are cudaStream_t or CUstream handles as integers; 0 is the device's legacy default stream. A stream of
// another device, or one that its owner destroyed, is synchronised instead of waited for by event: slower, and right.
// Streams must not be under capture, but for what SetCapturing allows; memory is obtained in relaxed capture mode,
// which breaks no capture.
//
// Errors: kResourceExhausted is device memory that CUDA says is exhausted (cuMemAlloc, cuMemCreate, cuMemMap,
// cuMemSetAccess); kDataLoss, from then on for every call, which makes none to CUDA: the device was reset, the driver
// is shut down, or this is a forked child (Lost); kInternal is any other failed call, by name, code and text;
// kUnimplemented is Reserve on a device or driver without virtual memory management. What a failure leaves behind:
// allocator/device/device.h.
//
// The current context of the calling thread is after each call what it was before, and so is the runtime's last error.
// Destruction returns all memory that is still out: the device outlives every use of it.
//
// Thread rule: any thread, but calls are serialised by the allocator that owns the device.
#ifndef ASHLAR_ALLOCATOR_DEVICE_CUDA_DEVICE_H_
#define ASHLAR_ALLOCATOR_DEVICE_CUDA_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "allocator/device/cuda_driver.h"
#include "allocator/device/cuda_vmm.h"
#include "allocator/device/device.h"
#include "ashlar/devices.h"

namespace ashlar::device {

// The CUDA events of one device: created once, pooled, and given back as soon as one is known to be done. The caller
// has made the device's context current.
//
// An event that cannot be created or recorded is made up for, never lost: its stream is synchronised, and it is done;
// or, where that fails too, it is recorded at the next query or synchronise: later than asked, never earlier. Thread
// rule: not thread-safe; the device's caller serialises calls.
class CudaEvents {
 public:
  // `last_error` receives the errors that are made up for.
  CudaEvents(const CudaDriver& cuda, int ordinal, absl::Status* last_error)
      : cuda_(cuda), ordinal_(ordinal), last_error_(*last_error) {}

  DeviceEvent Record(Stream stream);
  // The same without a call: recorded at the next query or synchronise.
  DeviceEvent Postpone(Stream stream);
  // An error is no proof: false.
  bool Query(const DeviceEvent& event);
  absl::Status Synchronize(const DeviceEvent& event);
  absl::Status SynchronizeStream(Stream stream);
  // A wait that cannot be given to the stream is made up for: the caller waits instead.
  absl::Status MakeStreamWait(Stream stream, Stream awaited);

  // Destroys all events, done or not. What was recorded and not yet known to be done is done for Query.
  void DestroyAll();

 private:
  struct Entry {
    std::uint64_t sequence = 0;
    std::optional<CudaEvent> event;  // nothing = not recorded yet
  };
  using Queue = std::deque<Entry>;  // oldest first

  Entry* Find(const DeviceEvent& event);
  bool TryRecord(Entry& entry, Stream stream);
  void Retire(Stream stream, std::uint64_t last_sequence);

  const CudaDriver& cuda_;
  int ordinal_;
  absl::Status& last_error_;
  absl::flat_hash_map<std::uint64_t, Queue> queues_;  // by stream handle: recorded, not known to be done
  std::vector<CudaEvent> idle_;
  std::uint64_t sequence_ = 0;
};

using ashlar::CudaDeviceOptions;

class CudaDevice final : public Device {
 public:
  // kUnavailable: no CUDA here, see SystemCudaDriver, or no device. kInvalidArgument: no such device.
  // kFailedPrecondition: the device lacks what the options ask for. Retains the device's primary context.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(const CudaDeviceOptions& options);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) override;
  absl::Status FreeSegment(std::uint64_t address) override;
  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) override;
  absl::Status ReleaseReservation(std::uint64_t address) override;
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override;
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override;
  // Where cuMemGetInfo fails: 0 free, the total of the start, and last_error().
  MemoryInfo GetMemoryInfo() override;
  DeviceEvent RecordEvent(Stream stream) override;
  bool QueryEvent(const DeviceEvent& event) override;
  absl::Status SynchronizeEvent(const DeviceEvent& event) override;
  absl::Status SynchronizeStream(Stream stream) override;
  absl::Status MakeStreamWait(Stream stream, Stream awaited) override;
  absl::StatusOr<int> ExportPage(std::uint64_t address) override;
  absl::Status CopyToHost(void* to, std::uint64_t address, std::uint64_t size_bytes, Stream stream) override;
  absl::Status CopyToDevice(std::uint64_t address, const void* from, std::uint64_t size_bytes, Stream stream) override;
  // Page-locked, for every context.
  void* AllocateHost(std::uint64_t size_bytes) override;
  void FreeHost(void* memory) override;
  void SetCapturing(bool is_capturing) override { is_capturing_ = is_capturing; }
  // By a driver of CUDA 12.3 or later.
  std::optional<CapturePoint> FindCapture(Stream stream) override;
  std::optional<std::vector<std::uint64_t>> NodesBefore(std::uint64_t node) override;
  absl::Status Lost() const override;

  // What a page of an expandable segment must be a multiple of, as the driver says; 0 = the device, or the driver, has
  // no virtual memory management.
  std::uint64_t granularity_bytes() const { return granularity_bytes_; }
  // Memory that CUDA refused to take back; tried again before memory is obtained the next time.
  std::uint64_t unreturned_bytes() const { return unreturned_segment_bytes_ + vmm_.leftover_bytes(); }
  // The last error of a call, also of one that was made up for; OK = none so far.
  const absl::Status& last_error() const { return last_error_; }

 private:
  struct Facts {
    CudaAllocation pages;  // of expandable segments
    bool must_share = false;
    KnownContext known;
    std::uint64_t granularity_bytes = 0;
    std::uint64_t total_bytes = 0;
  };
  CudaDevice(const CudaDriver& cuda, const Facts& facts);
  static absl::Status ReadFacts(const CudaDriver& cuda, Facts& facts);
  static absl::Status ReadGranularity(const CudaDriver& cuda, Facts& facts);

  // Every call begins with it.
  CudaContextScope Enter();
  absl::Status Noted(absl::Status status);
  absl::Status ReturnSegment(std::uint64_t address, std::uint64_t size_bytes);
  void ReturnLeftovers();
  void ReturnAll();
  absl::Status NoVirtualMemory() const;
  absl::Status NoCopies() const;

  const CudaDriver& cuda_;
  const int ordinal_;
  const KnownContext known_;
  const std::uint64_t granularity_bytes_;
  const std::uint64_t total_bytes_;
  const std::uint64_t fork_count_;  // of the process that opened the device
  absl::Status lost_;
  absl::Status last_error_;
  bool is_capturing_ = false;
  CudaVmm vmm_;
  CudaEvents events_;
  std::map<std::uint64_t, std::uint64_t> segments_;             // address -> size
  std::map<std::uint64_t, std::uint64_t> unreturned_segments_;  // that cuMemFree did not take
  std::uint64_t unreturned_segment_bytes_ = 0;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_CUDA_DEVICE_H_
