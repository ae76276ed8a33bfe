// The events of a device that has no streams of its own: which recorded points are done, as its owner says.
//
//   StreamClock clock;
//   const DeviceEvent event = clock.Record(Stream{7});
//   clock.FinishEvent(event);  // and what was recorded before it on stream 7
//   clock.IsDone(event);       // true
//
// Thread rule: not thread-safe; the device's caller serialises calls.
#ifndef ASHLAR_ALLOCATOR_DEVICE_STREAM_CLOCK_H_
#define ASHLAR_ALLOCATOR_DEVICE_STREAM_CLOCK_H_

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "allocator/device/device.h"

namespace ashlar::device {

class StreamClock {
 public:
  DeviceEvent Record(Stream stream) { return {stream, ++sequence_}; }

  bool IsDone(const DeviceEvent& event) const {
    if (event.sequence <= done_everywhere_) return true;
    const auto it = done_.find(Handle(event.stream));
    return it != done_.end() && event.sequence <= it->second;
  }

  void FinishEvent(const DeviceEvent& event) {
    std::uint64_t& done = done_[Handle(event.stream)];
    done = std::max(done, event.sequence);
  }
  void FinishStream(Stream stream) { done_[Handle(stream)] = sequence_; }
  void FinishAll() { done_everywhere_ = sequence_; }

 private:
  absl::flat_hash_map<std::uint64_t, std::uint64_t> done_;  // stream handle -> last sequence that is done
  std::uint64_t sequence_ = 0;
  std::uint64_t done_everywhere_ = 0;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_STREAM_CLOCK_H_
