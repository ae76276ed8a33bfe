// Opens and closes allocators of the caller's own.
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/c/open.h"
#include "allocator/c/process.h"
#include "ashlar/devices.h"

namespace ashlar::c {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const ashlar_open_options& wanted) {
  switch (wanted.memory) {
    case ASHLAR_MEMORY_CUDA:
      return OpenCudaDevice({.ordinal = wanted.device});
    case ASHLAR_MEMORY_HOST: {
      HostDeviceOptions options;
      if (wanted.capacity_bytes != 0) options.capacity_bytes = wanted.capacity_bytes;
      return MakeHostDevice(options);
    }
    case ASHLAR_MEMORY_SIMULATED: {
      SimulatedDeviceOptions options;
      if (wanted.capacity_bytes != 0) options.capacity_bytes = wanted.capacity_bytes;
      return MakeSimulatedDevice(options);
    }
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("ashlar_open: memory is ", wanted.memory, ", which is none of ASHLAR_MEMORY_..."));
  }
}

// What the caller's struct has of it; the rest is as if it were 0.
ashlar_open_options Read(const ashlar_open_options& given) {
  ashlar_open_options out{};
  std::memcpy(&out, &given, given.struct_size < sizeof(out) ? given.struct_size : sizeof(out));
  return out;
}

}  // namespace

absl::StatusOr<Options> OptionsOf(const char* conf) {
  return conf == nullptr ? Options::FromEnvironment() : Options::Parse(conf);
}

absl::StatusOr<std::unique_ptr<ashlar_allocator>> Open(const ashlar_open_options& wanted) {
  absl::StatusOr<Options> options = OptionsOf(wanted.conf);
  if (!options.ok()) return std::move(options).status();
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(wanted);
  if (!device.ok()) return std::move(device).status();
  const int ordinal = wanted.memory == ASHLAR_MEMORY_CUDA ? wanted.device : -1;
  return std::make_unique<ashlar_allocator>(*std::move(device), ordinal, *options);
}

}  // namespace ashlar::c

extern "C" {

ashlar_status ashlar_open(const ashlar_open_options* options, ashlar_allocator** out) {
  *out = nullptr;
  if (options != nullptr && options->struct_size < sizeof(std::size_t))
    return ashlar::c::FailAtSize("ashlar_open_options");
  return ashlar::c::Call([&]() -> absl::Status {
    auto allocator = ashlar::c::Open(options == nullptr ? ashlar_open_options{} : ashlar::c::Read(*options));
    if (!allocator.ok()) return std::move(allocator).status();
    *out = allocator->release();
    return absl::OkStatus();
  });
}

ashlar_status ashlar_close(ashlar_allocator* allocator) {
  return ashlar::c::Call([&]() -> absl::Status {
    if (ashlar::c::IsOfProcess(allocator))
      return absl::FailedPreconditionError("ashlar_close: this allocator is the process's, which others use too");
    if (allocator == nullptr) return absl::OkStatus();
    const std::unique_ptr<ashlar_allocator> closed(allocator);
    return ashlar_stop_recording(allocator) == ASHLAR_OK ? absl::OkStatus() : absl::UnknownError(ashlar_last_error());
  });
}

int ashlar_device(const ashlar_allocator* allocator) { return allocator->ordinal; }
const char* ashlar_conf(const ashlar_allocator* allocator) { return allocator->conf.c_str(); }

}  // extern "C"
