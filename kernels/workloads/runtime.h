// The runtime a workload runs in: a device, an allocator over it and, but in simulation, arithmetic. In every runtime
// the allocator sees the same requests: the arithmetic's own scratch comes from elsewhere.
//
//   sim    a simulated device: allocations alone, no arithmetic
//   host   host memory and float arithmetic on the CPU; events are done at once
//   cuda   a GPU and its arithmetic, queued on its streams (kernels/workloads/cuda/cuda_machine.h)
//
//   absl::StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Make({.kind = DeviceKind::kHost, .capacity_bytes = 64 *
//   kMiB});
//   workload.run(**runtime, flags, on_progress);
//   absl::Status status = (*runtime)->Finish();
//
// A workload names streams by numbers from 0, and says which waits for which: work of one stream alone is in order.
#ifndef ASHLAR_KERNELS_WORKLOADS_RUNTIME_H_
#define ASHLAR_KERNELS_WORKLOADS_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/address_space.h"
#include "allocator/device/device.h"
#include "allocator/policy/options.h"
#include "kernels/ops/ops.h"
#include "kernels/tensor/context.h"
#include "kernels/tensor/memory.h"

namespace ashlar::kernels {

// A device that computes beside the host, for a Runtime: memory, streams, and ops and copies on them. Work is queued,
// and done after the call that gave it.
//
//   absl::StatusOr<std::unique_ptr<Machine>> machine = OpenCudaMachine();  // kernels/workloads/cuda/cuda_machine.h
//   absl::StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Make({.kind = DeviceKind::kCuda}, *std::move(machine));
//
// One thread.
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

// The ops of a machine as one: each runs on the memory's current stream, with scratch in that stream's order from an
// allocator of its own.
class MachineOps final : public ops::Ops {
 public:
  // All outlive it.
  MachineOps(Machine* machine, core::CachingAllocator* scratch, const TensorMemory* memory)
      : Ops(nullptr), machine_(machine), scratch_(scratch), memory_(memory) {}

 protected:
#define ASHLAR_OVERRIDE_DO(Op) absl::Status Do(const ops::Op& op) override;
  ASHLAR_FOR_EACH_OP(ASHLAR_OVERRIDE_DO)
#undef ASHLAR_OVERRIDE_DO

 private:
  struct OnStream {
    ops::AllocatorWorkspace workspace;
    std::unique_ptr<ops::Ops> ops;
  };
  template <typename Op>
  absl::Status RunOnStream(const Op& op);
  absl::StatusOr<ops::Ops*> OpsOf(Stream stream);

  Machine* machine_;
  core::CachingAllocator* scratch_;
  const TensorMemory* memory_;
  std::map<Stream, OnStream> streams_;
};

enum class DeviceKind : std::uint8_t { kSim, kHost, kCuda };
// "sim", "host", "cuda". Errors list them.
absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name);

// Of a runtime that has no memory of its own to count.
inline constexpr std::uint64_t kUsualCapacityBytes = 16 * kGiB;

struct RuntimeOptions {
  DeviceKind kind = DeviceKind::kSim;
  // All that the allocator may ever have. Unless given: kUsualCapacityBytes; on a machine, all its memory.
  std::optional<std::uint64_t> capacity_bytes = {};
  policy::Options allocator = {};
  device::AddressOrder address_order = device::AddressOrder::kAscending;  // of a simulated device
  Framework framework = {};
  GpuKind gpu = {};
  std::uint64_t seed = 0;
};

class Runtime {
 public:
  // A machine is given for kCuda, and for no other. InvalidArgument: it has less memory than the capacity.
  static absl::StatusOr<std::unique_ptr<Runtime>> Make(const RuntimeOptions& options,
                                                       std::unique_ptr<Machine> machine = nullptr);
  ~Runtime();

  Context& context() { return *context_; }
  core::CachingAllocator& allocator() { return *allocator_; }
  device::Device& device() { return *device_; }
  std::uint64_t capacity_bytes() const { return capacity_bytes_; }

  // The stream of that number. Where it cannot be made the context's memory has failed, and it is Stream{0}.
  Stream StreamOf(std::uint64_t number);
  // What `stream` is given from now on runs after what `awaited` was given so far. Only a machine has to be told: to
  // the others work takes no time.
  void MakeStreamWait(Stream stream, Stream awaited);
  // Waits for all work; an error that it ended in.
  absl::Status Finish();

 private:
  Runtime() = default;
  struct HostArithmetic;
  struct MachineArithmetic;
  absl::Status UseMachine(const RuntimeOptions& options);

  std::unique_ptr<Machine> machine_;
  std::unique_ptr<device::Device> own_device_;  // not of a machine
  device::Device* device_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
  std::unique_ptr<core::CachingAllocator> allocator_;
  std::unique_ptr<HostArithmetic> host_;
  std::unique_ptr<MachineArithmetic> beside_host_;
  std::vector<Stream> streams_ = {Stream{0}};  // of a machine, by number
  std::unique_ptr<Context> context_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_RUNTIME_H_
