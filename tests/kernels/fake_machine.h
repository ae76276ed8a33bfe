// A machine without arithmetic: the CUDA device over the fake CUDA, ops that only take their scratch, copies that are
// noted. What a Runtime does with a machine is all there to see.
#ifndef ASHLAR_TESTS_KERNELS_FAKE_MACHINE_H_
#define ASHLAR_TESTS_KERNELS_FAKE_MACHINE_H_

#include <cstring>
#include <memory>
#include <utility>

#include "allocator/device/cuda_device.h"
#include "kernels/ops/scratch.h"
#include "kernels/workloads/runtime.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::kernels {

// What the test sees and decides; it outlives the runtime.
struct FakeMachineSide {
  device::FakeCuda cuda;
  std::uint64_t copies_in = 0;   // to the device
  std::uint64_t copies_out = 0;  // to the host
  std::uint64_t streams = 0;     // made
  std::uint64_t finishes = 0;
  float value = 0;  // that every copy to the host brings
  absl::Status copy = absl::OkStatus();
  absl::Status new_stream = absl::OkStatus();
  explicit FakeMachineSide(std::uint64_t capacity_bytes)
      : cuda({.capacity_bytes = capacity_bytes, .events_complete_immediately = true}) {}
};

class FakeMachine final : public Machine {
 public:
  explicit FakeMachine(FakeMachineSide* side) : side_(*side), device_(*device::CudaDevice::Open({})) {}

  device::Device& device() override { return *device_; }
  absl::StatusOr<Stream> NewStream() override {
    if (!side_.new_stream.ok()) return side_.new_stream;
    return Stream{0x5000 + ++side_.streams};  // a handle, no number of a workload's
  }
  absl::StatusOr<std::unique_ptr<ops::Ops>> MakeOps(ops::Workspace* workspace, Stream) override {
    return std::make_unique<ops::DryOps>(workspace);
  }
  absl::Status Copy(void* to, const void* from, std::size_t bytes, Stream) override {
    if (!side_.copy.ok()) return side_.copy;
    const bool is_in = IsOnDevice(to);
    ++(is_in ? side_.copies_in : side_.copies_out);
    if (is_in == IsOnDevice(from)) return absl::InternalError("a copy that is not between host and device");
    if (!is_in) std::memcpy(to, &side_.value, bytes < sizeof(float) ? bytes : sizeof(float));
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    ++side_.finishes;
    return absl::OkStatus();
  }

 private:
  // The fake hands out addresses from 2^40 on; no process has its memory there.
  static bool IsOnDevice(const void* address) { return reinterpret_cast<std::uint64_t>(address) >> 40 == 1; }

  FakeMachineSide& side_;
  std::unique_ptr<device::CudaDevice> device_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_TESTS_KERNELS_FAKE_MACHINE_H_
