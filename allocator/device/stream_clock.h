// The events of a device that has no streams of its own: which recorded points are done, as its owner says.
//
//   StreamClock clock;
//   const DeviceEvent event = clock.Record(Stream{7});
//   clock.FinishEvent(event);  // and what was recorded before it on stream 7
//   clock.IsDone(event);       // true
//
// It holds the streams that have something to finish, not those ever seen. Who asks for news hears which streams
// finished something since, so that the others need not be asked. Thread rule: not thread-safe; the device's caller
// serialises calls.
#ifndef ASHLAR_ALLOCATOR_DEVICE_STREAM_CLOCK_H_
#define ASHLAR_ALLOCATOR_DEVICE_STREAM_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/device/device.h"

namespace ashlar::device {

// Streams that finished something.
struct StreamNews {
  static constexpr std::size_t kMostStreams = 1024;  // more are told as all

  bool is_of_all = false;
  std::vector<std::uint64_t> streams = {};  // handles, in any order, some of them twice

  void Add(Stream stream) {
    if (is_of_all) return;
    streams.push_back(Handle(stream));
    if (streams.size() > kMostStreams) AddAll();
  }
  void AddAll() {
    is_of_all = true;
    streams.clear();
  }
};

class StreamClock {
 public:
  DeviceEvent Record(Stream stream) {
    // A stream that is not there had finished all that it was given before.
    Unfinished& unfinished = unfinished_.try_emplace(Handle(stream), Unfinished{sequence_, 0}).first->second;
    unfinished.last = ++sequence_;
    return {stream, sequence_};
  }

  bool IsDone(const DeviceEvent& event) const {
    const auto it = unfinished_.find(Handle(event.stream));
    return it == unfinished_.end() || event.sequence <= it->second.done;
  }

  // What `stream` records from now on is done only after the event, or after what `awaited` was given so far.
  void WaitFor(Stream stream, const DeviceEvent& event) { waits_[Handle(stream)].push_back({++sequence_, event}); }
  void Wait(Stream stream, Stream awaited) { WaitFor(stream, Record(awaited)); }

  // What an event waits for is done before it.
  void FinishEvent(const DeviceEvent& event) {
    std::vector<DeviceEvent> to_finish = {event};
    while (!to_finish.empty()) {
      const DeviceEvent next = to_finish.back();
      to_finish.pop_back();
      Finish(next);
      const auto it = waits_.find(Handle(next.stream));
      if (it == waits_.end()) continue;
      std::deque<WaitPoint>& waits = it->second;
      for (; !waits.empty() && waits.front().sequence <= next.sequence; waits.pop_front()) {
        to_finish.push_back(waits.front().event);
      }
      if (waits.empty()) waits_.erase(it);
    }
  }
  void FinishStream(Stream stream) { FinishEvent({stream, sequence_}); }
  void FinishAll() {
    news_.AddAll();
    unfinished_.clear();
    waits_.clear();
  }

  // Since it was asked last; at first of all.
  StreamNews TakeNews() { return std::exchange(news_, {}); }

 private:
  struct Unfinished {
    std::uint64_t done = 0;  // the last sequence that is
    std::uint64_t last = 0;  // the last that was recorded
  };
  struct WaitPoint {
    std::uint64_t sequence = 0;
    DeviceEvent event;
  };

  void Finish(const DeviceEvent& event) {
    const auto it = unfinished_.find(Handle(event.stream));
    if (it == unfinished_.end()) return;
    news_.Add(event.stream);
    it->second.done = std::max(it->second.done, event.sequence);
    if (it->second.done >= it->second.last) unfinished_.erase(it);
  }

  absl::flat_hash_map<std::uint64_t, Unfinished> unfinished_;        // by stream handle: where an event is not done
  absl::flat_hash_map<std::uint64_t, std::deque<WaitPoint>> waits_;  // the same: what it waits for, oldest first
  std::uint64_t sequence_ = 0;
  StreamNews news_{.is_of_all = true};
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_STREAM_CLOCK_H_
