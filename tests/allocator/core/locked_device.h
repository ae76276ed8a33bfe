// A simulated device that tests may drive (complete its work, ask what it holds) while an allocator uses it.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_LOCKED_DEVICE_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_LOCKED_DEVICE_H_

#include <mutex>

#include "allocator/device/sim_device.h"

namespace ashlar::core {

class LockedDevice final : public device::Device {
 public:
  explicit LockedDevice(const device::SimDeviceOptions& options) : device_(options) {}

  absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.AllocateSegment(size_bytes);
  }
  absl::Status FreeSegment(std::uint64_t address) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.FreeSegment(address);
  }
  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.Reserve(size_bytes);
  }
  absl::Status ReleaseReservation(std::uint64_t address) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.ReleaseReservation(address);
  }
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.Map(address, size_bytes, page_bytes);
  }
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.Unmap(address, size_bytes, page_bytes);
  }
  device::MemoryInfo GetMemoryInfo() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.GetMemoryInfo();
  }
  device::DeviceEvent RecordEvent(Stream stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.RecordEvent(stream);
  }
  bool QueryEvent(const device::DeviceEvent& event) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.QueryEvent(event);
  }
  absl::Status SynchronizeEvent(const device::DeviceEvent& event) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.SynchronizeEvent(event);
  }
  absl::Status SynchronizeStream(Stream stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.SynchronizeStream(stream);
  }
  absl::Status MakeStreamWait(Stream stream, Stream awaited) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.MakeStreamWait(stream, awaited);
  }
  void SetCapturing(bool is_capturing) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    device_.SetCapturing(is_capturing);
  }

  void CompleteAllWork() {
    const std::lock_guard<std::mutex> lock(mutex_);
    device_.CompleteAllWork();
  }
  std::uint64_t used_bytes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return device_.used_bytes();
  }

 private:
  std::mutex mutex_;
  device::SimDevice device_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_LOCKED_DEVICE_H_
