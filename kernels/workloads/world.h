// The world a workload runs in: a device, an allocator over it and, on the host, arithmetic. In every world the
// allocator sees the same requests: the arithmetic's own scratch comes from elsewhere.
//
//   sim    a simulated device: allocations alone, no arithmetic
//   host   host memory and float arithmetic on the CPU; events are done at once
//
//   absl::StatusOr<std::unique_ptr<World>> world = World::Make({.kind = DeviceKind::kHost, .capacity_bytes = 64 *
//   kMiB});
#ifndef ASHLAR_KERNELS_WORKLOADS_WORLD_H_
#define ASHLAR_KERNELS_WORKLOADS_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/address_space.h"
#include "allocator/device/device.h"
#include "allocator/policy/options.h"
#include "kernels/tensor/context.h"

namespace ashlar::kernels {

enum class DeviceKind : std::uint8_t { kSim, kHost };
// "sim", "host". Errors list them.
absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name);

struct WorldOptions {
  DeviceKind kind = DeviceKind::kSim;
  std::uint64_t capacity_bytes = 16 * kGiB;  // all that the allocator may ever have
  policy::Options allocator = {};
  device::AddressOrder address_order = device::AddressOrder::kAscending;  // of a simulated device
  Framework framework = {};
  Gpu gpu = {};
  std::uint64_t seed = 0;
};

class World {
 public:
  static absl::StatusOr<std::unique_ptr<World>> Make(const WorldOptions& options);
  ~World();

  Context& context() { return *context_; }
  core::CachingAllocator& allocator() { return *allocator_; }
  device::Device& device() { return *device_; }

 private:
  World() = default;
  struct Arithmetic;

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<core::CachingAllocator> allocator_;
  std::unique_ptr<Arithmetic> arithmetic_;
  std::unique_ptr<Context> context_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_WORLD_H_
