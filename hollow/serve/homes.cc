#include "hollow/serve/homes.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "hollow/serve/streams.h"

namespace ashlar::serve {
namespace {

std::array<std::atomic<Home*>, kMostDevices> g_homes = {};
std::array<std::atomic<bool>, kMostDevices> g_is_refused = {};
std::atomic<int> g_end = 0;  // behind the last device that has one

std::atomic<Home*>& PlaceOf(int device) { return g_homes[static_cast<std::size_t>(device)]; }

Home* Usable(Home* home) { return home == nullptr || home->is_lost.load(std::memory_order_relaxed) ? nullptr : home; }

// The handle of a device's primary context, which the allocator holds.
Driver::Context PrimaryContext(int device) {
  const int driver_device = DriverDevice(device);
  Driver::Context context = nullptr;
  if (cuda.primary_retain(&context, driver_device) != 0) return nullptr;
  cuda.primary_release(driver_device);
  return context;
}

// What a program cannot be served with: it does not say on which stream it uses memory of cudaMalloc, so that no stream
// can be made to wait for the one that a block is borrowed from.
bool Borrows(const char* conf) {
  constexpr char kKey[] = "borrow_across_streams:";
  const char* found = conf == nullptr ? nullptr : std::strstr(conf, kKey);
  return found != nullptr && std::strncmp(found + sizeof(kKey) - 1, "False", 5) != 0;
}

Home* Open(int device) {
  std::atomic<bool>& is_refused = g_is_refused[static_cast<std::size_t>(device)];
  const Ashlar* ashlar = TheAshlar();
  if (ashlar == nullptr || is_refused.load(std::memory_order_relaxed)) return nullptr;
  ashlar_allocator* allocator = nullptr;
  if (ashlar->process_allocator(device, &allocator) != ASHLAR_OK) {
    if (!is_refused.exchange(true)) Say("device %d is not served: %s", device, ashlar->last_error());
    return nullptr;
  }
  if (Borrows(ashlar->conf(allocator))) {
    if (!is_refused.exchange(true)) {
      Say("device %d is not served: borrow_across_streams is for programs that name the stream of each request: "
          "leave it out",
          device);
    }
    return nullptr;
  }
  auto* home = new Home(device, allocator, PrimaryContext(device));
  Home* known = nullptr;
  const bool is_first = PlaceOf(device).compare_exchange_strong(known, home, std::memory_order_acq_rel);
  if (!is_first) delete home;
  for (int end = g_end; end <= device && !g_end.compare_exchange_weak(end, device + 1);) {
  }
  return is_first ? home : known;
}

// What a thread asked for last: a program calls from one context nearly always.
struct Last {
  Driver::Context context = nullptr;
  Home* home = nullptr;
};
thread_local Last t_last;

Home* HomeOfContext(Driver::Context context, Opening opening) {
  if (context == nullptr) return nullptr;
  if (t_last.context == context) return Usable(t_last.home);
  const int device = DeviceOf(context);
  if (device < 0 || device >= kMostDevices) return nullptr;
  Home* home = PlaceOf(device).load(std::memory_order_acquire);
  if (home == nullptr && opening == Opening::kIfNeeded) home = Open(device);
  if (home == nullptr || home->context != context) return nullptr;
  t_last = {context, home};
  return Usable(home);
}

}  // namespace

Home* CurrentHome(Opening opening) {
  Driver::Context context = nullptr;
  return cuda.context_get_current(&context) == 0 ? HomeOfContext(context, opening) : nullptr;
}

Home* HomeOfStream(Driver::Stream stream, Opening opening) {
  if (IsDefaultStream(stream)) return CurrentHome(opening);
  Driver::Context context = nullptr;
  return cuda.stream_get_context(stream, &context) == 0 ? HomeOfContext(context, opening) : nullptr;
}

Home* OpenHome(int device) {
  return device < 0 || device >= kMostDevices ? nullptr : Usable(PlaceOf(device).load(std::memory_order_acquire));
}

Home* HomeInModel(int device) {
  Home* home = PlaceOf(device).load(std::memory_order_acquire);
  return home == nullptr || home->is_of_parent ? nullptr : home;
}

Home* HomeHolding(const void* address) {
  for (int device = 0, end = g_end.load(std::memory_order_acquire); device < end; ++device) {
    Home* home = OpenHome(device);
    if (home != nullptr && TheAshlar()->holds(home->allocator, address) != 0) return home;
  }
  return nullptr;
}

void LoseHome(int device) {
  if (Home* home = OpenHome(device); home != nullptr) home->is_lost = true;
}

void LoseAllHomes() {
  for (int device = 0; device < kMostDevices; ++device) {
    LoseHome(device);
    if (Home* home = PlaceOf(device).load(); home != nullptr) home->is_of_parent = true;
  }
}

}  // namespace ashlar::serve
