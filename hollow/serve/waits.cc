#include "hollow/serve/waits.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "hollow/serve/streams.h"

namespace ashlar::serve {
namespace {

// For each device those that may use its memory, a bit each.
std::array<std::atomic<std::uint64_t>, kMostDevices> g_users = {};

int WaitForContext(Driver::Context context) {
  const ContextScope scope(context);
  return scope.result() != 0 ? scope.result() : cuda.context_synchronize();
}

int WaitForPeer(int device) {
  const int driver_device = DriverDevice(device);
  Driver::Context context = nullptr;
  if (const int result = cuda.primary_retain(&context, driver_device); result != 0) return result;
  const int result = WaitForContext(context);
  cuda.primary_release(driver_device);
  return result;
}

struct Deferred {
  std::mutex mutex;
  std::vector<std::pair<Home*, void*>> frees;
};

Deferred& TheDeferred() {
  static Deferred& deferred = *new Deferred;
  return deferred;
}
std::atomic<bool> g_has_deferred = false;

void FreeNow(const std::vector<std::pair<Home*, void*>>& frees) {
  std::array<bool, kMostDevices> is_done = {};
  for (const auto& [home, pointer] : frees) {
    if (home->is_lost) continue;
    bool& is_quiet = is_done[static_cast<std::size_t>(home->device)];
    is_quiet = is_quiet || WaitForDevice(Door::kDriver, *home) == 0;
    if (is_quiet) {
      TheAshlar()->free(home->allocator, pointer);
    } else {
      FreeAfterCapture(*home, pointer);  // another time
    }
  }
}

}  // namespace

int WaitForDevice(Door door, const Home& home) {
  Driver::Context current = nullptr;
  const bool is_current = cuda.context_get_current(&current) == 0 && current == home.context;
  const int result = !is_current              ? WaitForContext(home.context)
                     : door == Door::kRuntime ? cuda.runtime_synchronize()
                                              : cuda.context_synchronize();
  std::uint64_t users = g_users[static_cast<std::size_t>(home.device)].load(std::memory_order_relaxed);
  if (result != 0 || users == 0) [[likely]]
    return result;
  for (int device = 0; users != 0; ++device, users >>= 1) {
    if ((users & 1) == 0) continue;
    if (const int peer_result = WaitForPeer(device); peer_result != 0) return peer_result;
  }
  return 0;
}

void AddPeer(int device, int peer) {
  if (device < 0 || peer < 0 || device >= kMostDevices || peer >= kMostDevices || device == peer) return;
  g_users[static_cast<std::size_t>(peer)].fetch_or(std::uint64_t{1} << device, std::memory_order_relaxed);
}

void FreeAfterCapture(Home& home, void* pointer) {
  Deferred& deferred = TheDeferred();
  const std::lock_guard<std::mutex> lock(deferred.mutex);
  deferred.frees.emplace_back(&home, pointer);
  g_has_deferred.store(true, std::memory_order_release);
}

void FreeDeferred() {
  if (!g_has_deferred.load(std::memory_order_acquire) || IsCapturing()) [[likely]]
    return;
  Deferred& deferred = TheDeferred();
  std::vector<std::pair<Home*, void*>> frees;
  {
    const std::lock_guard<std::mutex> lock(deferred.mutex);
    frees.swap(deferred.frees);
    g_has_deferred.store(false, std::memory_order_release);
  }
  FreeNow(frees);
}

void LockDeferred() { TheDeferred().mutex.lock(); }
void UnlockDeferred() { TheDeferred().mutex.unlock(); }

}  // namespace ashlar::serve
