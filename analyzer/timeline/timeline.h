// A window of one device's allocator history as immutable columns: the events, the sums after each of them, and one
// span for every block and segment that existed. Two makers fill it, from a recorded trace (observed) or from a
// replay; analyses cannot tell which, reports say it.
//
// An event index counts from 0; kBeforeWindow (-1) stands for the start state and for whatever happened before it,
// kNever for what did not happen in the window. A span holds in [its begin, its end): a block is live after event e
// iff alloc_event <= e < free_requested_event, and pending iff free_requested_event <= e < free_completed_event.
// Sizes are bytes, times the recorder's. Immutable, so safe to share between threads.
//
//   for (const BlockSpan& block : timeline.blocks())
//     if (block.IsLiveAfter(timeline.allocated_peak().event)) ...;
//   State at_peak = timeline.StateAt(timeline.allocated_peak().event);
#ifndef ASHLAR_ANALYZER_TIMELINE_TIMELINE_H_
#define ASHLAR_ANALYZER_TIMELINE_TIMELINE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::timeline {

// Values of columns in few bytes: a timeline of ten million events has millions of each. Both convert from and to what
// they stand for, so that code speaks of events and optionals as ever.
//
//   ColumnIndex freed = kNever;                  // 4 bytes in place of 8
//   if (event < freed) ...
//   ColumnBytes requested = std::nullopt;        // 8 bytes in place of 16
//   total += requested.value_or(size_bytes);

using EventIndex = std::int64_t;
inline constexpr EventIndex kBeforeWindow = -1;
inline constexpr EventIndex kNever = std::numeric_limits<EventIndex>::max();

// The most events that a timeline has: the indices of more do not fit a column.
inline constexpr EventIndex kMostEvents = std::numeric_limits<std::int32_t>::max() - 1;

// kBeforeWindow, kNever, or an index below kMostEvents.
class ColumnIndex {
 public:
  constexpr ColumnIndex() = default;
  constexpr ColumnIndex(EventIndex event)  // NOLINT: it is that index
      : value_(event == kNever ? kNeverHere : static_cast<std::int32_t>(event)) {}
  constexpr operator EventIndex() const { return value_ == kNeverHere ? kNever : value_; }  // NOLINT

 private:
  static constexpr std::int32_t kNeverHere = std::numeric_limits<std::int32_t>::max();
  std::int32_t value_ = static_cast<std::int32_t>(kBeforeWindow);
};

// A number of bytes or nothing. No block has 2^64 - 1 bytes.
class ColumnBytes {
 public:
  constexpr ColumnBytes() = default;
  constexpr ColumnBytes(std::nullopt_t) {}                                                             // NOLINT
  constexpr ColumnBytes(std::uint64_t bytes) : bytes_(bytes) {}                                        // NOLINT
  constexpr ColumnBytes(const std::optional<std::uint64_t>& bytes) : bytes_(bytes.value_or(kNone)) {}  // NOLINT
  constexpr operator std::optional<std::uint64_t>() const {                                            // NOLINT
    return has_value() ? std::optional(bytes_) : std::nullopt;
  }
  constexpr bool has_value() const { return bytes_ != kNone; }
  constexpr std::uint64_t operator*() const { return bytes_; }
  constexpr std::uint64_t value_or(std::uint64_t other) const { return has_value() ? bytes_ : other; }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes_ = kNone;
};

enum class Maker : std::uint8_t { kObserved, kReplayed };

struct BlockSpan {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  ColumnBytes requested_bytes = {};  // nullopt where the trace does not say
  Stream stream{};
  PoolId pool = {};
  bool is_small_pool = false;
  bool size_is_minimum = false;
  trace::StackId stack = trace::kNoStack;  // of the allocation
  std::uint32_t segment = 0;               // index in segments(): where it was when it was allocated or first seen
  ColumnIndex alloc_event = kBeforeWindow;
  ColumnIndex free_requested_event = kNever;
  ColumnIndex free_completed_event = kNever;

  std::uint64_t End() const { return address + size_bytes; }
  std::uint64_t AskedBytes() const { return requested_bytes.value_or(size_bytes); }  // what it spans, where not told
  bool IsLiveAfter(EventIndex event) const { return alloc_event <= event && event < free_requested_event; }
  bool IsActiveAfter(EventIndex event) const { return alloc_event <= event && event < free_completed_event; }
};

// The range of a segment from one event on.
struct SegmentExtent {
  EventIndex event = kBeforeWindow;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;

  std::uint64_t End() const { return address + size_bytes; }
};

// An ordinary segment has one extent. An expandable one is a contiguous mapped range: it grows and shrinks, a map
// that closes a hole ends the upper of the two ranges it joins, an unmap that punches a hole begins a new upper one.
struct SegmentSpan {
  std::vector<SegmentExtent> extents = {};  // never empty, in event order
  Stream stream{};
  PoolId pool = {};
  bool is_small_pool = false;
  bool is_expandable = false;
  trace::StackId stack = trace::kNoStack;
  EventIndex end_event = kNever;

  EventIndex BeginEvent() const { return extents.front().event; }
  bool ExistsAfter(EventIndex event) const { return BeginEvent() <= event && event < end_event; }
  // The extent in force after `event`; the span must exist then.
  const SegmentExtent& ExtentAfter(EventIndex event) const;
};

// The greatest value of a sum, and the first event after which it holds (kBeforeWindow: the start state).
struct Peak {
  std::uint64_t bytes = 0;
  EventIndex event = kBeforeWindow;
};

// The columns themselves. Plain data, so that a test can spoil it; everyone else takes a Timeline.
struct TimelineColumns {
  int device = 0;
  Maker maker = Maker::kObserved;
  trace::EventList events;  // those of the snapshot, or of the replay: shared, not copied; may be left out
  Totals start_totals;
  std::vector<Totals> totals;         // after each event
  std::vector<BlockSpan> blocks;      // first those of the start state by address, then in order of allocation
  std::vector<SegmentSpan> segments;  // likewise
  std::vector<EventIndex> oom_events;
  Peak allocated_peak, active_peak, reserved_peak;
  std::vector<trace::Note> notes;
};

class Timeline {
 public:
  Timeline() = default;  // of a device without events and memory
  explicit Timeline(TimelineColumns columns) : columns_(std::move(columns)) {}

  int device() const { return columns_.device; }
  Maker maker() const { return columns_.maker; }
  absl::Span<const trace::Event> events() const { return columns_.events; }
  const trace::EventList& event_list() const { return columns_.events; }  // to share them
  EventIndex event_count() const {
    return static_cast<EventIndex>(columns_.events.empty() ? columns_.totals.size() : columns_.events.size());
  }
  EventIndex last_event() const { return event_count() - 1; }  // kBeforeWindow if there is none

  // After event i, i in [kBeforeWindow, event_count()).
  const Totals& TotalsAfter(EventIndex event) const;
  absl::Span<const Totals> totals() const { return columns_.totals; }

  absl::Span<const BlockSpan> blocks() const { return columns_.blocks; }
  absl::Span<const SegmentSpan> segments() const { return columns_.segments; }
  bool HasAllocations() const;  // false: a state alone, without how it came about
  absl::Span<const EventIndex> oom_events() const { return columns_.oom_events; }
  const Peak& allocated_peak() const { return columns_.allocated_peak; }
  const Peak& active_peak() const { return columns_.active_peak; }
  const Peak& reserved_peak() const { return columns_.reserved_peak; }
  absl::Span<const trace::Note> notes() const { return columns_.notes; }

  // The segments with their blocks as they stand after `event`. O(all spans).
  State StateAt(EventIndex event) const;

  // Recomputes everything from the spans alone: blocks do not overlap and lie within their segments, sums and peaks
  // are what the spans add up to. Internal: a failure is a bug of the maker. O(n log n).
  absl::Status Validate() const;

 private:
  TimelineColumns columns_;
};

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_TIMELINE_H_
