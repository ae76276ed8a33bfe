// A device that computes beside the host, for a Runtime: memory, streams, and ops and copies on them. Work is queued,
// and done after the call that gave it.
//
//   absl::StatusOr<std::unique_ptr<Machine>> machine = OpenCudaMachine();  // kernels/workloads/cuda/cuda_machine.h
//   absl::StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Make({.kind = DeviceKind::kCuda}, *std::move(machine));
//
// One thread.
#ifndef ASHLAR_KERNELS_WORKLOADS_MACHINE_H_
#define ASHLAR_KERNELS_WORKLOADS_MACHINE_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "allocator/device/device.h"
#include "kernels/ops/ops.h"
#include "kernels/ops/workspace.h"

namespace ashlar::kernels {

class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  virtual device::Device& device() = 0;
  // A stream that waits for no other; the machine ends it. Stream{0} is there from the start.
  virtual absl::StatusOr<Stream> NewStream() = 0;
  // The workspace hands out memory of the device in the stream's order, and outlives the ops.
  virtual absl::StatusOr<std::unique_ptr<ops::Ops>> MakeOps(ops::Workspace* workspace, Stream stream) = 0;
  // Between host and device memory, after what the stream was given so far; done when it returns.
  virtual absl::Status Copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
  // Waits for all work; the error of work that failed, which no other call needs to have told.
  virtual absl::Status Finish() = 0;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_MACHINE_H_
