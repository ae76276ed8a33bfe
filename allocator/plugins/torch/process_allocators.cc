#include "allocator/plugins/torch/process_allocators.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "allocator/plugins/torch/failure.h"

namespace ashlar::torch {
namespace {

std::array<std::atomic<ashlar_allocator*>, kMostDevices> open_allocators;

std::atomic<void (*)(int)> opening_observer = nullptr;
std::atomic<ashlar_allocator*> only_allocator = nullptr;  // while a single one is open
std::mutex opening_mutex;

bool IsDevice(int device) { return device >= 0 && device < kMostDevices; }

// False where another thread was first. Nobody finds a second one while the first still counts as the only one.
bool Enter(int device, ashlar_allocator* opened) {
  const std::lock_guard<std::mutex> lock(opening_mutex);
  if (OpenAllocator(device) != nullptr) return false;
  bool is_first = true;
  ForEachOpen([&](int, ashlar_allocator*) { is_first = false; });
  only_allocator = is_first ? opened : nullptr;
  open_allocators[static_cast<std::size_t>(device)] = opened;
  return true;
}

}  // namespace

ashlar_allocator* OpenAllocator(int device) {
  return IsDevice(device) ? open_allocators[static_cast<std::size_t>(device)].load(std::memory_order_acquire) : nullptr;
}

ashlar_allocator* FindAllocator(int device, ashlar_status* status) {
  *status = ASHLAR_OK;
  if (ashlar_allocator* allocator = OpenAllocator(device); allocator != nullptr) return allocator;
  ashlar_allocator* opened = nullptr;
  *status = ashlar_process_allocator(device, &opened);
  if (*status != ASHLAR_OK || !IsDevice(device) || !Enter(device, opened)) return opened;
  if (auto* const observer = opening_observer.load(); observer != nullptr) observer(device);
  return opened;
}

ashlar_allocator* AllocatorThatHolds(const void* memory) {
  if (ashlar_allocator* only = only_allocator.load(std::memory_order_acquire); only != nullptr) [[likely]]
    return only;
  ashlar_allocator* found = nullptr;
  ashlar_allocator* first = nullptr;
  const auto find = [&](auto holds) {
    ForEachOpen([&](int, ashlar_allocator* allocator) {
      if (first == nullptr) first = allocator;
      if (found == nullptr && holds(allocator, memory) != 0) found = allocator;
    });
  };
  find(ashlar_may_hold);
  if (found == nullptr) find(ashlar_holds);
  return found != nullptr ? found : first;
}

void ObserveOpening(void (*opened)(int device)) { opening_observer = opened; }

ashlar_allocator* AllocatorOf(int device) {
  ashlar_status status = ASHLAR_OK;
  ashlar_allocator* allocator = FindAllocator(device, &status);
  if (allocator == nullptr) ThrowFailure(status, device);
  return allocator;
}

}  // namespace ashlar::torch
