// A part of a recorded trace: which events it is, said by number, time or share, and the snapshot that a recorder would
// have written had it been started and asked then. Everything behind sees a snapshot as any other.
//
//   events  |..............[from ............... to)...........|
//                                                ^ the segments of the cut are the state after event to - 1
//
//   absl::StatusOr<AskedWindow> asked = ParseWindow("20%:12.5s");
//   absl::StatusOr<EventWindow> window = FindWindow(events, *asked);
//   trace::Snapshot part = CutSnapshot(snapshot, whole, *window);
//
// A window begins and ends between two requests: an end that lies in one is moved to its begin. Within it every block,
// segment and sum is what it is in the whole trace. Pure functions.
#ifndef ASHLAR_ANALYZER_TIMELINE_WINDOW_H_
#define ASHLAR_ANALYZER_TIMELINE_WINDOW_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::timeline {

struct WindowEnd {
  enum class Kind : std::uint8_t {
    kEvent,  // that many events after the first
    kTime,   // that many microseconds after the first event
    kShare,  // that share of all events
  };
  Kind kind = Kind::kEvent;
  double value = 0;
};

struct AskedWindow {
  std::optional<WindowEnd> from = {};  // nullopt: the trace's own end
  std::optional<WindowEnd> to = {};
  std::string text = {};  // as given, for messages

  bool IsWhole() const { return !from.has_value() && !to.has_value(); }
};

// "FROM:TO", each "120000", "12.5s", "300ms", "40us", "20%" or nothing. InvalidArgument says what an end may be.
absl::StatusOr<AskedWindow> ParseWindow(absl::string_view text);

// [from, to)
struct EventWindow {
  EventIndex from = 0;
  EventIndex to = 0;

  bool operator==(const EventWindow&) const = default;
};

// OutOfRange where an end lies beyond the trace, where nothing is between the two, or where a time is asked of a trace
// without times.
absl::StatusOr<EventWindow> FindWindow(absl::Span<const trace::Event> events, const AskedWindow& asked);

// The window of `whole`'s device, of which `whole` is the timeline. Other devices are left out. Of a recording its
// facts come along, and not the state in which it begins: rewinding tells that again (analyzer/replay/recorded_window.h
// has recordings that name every call).
trace::Snapshot CutSnapshot(const trace::Snapshot& snapshot, const Timeline& whole, const EventWindow& window);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_WINDOW_H_
