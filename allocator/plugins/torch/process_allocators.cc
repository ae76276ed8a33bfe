#include "allocator/plugins/torch/process_allocators.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "allocator/plugins/torch/failure.h"

namespace ashlar::torch {
namespace {

std::array<std::atomic<ashlar_allocator*>, kMostDevices> open_allocators;

std::atomic<void (*)(int)> opening_observer = nullptr;

bool IsDevice(int device) { return device >= 0 && device < kMostDevices; }

}  // namespace

ashlar_allocator* OpenAllocator(int device) {
  return IsDevice(device) ? open_allocators[static_cast<std::size_t>(device)].load(std::memory_order_acquire) : nullptr;
}

ashlar_allocator* FindAllocator(int device, ashlar_status* status) {
  *status = ASHLAR_OK;
  if (ashlar_allocator* allocator = OpenAllocator(device); allocator != nullptr) return allocator;
  ashlar_allocator* opened = nullptr;
  *status = ashlar_process_allocator(device, &opened);
  if (*status != ASHLAR_OK || !IsDevice(device)) return opened;
  ashlar_allocator* before = nullptr;
  if (open_allocators[static_cast<std::size_t>(device)].compare_exchange_strong(before, opened)) {
    if (auto* const observer = opening_observer.load(); observer != nullptr) observer(device);
  }
  return opened;
}

void ObserveOpening(void (*opened)(int device)) { opening_observer = opened; }

ashlar_allocator* AllocatorOf(int device) {
  ashlar_status status = ASHLAR_OK;
  ashlar_allocator* allocator = FindAllocator(device, &status);
  if (allocator == nullptr) ThrowFailure(status, device);
  return allocator;
}

}  // namespace ashlar::torch
