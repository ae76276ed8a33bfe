// One device's part of a snapshot: found once, and handed down, so that no stage looks for it again.
//
//   const DeviceTrace trace(snapshot, /*device=*/0);
//   MakeObservedTimeline(trace, rule);      // or MakeObservedTimeline({snapshot, 0}, rule)
//
// The events are shared, not copied. The rest points into the snapshot, which must outlive it.
#ifndef ASHLAR_ANALYZER_TIMELINE_DEVICE_TRACE_H_
#define ASHLAR_ANALYZER_TIMELINE_DEVICE_TRACE_H_

#include <cstddef>
#include <vector>

#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::timeline {

struct DeviceTrace {
  // A device that the snapshot does not have gives a trace of nothing.
  DeviceTrace(const trace::Snapshot& whole, int number) : snapshot(&whole), device(number) {
    const auto index = static_cast<std::size_t>(number);
    if (number >= 0 && index < whole.device_traces.size()) events = whole.device_traces[index];
    if (number >= 0 && index < whole.windows.size()) window = whole.windows[index];
    for (const trace::SnapshotSegment& segment : whole.segments) {
      if (segment.device == number) segments.push_back(&segment);
    }
    if (whole.recording.has_value() && whole.recording->device == number) recording = &*whole.recording;
    if (NamesCalls() && recording->start.has_value()) start = &*recording->start;
  }

  // The facts name every call, refusal and reservation.
  bool NamesCalls() const { return recording != nullptr && recording->has_calls; }

  const trace::Snapshot* snapshot;  // for what it says of all devices: settings, traits, stacks
  int device;
  trace::EventList events = {};                              // oldest first
  trace::TraceWindow window = {};                            // which events of a longer trace these are
  std::vector<const trace::SnapshotSegment*> segments = {};  // as they stand in the end, in the snapshot's order
  const trace::RecordingInfo* recording = nullptr;           // nullptr: not a recording of our own of this device
  const trace::RecordedStart* start = nullptr;               // nullptr: no recording says what it began with
};

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_DEVICE_TRACE_H_
