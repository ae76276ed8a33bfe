// Opens and closes allocators of the caller's own.

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/api/c/handle.h"
#include "ashlar/devices.h"

namespace ashlar::c {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const ashlar_open_options& wanted) {
  switch (wanted.memory) {
    case ASHLAR_MEMORY_CUDA:
      return OpenCudaDevice({.ordinal = wanted.device, .posix_fd_handles_if_granted = true});
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

namespace ashlar::c {
namespace {

constexpr int kMostDevices = 128;

// Never destroyed: at the end of the process the driver may be gone before us, and other libraries still free.
class ProcessAllocators {
 public:
  static ProcessAllocators& Instance() {
    static ProcessAllocators& instance = *new ProcessAllocators;
    return instance;
  }

  ashlar_allocator* Find(int device) const {
    return static_cast<unsigned>(device) < kMostDevices
               ? open_[static_cast<std::size_t>(device)].load(std::memory_order_acquire)
               : nullptr;
  }

  absl::StatusOr<ashlar_allocator*> FindOrOpen(int device) {
    if (ashlar_allocator* found = Find(device); found != nullptr) return found;
    if (device < 0 || device >= kMostDevices)
      return absl::InvalidArgumentError(absl::StrCat("ashlar_process_allocator: no CUDA device ", device));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ashlar_allocator* found = Find(device); found != nullptr) return found;
    absl::StatusOr<std::unique_ptr<ashlar_allocator>> made = Open({.struct_size = sizeof(ashlar_open_options),
                                                                   .conf = conf_.has_value() ? conf_->c_str() : nullptr,
                                                                   .memory = ASHLAR_MEMORY_CUDA,
                                                                   .device = device,
                                                                   .capacity_bytes = 0});
    if (!made.ok()) return std::move(made).status();
    ashlar_allocator* const allocator = made->release();
    open_[static_cast<std::size_t>(device)].store(allocator, std::memory_order_release);
    return allocator;
  }

  absl::Status Configure(std::optional<std::string> conf) {
    absl::StatusOr<Options> options = OptionsOf(conf.has_value() ? conf->c_str() : nullptr);
    if (!options.ok()) return std::move(options).status();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::atomic<ashlar_allocator*>& open : open_) {
      const ashlar_allocator* allocator = open.load();
      if (allocator == nullptr || allocator->conf == options->conf) continue;
      return absl::FailedPreconditionError(absl::StrCat("ashlar_configure_process: the allocator of GPU ",
                                                        allocator->ordinal, " is open with the settings '",
                                                        allocator->conf, "': configure before the first use of a GPU"));
    }
    conf_ = std::move(conf);
    return absl::OkStatus();
  }

  bool Holds(const ashlar_allocator* allocator) const {
    return allocator != nullptr && Find(allocator->ordinal) == allocator;
  }

 private:
  // Another thread may hold the lock while this process is forked: it is the child's first one then.
  ProcessAllocators() {
    pthread_atfork(nullptr, nullptr, [] { new (&Instance().mutex_) std::mutex; });
  }

  std::mutex mutex_;
  std::optional<std::string> conf_;
  std::array<std::atomic<ashlar_allocator*>, kMostDevices> open_{};
};

}  // namespace

bool IsOfProcess(const ashlar_allocator* allocator) { return ProcessAllocators::Instance().Holds(allocator); }

}  // namespace ashlar::c

extern "C" {

ashlar_status ashlar_process_allocator(int device, ashlar_allocator** out) {
  *out = ashlar::c::ProcessAllocators::Instance().Find(device);
  if (*out != nullptr) return ASHLAR_OK;
  return ashlar::c::Call([&]() -> absl::Status {
    const absl::StatusOr<ashlar_allocator*> allocator = ashlar::c::ProcessAllocators::Instance().FindOrOpen(device);
    if (!allocator.ok()) return allocator.status();
    *out = *allocator;
    return absl::OkStatus();
  });
}

ashlar_status ashlar_configure_process(const char* conf) {
  return ashlar::c::Call([&] {
    return ashlar::c::ProcessAllocators::Instance().Configure(conf == nullptr ? std::nullopt
                                                                              : std::optional<std::string>(conf));
  });
}

}  // extern "C"
