#include "allocator/device/device.h"

#include <pthread.h>

#include <atomic>

namespace ashlar::device {
namespace {

std::atomic<std::uint64_t> fork_count{0};

}  // namespace

std::uint64_t ForkCount() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1); });
  static_cast<void>(registered);
  return fork_count.load(std::memory_order_relaxed);
}

}  // namespace ashlar::device
