// Host memory behind a device of which any one call can be made to fail, counted over all kinds of calls. A failure
// leaves behind what ashlar/device.h says: a copy that fails has written garbage, and what was to be taken back is
// gone.
//
//   FaultyDevice device({.capacity_bytes = 256 * kMiB});
//   device.FailIn(3);                                  // the fourth call from now
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_FAULTY_DEVICE_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_FAULTY_DEVICE_H_

#include <fcntl.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/device/host_device.h"

namespace ashlar::core {

class FaultyDevice final : public device::Device {
 public:
  explicit FaultyDevice(const device::HostDeviceOptions& options) : host_(options) {}

  void FailIn(std::uint64_t calls) { fail_in_ = calls; }
  void FailNoMore() { fail_in_.reset(); }
  // As a driver without it says.
  void LackVirtualMemory() { lacks_virtual_memory_ = true; }
  // Of the failure that came last; "": there was none.
  const std::string& failed_call() const { return failed_call_; }
  std::uint64_t used_bytes() const { return host_.used_bytes(); }
  // Obtained by AllocateHost and not given back.
  std::uint64_t host_memories() const { return host_memories_; }
  std::uint64_t copied_bytes() const { return copied_bytes_; }
  void CompleteAllWork() { host_.CompleteAllWork(); }

  absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) override {
    if (absl::Status status = Fails("AllocateSegment"); !status.ok()) return status;
    return host_.AllocateSegment(size_bytes);
  }
  absl::Status FreeSegment(std::uint64_t address) override {
    const absl::Status status = host_.FreeSegment(address);
    return status.ok() ? Fails("FreeSegment") : status;
  }
  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) override {
    if (absl::Status status = Fails("Reserve"); !status.ok()) return status;
    if (lacks_virtual_memory_) return absl::UnimplementedError("no virtual memory management");
    return host_.Reserve(size_bytes);
  }
  absl::Status ReleaseReservation(std::uint64_t address) override {
    const absl::Status status = host_.ReleaseReservation(address);
    return status.ok() ? Fails("ReleaseReservation") : status;
  }
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    if (absl::Status status = Fails("Map"); !status.ok()) return status;
    return host_.Map(address, size_bytes, page_bytes);
  }
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    const absl::Status status = host_.Unmap(address, size_bytes, page_bytes);
    return status.ok() ? Fails("Unmap") : status;
  }
  device::MemoryInfo GetMemoryInfo() override { return host_.GetMemoryInfo(); }
  device::DeviceEvent RecordEvent(Stream stream) override { return host_.RecordEvent(stream); }
  bool QueryEvent(const device::DeviceEvent& event) override { return host_.QueryEvent(event); }
  absl::Status SynchronizeEvent(const device::DeviceEvent& event) override {
    if (absl::Status status = Fails("SynchronizeEvent"); !status.ok()) return status;
    return host_.SynchronizeEvent(event);
  }
  absl::Status SynchronizeStream(Stream stream) override {
    if (absl::Status status = Fails("SynchronizeStream"); !status.ok()) return status;
    return host_.SynchronizeStream(stream);
  }
  absl::Status MakeStreamWait(Stream stream, Stream awaited) override { return host_.MakeStreamWait(stream, awaited); }
  absl::Status CopyToHost(void* to, std::uint64_t address, std::uint64_t size_bytes, Stream stream) override {
    if (absl::Status status = Fails("CopyToHost"); !status.ok()) {
      std::memset(to, 0x5a, size_bytes);
      return status;
    }
    copied_bytes_ += size_bytes;
    return host_.CopyToHost(to, address, size_bytes, stream);
  }
  absl::Status CopyToDevice(std::uint64_t address, const void* from, std::uint64_t size_bytes, Stream stream) override {
    if (absl::Status status = Fails("CopyToDevice"); !status.ok()) {
      std::memset(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), 0x5a, size_bytes);
      return status;
    }
    copied_bytes_ += size_bytes;
    return host_.CopyToDevice(address, from, size_bytes, stream);
  }
  void* AllocateHost(std::uint64_t size_bytes) override {
    if (!Fails("AllocateHost").ok()) return nullptr;
    ++host_memories_;
    return host_.AllocateHost(size_bytes);
  }
  void FreeHost(void* memory) override {
    --host_memories_;
    host_.FreeHost(memory);
  }
  // Some file: who has it is another process's matter.
  absl::StatusOr<int> ExportPage(std::uint64_t) override { return open("/dev/null", O_RDWR | O_CLOEXEC); }
  void SetCapturing(bool is_capturing) override { host_.SetCapturing(is_capturing); }

 private:
  absl::Status Fails(const char* call) {
    if (!fail_in_.has_value() || (*fail_in_)-- > 0) return absl::OkStatus();
    fail_in_.reset();
    failed_call_ = call;
    return absl::InternalError(absl::StrCat("injected: ", call));
  }

  device::HostDevice host_;
  bool lacks_virtual_memory_ = false;
  std::optional<std::uint64_t> fail_in_;
  std::string failed_call_;
  std::uint64_t host_memories_ = 0;
  std::uint64_t copied_bytes_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_FAULTY_DEVICE_H_
