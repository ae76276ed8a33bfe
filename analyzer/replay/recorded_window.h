// Cuts a trace to a window (timeline/window.h), a recording that names every call with all that its replay needs: the
// trace is replayed up to the window, and what the allocator is then is written down as a recorder writes it.
//
//   absl::StatusOr<trace::Snapshot> part = CutTrace(snapshot, /*device=*/0, *timeline::ParseWindow("20%:"));
//
// A replay of the part is as exact as one of the whole. Where the replay of a recording does not follow it to the
// window's ends, the part is cut as a PyTorch snapshot is: its own events tell the state in which it begins.
#ifndef ASHLAR_ANALYZER_REPLAY_RECORDED_WINDOW_H_
#define ASHLAR_ANALYZER_REPLAY_RECORDED_WINDOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/device_trace.h"
#include "analyzer/timeline/window.h"

namespace ashlar::replay {

// An allocator between two requests, as a recorder would write it down: what a recording that begins there says first.
struct RecordedMoment {
  trace::RecordedStart start;
  std::vector<trace::AnyFact> pools;
  std::optional<std::uint64_t> limit_bytes;
  std::vector<trace::ReservedRange> reservations;
};

RecordedMoment MomentOf(const core::CachingAllocator& allocator, int device);

// The two ends of a window.
struct RecordedMoments {
  timeline::EventWindow window;  // the one that was asked for; an end that lay in a request is moved behind it
  RecordedMoment begin, end;
};

// Errors: those of FindWindow, and FailedPrecondition where trace and segments contradict each other.
absl::StatusOr<trace::Snapshot> CutTrace(const timeline::DeviceTrace& trace, const timeline::AskedWindow& asked);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RECORDED_WINDOW_H_
