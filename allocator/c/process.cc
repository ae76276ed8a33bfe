#include "allocator/c/process.h"

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
#include "allocator/c/open.h"

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
