// The process's allocators that PyTorch has used so far, by device: looked up without a lock.
//
//   ashlar_allocator* allocator = AllocatorOf(device);   // opens it, or throws
//   ForEachOpen([](int device, ashlar_allocator* allocator) { ... });
//
// Threads: any.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_PROCESS_ALLOCATORS_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_PROCESS_ALLOCATORS_H_

#include "ashlar.h"

namespace ashlar::torch {

inline constexpr int kMostDevices = 64;  // C10_COMPILE_TIME_MAX_GPUS is 120; no machine has more than 16

// nullptr where it cannot be opened; `status` says why, and ashlar_last_error how.
ashlar_allocator* FindAllocator(int device, ashlar_status* status);
// Throws instead (failure.h).
ashlar_allocator* AllocatorOf(int device);
// nullptr where the device has none yet.
ashlar_allocator* OpenAllocator(int device);
// Of those that are open, the one that handed out this address, as far as is seen without a lock; else one that says
// that it holds it, else the first. nullptr where none is open.
ashlar_allocator* AllocatorThatHolds(const void* memory);

// Told of each device that opens from now on, by the thread that opens it. nullptr: nobody.
void ObserveOpening(void (*opened)(int device));

template <typename Visit>
void ForEachOpen(Visit visit) {
  for (int device = 0; device < kMostDevices; ++device) {
    if (ashlar_allocator* allocator = OpenAllocator(device); allocator != nullptr) visit(device, allocator);
  }
}

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_PROCESS_ALLOCATORS_H_
