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

#include <cstdint>
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
#include "kernels/tensor/context.h"
#include "kernels/workloads/machine.h"

namespace ashlar::kernels {

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
  Gpu gpu = {};
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
