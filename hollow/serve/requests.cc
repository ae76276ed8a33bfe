#include "hollow/serve/requests.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "hollow/interpose/stand_in.h"
#include "hollow/serve/counter.h"
#include "hollow/serve/driver.h"
#include "hollow/serve/homes.h"
#include "hollow/serve/library.h"
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
    is_quiet = is_quiet || WaitForDevice(Api::kDriver, *home) == 0;
    if (is_quiet) {
      TheAshlar()->free(home->allocator, pointer);
    } else {
      FreeAfterCapture(*home, pointer);  // another time
    }
  }
}

}  // namespace

int WaitForDevice(Api api, const Home& home) {
  Driver::Context current = nullptr;
  const bool is_current = cuda.context_get_current(&current) == 0 && current == home.context;
  const int result = !is_current            ? WaitForContext(home.context)
                     : api == Api::kRuntime ? cuda.runtime_synchronize()
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

namespace {

enum class Serving : int { kUnknown, kOff, kOn };
std::atomic<Serving> g_serving = Serving::kUnknown;
std::atomic<bool> g_streams_are_pools = false;
interpose::TorchLook g_torch;

void BeforeFork() {
  LockStreams();
  LockDeferred();
}
void AfterFork() {
  UnlockDeferred();
  UnlockStreams();
}
// CUDA does not work in the child of a process that used it: what it answers is the real functions' to say.
void InChild() {
  LoseAllHomes();
  CountAnew();
  AfterFork();
}

bool Start() {
  static const bool is_watched = pthread_atfork(BeforeFork, AfterFork, InChild) == 0;
  Serving unknown = Serving::kUnknown;
  g_serving.compare_exchange_strong(unknown, is_watched ? Serving::kOn : Serving::kOff);
  return g_serving == Serving::kOn;
}

void LeaveToTorch() {
  if (g_serving.exchange(Serving::kOff) == Serving::kOff) return;
  Count(&ServedCounts::has_torch);
  Say("PyTorch is in this process: it has an allocator of its own, and is left to it");
}

// Whether anything new may be served.
bool MayServe() {
  const Serving serving = g_serving.load(std::memory_order_acquire);
  if (serving == Serving::kOff || (serving == Serving::kUnknown && !Start())) return false;
  if (!g_torch.HasTorch()) [[likely]]
    return true;
  LeaveToTorch();
  return false;
}

// A null stream serves all: a block is free there only when everything is done.
constexpr Driver::Stream kEveryStream = nullptr;

bool Allocate(Home* home, std::size_t bytes, Driver::Stream stream, void** out) {
  void* memory = nullptr;
  if (home == nullptr || TheAshlar()->allocate(home->allocator, bytes, stream, &memory) != ASHLAR_OK) {
    Count(&ServedCounts::passed_allocations);
    return false;
  }
  *out = memory;
  Count(&ServedCounts::served_allocations);
  return true;
}

// The runtime makes its context current only when it needs it: before CUDA 12 that is after cudaSetDevice.
Home* HomeOfRuntime() {
  int device = 0;
  if (cuda.runtime_device(&device) != 0) return nullptr;
  Home* home = OpenHome(device) == nullptr ? nullptr : CurrentHome(Opening::kNever);
  if (home != nullptr && home->device == device) return home;
  if (RealFree(Api::kRuntime, nullptr) != 0) return nullptr;
  home = CurrentHome(Opening::kIfNeeded);
  return home != nullptr && home->device == device ? home : nullptr;
}

Home* HomeFor(Api api) { return api == Api::kRuntime ? HomeOfRuntime() : CurrentHome(Opening::kIfNeeded); }

// In a capture a free is forbidden or not by the thread's mode: CUDA says so of memory that is nobody's.
int TryInCapture(Api api) {
  void* memory = nullptr;
  const int result = RealAllocation(api, 1, &memory);
  return result != 0 ? result : RealFree(api, memory);
}

Freed Done(int result) {
  if (result == 0) Count(&ServedCounts::served_frees);
  return {Freed::Kind::kDone, result};
}

Freed Released(Home& home, void* pointer) {
  if (TheAshlar()->free(home.allocator, pointer) != ASHLAR_OK) return {Freed::Kind::kInvalid};
  return Done(0);
}

bool IsLive(const void* pointer) {
  OwnBlock block;
  return FindOwnBlock(pointer, block) && block.address == reinterpret_cast<std::uint64_t>(pointer);
}

Home* HomeOf(const void* pointer) {
  Home* home = pointer == nullptr ? nullptr : HomeHolding(pointer);
  if (home == nullptr && pointer != nullptr) Count(&ServedCounts::passed_frees);
  return home;
}

}  // namespace

bool ServeAllocation(Api api, std::size_t bytes, void** out, const void* caller) {
  if (out == nullptr || bytes == 0 || !MayServe()) return false;
  // Another integration of the process may have had it loaded before this one did.
  if (TheAshlar() == nullptr || IsOfAshlar(caller)) return false;
  FreeDeferred();
  if (IsCapturing()) {  // forbidden or not: CUDA's to say
    Count(&ServedCounts::passed_allocations);
    return false;
  }
  return Allocate(HomeFor(api), bytes, kEveryStream, out);
}

bool ServeStreamAllocation(Api api, std::size_t bytes, Driver::Stream stream, void** out) {
  if (out == nullptr || bytes == 0 || !MayServe()) return false;
  FreeDeferred();
  const bool is_pools = g_streams_are_pools.load(std::memory_order_relaxed);
  Home* home = nullptr;
  if (!is_pools && NumberOf(stream) != kPerThreadStream && !IsCapturing()) {
    home = IsDefaultStream(stream) ? HomeFor(api) : HomeOfStream(stream, Opening::kIfNeeded);
  }
  if (home != nullptr && MeetStream(stream) && WaitForDevice(Api::kDriver, *home) != 0) home = nullptr;
  return Allocate(home, bytes, stream, out);
}

Freed ServeFree(Api api, void* pointer) {
  Home* home = HomeOf(pointer);
  if (home == nullptr) return {};
  if (IsCapturing()) {
    if (!IsLive(pointer)) return {Freed::Kind::kInvalid};
    const int result = TryInCapture(api);
    if (result == 0) FreeAfterCapture(*home, pointer);
    return Done(result);
  }
  FreeDeferred();
  const int result = WaitForDevice(api, *home);
  return result != 0 ? Done(result) : Released(*home, pointer);
}

Freed ServeStreamFree(void* pointer, Driver::Stream stream) {
  Home* home = HomeOf(pointer);
  if (home == nullptr) return {};
  if (IsCapturing()) {
    int status = 0;  // CU_STREAM_CAPTURE_STATUS_NONE
    const bool is_known = cuda.stream_is_capturing(stream, &status) == 0;
    // A node of a graph frees memory of that graph, which ours is not.
    if (!is_known || status != 0 || !IsLive(pointer)) return {Freed::Kind::kInvalid};
    FreeAfterCapture(*home, pointer);
    return Done(0);
  }
  FreeDeferred();
  if (HomeOfStream(stream, Opening::kNever) != home) {  // of another device, whose events are not this one's
    const int result = cuda.stream_synchronize(stream);
    return result != 0 ? Done(result) : Released(*home, pointer);
  }
  if (TheAshlar()->record_stream(home->allocator, pointer, stream) != ASHLAR_OK) return {Freed::Kind::kInvalid};
  return Released(*home, pointer);
}

void LeaveStreamsToPools() {
  if (g_streams_are_pools.exchange(true) || g_serving.load() == Serving::kOff) return;
  Say("the program manages CUDA's memory pools itself: what it allocates by streams is left to them");
}

void NotePeer(int device, int peer) { AddPeer(device, peer); }

bool FindOwnBlock(const void* address, OwnBlock& out) {
  const Home* home = address == nullptr ? nullptr : HomeHolding(address);
  if (home == nullptr) return false;
  ashlar_block block = {};
  block.struct_size = sizeof(block);
  if (TheAshlar()->find_block(home->allocator, address, &block) != ASHLAR_OK) return false;
  out = {reinterpret_cast<std::uint64_t>(block.address), block.requested_bytes};
  return true;
}

std::uint64_t CachedBytes() {
  const Home* home = CurrentHome(Opening::kNever);
  ashlar_statistics now = {};
  now.struct_size = sizeof(now);
  if (home == nullptr || TheAshlar()->get_statistics(home->allocator, &now) != ASHLAR_OK) return 0;
  return now.reserved_bytes > now.active_bytes ? now.reserved_bytes - now.active_bytes : 0;
}

void ForgetDevice(int device) { LoseHome(device); }

}  // namespace ashlar::serve
