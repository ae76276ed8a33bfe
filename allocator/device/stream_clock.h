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
#include <deque>
#include <vector>

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

  // What `stream` records from now on is done only after the event, or after what `awaited` was given so far.
  void WaitFor(Stream stream, const DeviceEvent& event) { waits_[Handle(stream)].push_back({++sequence_, event}); }
  void Wait(Stream stream, Stream awaited) { WaitFor(stream, Record(awaited)); }

  // What an event waits for is done before it.
  void FinishEvent(const DeviceEvent& event) {
    std::vector<DeviceEvent> unfinished = {event};
    while (!unfinished.empty()) {
      const DeviceEvent next = unfinished.back();
      unfinished.pop_back();
      std::uint64_t& done = done_[Handle(next.stream)];
      done = std::max(done, next.sequence);
      std::deque<WaitPoint>& waits = waits_[Handle(next.stream)];
      for (; !waits.empty() && waits.front().sequence <= next.sequence; waits.pop_front()) {
        unfinished.push_back(waits.front().event);
      }
    }
  }
  void FinishStream(Stream stream) { FinishEvent({stream, sequence_}); }
  void FinishAll() {
    done_everywhere_ = sequence_;
    waits_.clear();
  }

 private:
  struct WaitPoint {
    std::uint64_t sequence = 0;
    DeviceEvent event;
  };

  absl::flat_hash_map<std::uint64_t, std::uint64_t> done_;           // stream handle -> last sequence that is done
  absl::flat_hash_map<std::uint64_t, std::deque<WaitPoint>> waits_;  // stream handle -> what it waits for, oldest first
  std::uint64_t sequence_ = 0;
  std::uint64_t done_everywhere_ = 0;
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_STREAM_CLOCK_H_
