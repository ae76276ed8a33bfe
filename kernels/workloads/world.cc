#include "kernels/workloads/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/device/host_device.h"
#include "allocator/device/sim_device.h"
#include "kernels/ops/host/host_ops.h"
#include "kernels/ops/workspace.h"
#include "kernels/workloads/machine_ops.h"

namespace ashlar::kernels {
namespace {

constexpr std::uint64_t kScratchBytes = kGiB;  // address space: only what is touched takes memory

std::unique_ptr<device::Device> MakeDevice(const WorldOptions& options, std::uint64_t capacity_bytes) {
  if (options.kind == DeviceKind::kHost) {
    return std::make_unique<device::HostDevice>(device::HostDeviceOptions{.capacity_bytes = capacity_bytes});
  }
  device::SimDeviceOptions sim;
  sim.capacity_bytes = capacity_bytes;
  sim.address_order = options.address_order;
  sim.events_complete_immediately = true;
  return std::make_unique<device::SimDevice>(sim);
}

}  // namespace

// Scratch from an allocator of its own, so that the workload's sees what a framework's would.
struct World::HostArithmetic {
  device::HostDevice device{{.capacity_bytes = kScratchBytes}};
  core::CachingAllocator allocator{&device, policy::Options{}};
  ops::AllocatorWorkspace workspace{&allocator, Stream{0}};
  ops::HostOps ops{&workspace};
};

// On the machine's own device, beside the workload's.
struct World::MachineArithmetic {
  core::CachingAllocator allocator;
  MachineOps ops;
  MachineArithmetic(Machine* machine, const Memory* memory)
      : allocator(&machine->device(), policy::Options{}), ops(machine, &allocator, memory) {}
};

absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name) {
  if (name == "sim") return DeviceKind::kSim;
  if (name == "host") return DeviceKind::kHost;
  if (name == "cuda") return DeviceKind::kCuda;
  return absl::InvalidArgumentError(absl::StrCat("there is no device '", name, "': sim, host, cuda"));
}

World::~World() = default;

absl::StatusOr<std::unique_ptr<World>> World::Make(const WorldOptions& options, std::unique_ptr<Machine> machine) {
  ASHLAR_CHECK((options.kind == DeviceKind::kCuda) == (machine != nullptr));
  std::unique_ptr<World> world(new World);
  world->machine_ = std::move(machine);
  if (world->machine_) {
    world->device_ = &world->machine_->device();
  } else {
    world->capacity_bytes_ = options.capacity_bytes.value_or(kUsualCapacityBytes);
    world->own_device_ = MakeDevice(options, world->capacity_bytes_);
    world->device_ = world->own_device_.get();
  }
  world->allocator_ = std::make_unique<core::CachingAllocator>(world->device_, options.allocator);
  world->context_ = std::make_unique<Context>(world->allocator_.get(), Stream{0}, options.framework, options.gpu);
  world->context_->Seed(options.seed);
  if (options.kind == DeviceKind::kHost) {
    world->host_ = std::make_unique<HostArithmetic>();
    world->context_->set_ops(&world->host_->ops);
  } else if (world->machine_) {
    if (absl::Status status = world->UseMachine(options); !status.ok()) return status;
  }
  return world;
}

absl::Status World::UseMachine(const WorldOptions& options) {
  const std::uint64_t total = device_->GetMemoryInfo().total_bytes;
  capacity_bytes_ = options.capacity_bytes.value_or(total);
  if (capacity_bytes_ > total) {
    return absl::InvalidArgumentError(
        absl::StrCat(FormatBytes(capacity_bytes_), " is more than the ", FormatBytes(total), " that the device has"));
  }
  if (capacity_bytes_ < total) {
    const std::uint64_t limit = options.allocator.memory_limit_bytes.value_or(capacity_bytes_);
    allocator_->SetMemoryLimit(std::min(limit, capacity_bytes_));
  }
  const Memory* memory = &context_->memory();
  beside_host_ = std::make_unique<MachineArithmetic>(machine_.get(), memory);
  context_->set_ops(&beside_host_->ops);
  context_->set_copy([this, memory](void* to, const void* from, std::size_t bytes) {
    return machine_->Copy(to, from, bytes, memory->stream());
  });
  return absl::OkStatus();
}

Stream World::StreamOf(std::uint64_t number) {
  if (machine_ == nullptr) return Stream{number};
  while (streams_.size() <= number) {
    const absl::StatusOr<Stream> made = machine_->NewStream();
    if (!made.ok()) {
      context_->memory().Fail(made.status());
      return Stream{0};
    }
    streams_.push_back(*made);
  }
  return streams_[number];
}

void World::MakeStreamWait(Stream stream, Stream awaited) {
  if (machine_ == nullptr || stream == awaited) return;
  if (absl::Status status = device_->MakeStreamWait(stream, awaited); !status.ok()) {
    context_->memory().Fail(std::move(status));
  }
}

absl::Status World::Finish() { return machine_ == nullptr ? absl::OkStatus() : machine_->Finish(); }

}  // namespace ashlar::kernels
