// An event is one decision of an allocator, as Allocator::SetObserver tells it.
//
//   allocator.SetObserver([&](const ashlar::AllocatorEvent& event) { seen.push_back(event); });
//
// Plain values; sizes are bytes.
#ifndef ASHLAR_EVENTS_H_
#define ASHLAR_EVENTS_H_

#include <cstdint>
#include <functional>

#include "ashlar/units.h"

namespace ashlar {

enum class EventKind : std::uint8_t {
  kAlloc,
  kFreeRequested,  // by the program
  kFreeCompleted,  // the block is free: at once, or when other streams are done with it
  kSegmentAlloc,   // the device gave memory, or took it back
  kSegmentFree,
  kSegmentMap,  // the same of pages of an expandable segment
  kSegmentUnmap,
  kOutOfMemory,
  kPagesSlept,  // pages of a pool that falls asleep went back to the device: the addresses stay, and are nobody's else
  kPagesWoken,  // there are pages under these addresses again
};

struct AllocatorEvent {
  EventKind kind = EventKind::kAlloc;
  std::uint64_t address = 0;     // kOutOfMemory: bytes that the device has free
  std::uint64_t size_bytes = 0;  // of a block what was asked for; kOutOfMemory: the rounded request
  Stream stream{};
  PoolId pool;
};

// Called in the thread that caused the event, under the allocator's lock: it must not use the allocator, must not wait
// for a thread that does, and must not throw.
using EventObserver = std::function<void(const AllocatorEvent&)>;

}  // namespace ashlar

#endif  // ASHLAR_EVENTS_H_
