#include "kernels/workloads/world.h"

#include "absl/strings/str_cat.h"
#include "allocator/device/host_device.h"
#include "allocator/device/sim_device.h"
#include "kernels/ops/host/host_ops.h"
#include "kernels/ops/workspace.h"

namespace ashlar::kernels {
namespace {

constexpr std::uint64_t kScratchBytes = kGiB;  // address space: only what is touched takes memory

}  // namespace

// Scratch from an allocator of its own, so that the workload's sees what a framework's would.
struct World::Arithmetic {
  device::HostDevice device{{.capacity_bytes = kScratchBytes}};
  core::CachingAllocator allocator{&device, policy::Options{}};
  ops::AllocatorWorkspace workspace{&allocator, Stream{0}};
  ops::HostOps ops{&workspace};
};

absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name) {
  if (name == "sim") return DeviceKind::kSim;
  if (name == "host") return DeviceKind::kHost;
  return absl::InvalidArgumentError(absl::StrCat("there is no device '", name, "': sim, host"));
}

World::~World() = default;

absl::StatusOr<std::unique_ptr<World>> World::Make(const WorldOptions& options) {
  std::unique_ptr<World> world(new World);
  if (options.kind == DeviceKind::kSim) {
    device::SimDeviceOptions sim;
    sim.capacity_bytes = options.capacity_bytes;
    sim.address_order = options.address_order;
    sim.events_complete_immediately = true;
    world->device_ = std::make_unique<device::SimDevice>(sim);
  } else {
    world->device_ =
        std::make_unique<device::HostDevice>(device::HostDeviceOptions{.capacity_bytes = options.capacity_bytes});
    world->arithmetic_ = std::make_unique<Arithmetic>();
  }
  world->allocator_ = std::make_unique<core::CachingAllocator>(world->device_.get(), options.allocator);
  world->context_ = std::make_unique<Context>(world->allocator_.get(), Stream{0}, options.framework, options.gpu);
  world->context_->Seed(options.seed);
  if (world->arithmetic_) world->context_->set_ops(&world->arithmetic_->ops);
  return world;
}

}  // namespace ashlar::kernels
