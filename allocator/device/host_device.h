// A device whose memory is host memory: what the allocator hands out over it can be read and written by any program,
// with no GPU. It has a capacity, which is all that it ever gives; pages cost memory only once they are touched.
//
//   AllocateSegment(n)  a private anonymous mmap, aligned to and charged by the granularity
//   Reserve(n)          address space with no access: touching it is a segmentation fault; charges nothing
//   Map / Unmap         gives access to zeroed pages; takes access and pages away
//   events              host work is done when the call that does it returns, so an event is done at once; or, for
//                       programs that stand in for a GPU's asynchrony, when CompleteAllWork or a synchronise says so
//   GetMemoryInfo       capacity minus what is handed out
//
// Example:  HostDevice device({.capacity_bytes = 256 * kMiB});
// Errors: kResourceExhausted when the capacity is used up or the kernel refuses memory (ENOMEM, for instance
// vm.max_map_count); the text has the call and its errno. Address space that the kernel refuses to Reserve is
// kUnavailable: it is no memory of the device. Misuse (freeing what is not allocated, mapping twice, releasing a
// reservation that has pages) aborts, as in SimDevice.
// Destruction returns all memory: the device outlives every use of it.
// Addresses are the kernel's, so decisions that tie-break by address differ from run to run.
// Thread rule: calls are serialised by the allocator that owns the device; the memory itself is any thread's.
#ifndef ASHLAR_ALLOCATOR_DEVICE_HOST_DEVICE_H_
#define ASHLAR_ALLOCATOR_DEVICE_HOST_DEVICE_H_

#include <cstdint>
#include <map>

#include "allocator/device/address_space.h"
#include "allocator/device/device.h"
#include "allocator/device/stream_clock.h"
#include "ashlar/devices.h"

namespace ashlar::device {

using ashlar::HostDeviceOptions;

class HostDevice final : public Device {
 public:
  explicit HostDevice(HostDeviceOptions options);
  ~HostDevice() override;
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) override;
  absl::Status FreeSegment(std::uint64_t address) override;
  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) override;
  absl::Status ReleaseReservation(std::uint64_t address) override;
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override;
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override;
  MemoryInfo GetMemoryInfo() override;
  DeviceEvent RecordEvent(Stream stream) override;
  bool QueryEvent(const DeviceEvent& event) override;
  absl::Status SynchronizeEvent(const DeviceEvent& event) override;
  absl::Status SynchronizeStream(Stream stream) override;
  absl::Status MakeStreamWait(Stream stream, Stream awaited) override;
  absl::Status CopyToHost(void* to, std::uint64_t address, std::uint64_t size_bytes, Stream stream) override;
  absl::Status CopyToDevice(std::uint64_t address, const void* from, std::uint64_t size_bytes, Stream stream) override;
  void SetCapturing(bool) override {}  // host work is never captured

  // All work recorded so far, on every stream, is done.
  void CompleteAllWork() { clock_.FinishAll(); }

  std::uint64_t used_bytes() const { return used_; }

 private:
  struct Reservation {
    std::uint64_t size_bytes = 0;
    std::uint64_t mapped_bytes = 0;
    AddressSpace unmapped;
  };
  std::uint64_t FreeBytes() const { return options_.capacity_bytes - used_; }
  Reservation& ReservationOf(std::uint64_t address, std::uint64_t size_bytes);

  HostDeviceOptions options_;
  std::map<std::uint64_t, std::uint64_t> segments_;  // address -> charged bytes
  std::map<std::uint64_t, Reservation> reservations_;
  StreamClock clock_;
  std::uint64_t used_ = 0;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_HOST_DEVICE_H_
