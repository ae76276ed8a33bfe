#include "kernels/workloads/runtime.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/device/host_device.h"
#include "allocator/device/sim_device.h"
#include "kernels/ops/host/host_ops.h"
#include "kernels/ops/ops.h"

namespace ashlar::kernels {

absl::StatusOr<ops::Ops*> MachineOps::OpsOf(Stream stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second.ops.get();
  OnStream& made = streams_.try_emplace(stream, OnStream{{scratch_, stream}, nullptr}).first->second;
  absl::StatusOr<std::unique_ptr<ops::Ops>> ops = machine_->MakeOps(&made.workspace, stream);
  if (!ops.ok()) {
    streams_.erase(stream);
    return ops.status();
  }
  made.ops = *std::move(ops);
  return made.ops.get();
}

// Scratch that is not there is no answer to a request of the workload's.
template <typename Op>
absl::Status MachineOps::RunOnStream(const Op& op) {
  const absl::StatusOr<ops::Ops*> ops = OpsOf(memory_->stream());
  if (!ops.ok()) return ops.status();
  absl::Status status = (*ops)->Run(op);
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(
      absl::StrCat(Op::kName, ": the device has no memory left for scratch beside the workload's: give the workload a ",
                   "smaller --capacity"));
}

#define ASHLAR_DO(Op) \
  absl::Status MachineOps::Do(const ops::Op& op) { return RunOnStream(op); }
ASHLAR_FOR_EACH_OP(ASHLAR_DO)
#undef ASHLAR_DO

namespace {

constexpr std::uint64_t kScratchBytes = kGiB;  // address space: only what is touched takes memory

std::unique_ptr<device::Device> MakeDevice(const RuntimeOptions& options, std::uint64_t capacity_bytes) {
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
struct Runtime::HostArithmetic {
  device::HostDevice device{{.capacity_bytes = kScratchBytes}};
  core::CachingAllocator allocator{&device, policy::Options{}};
  ops::AllocatorWorkspace workspace{&allocator, Stream{0}};
  ops::HostOps ops{&workspace};
};

// On the machine's own device, beside the workload's.
struct Runtime::MachineArithmetic {
  core::CachingAllocator allocator;
  MachineOps ops;
  MachineArithmetic(Machine* machine, const TensorMemory* memory)
      : allocator(&machine->device(), policy::Options{}), ops(machine, &allocator, memory) {}
};

absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name) {
  if (name == "sim") return DeviceKind::kSim;
  if (name == "host") return DeviceKind::kHost;
  if (name == "cuda") return DeviceKind::kCuda;
  return absl::InvalidArgumentError(absl::StrCat("there is no device '", name, "': sim, host, cuda"));
}

Runtime::~Runtime() = default;

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Make(const RuntimeOptions& options,
                                                       std::unique_ptr<Machine> machine) {
  ASHLAR_CHECK((options.kind == DeviceKind::kCuda) == (machine != nullptr));
  std::unique_ptr<Runtime> runtime(new Runtime);
  runtime->machine_ = std::move(machine);
  if (runtime->machine_) {
    runtime->device_ = &runtime->machine_->device();
  } else {
    runtime->capacity_bytes_ = options.capacity_bytes.value_or(kUsualCapacityBytes);
    runtime->own_device_ = MakeDevice(options, runtime->capacity_bytes_);
    runtime->device_ = runtime->own_device_.get();
  }
  runtime->allocator_ = std::make_unique<core::CachingAllocator>(runtime->device_, options.allocator);
  runtime->context_ = std::make_unique<Context>(runtime->allocator_.get(), Stream{0}, options.framework, options.gpu);
  runtime->context_->Seed(options.seed);
  if (options.kind == DeviceKind::kHost) {
    runtime->host_ = std::make_unique<HostArithmetic>();
    runtime->context_->set_ops(&runtime->host_->ops);
  } else if (runtime->machine_) {
    if (absl::Status status = runtime->UseMachine(options); !status.ok()) return status;
  }
  return runtime;
}

absl::Status Runtime::UseMachine(const RuntimeOptions& options) {
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
  const TensorMemory* memory = &context_->memory();
  beside_host_ = std::make_unique<MachineArithmetic>(machine_.get(), memory);
  context_->set_ops(&beside_host_->ops);
  context_->set_copy([this, memory](void* to, const void* from, std::size_t bytes) {
    return machine_->Copy(to, from, bytes, memory->stream());
  });
  return absl::OkStatus();
}

Stream Runtime::StreamOf(std::uint64_t number) {
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

void Runtime::MakeStreamWait(Stream stream, Stream awaited) {
  if (machine_ == nullptr || stream == awaited) return;
  if (absl::Status status = device_->MakeStreamWait(stream, awaited); !status.ok()) {
    context_->memory().Fail(std::move(status));
  }
}

absl::Status Runtime::Finish() { return machine_ == nullptr ? absl::OkStatus() : machine_->Finish(); }

}  // namespace ashlar::kernels
