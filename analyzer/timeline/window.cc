#include "analyzer/timeline/window.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/trace/trace_tail.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::timeline {
namespace {

using trace::Event;

struct Unit {
  absl::string_view suffix;
  WindowEnd::Kind kind;
  double factor;
};

// The longer suffix first: "ms" ends in "s".
constexpr Unit kUnits[] = {{"us", WindowEnd::Kind::kTime, 1},
                           {"ms", WindowEnd::Kind::kTime, 1e3},
                           {"s", WindowEnd::Kind::kTime, 1e6},
                           {"%", WindowEnd::Kind::kShare, 0.01},
                           {"", WindowEnd::Kind::kEvent, 1}};

absl::Status OutOfRange(const AskedWindow& asked, absl::string_view why) {
  return absl::OutOfRangeError(absl::StrCat("--window ", asked.text, ": ", why));
}

// The times of a file may be any: what lies further apart than a number holds is as far as one.
std::int64_t Elapsed(std::int64_t from_us, std::int64_t to_us) {
  if (to_us <= from_us) return 0;
  const std::uint64_t out = static_cast<std::uint64_t>(to_us) - static_cast<std::uint64_t>(from_us);
  return static_cast<std::int64_t>(std::min<std::uint64_t>(out, std::numeric_limits<std::int64_t>::max()));
}

// The first event at or after a time; events without one count with those before them.
absl::StatusOr<EventIndex> EventFrom(absl::Span<const Event> events, const WindowEnd& end, const AskedWindow& asked) {
  std::optional<std::int64_t> first;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].time_us == trace::kNoTime) continue;
    if (!first.has_value()) first = events[i].time_us;
    last = std::max(last, Elapsed(*first, events[i].time_us));
    if (static_cast<double>(last) >= end.value) return static_cast<EventIndex>(i);
  }
  if (!first.has_value()) return OutOfRange(asked, "this trace has no times: give an event or a share (20%)");
  return OutOfRange(asked,
                    absl::StrCat("this trace ends ", static_cast<double>(last) / 1e6, "s after its first event"));
}

absl::StatusOr<EventIndex> EventOf(absl::Span<const Event> events, const WindowEnd& end, const AskedWindow& asked) {
  const auto count = static_cast<double>(events.size());
  if (end.kind == WindowEnd::Kind::kTime) return EventFrom(events, end, asked);
  const double event = end.kind == WindowEnd::Kind::kShare ? std::floor(end.value * count) : end.value;
  if (event > count) return OutOfRange(asked, absl::StrCat("this trace has ", FormatCount(events.size()), " events"));
  return static_cast<EventIndex>(event);
}

EventIndex BeginOfRequest(absl::Span<const Event> events, EventIndex at) {
  return static_cast<EventIndex>(trace::BetweenRequests(events, static_cast<std::size_t>(at)));
}

bool ReadEnd(absl::string_view text, std::optional<WindowEnd>& out) {
  for (const Unit& unit : kUnits) {
    if (!absl::EndsWith(text, unit.suffix)) continue;
    double value = 0;
    const absl::string_view number = text.substr(0, text.size() - unit.suffix.size());
    const bool is_number = absl::SimpleAtod(number, &value) && std::isfinite(value) && value >= 0;
    const bool is_whole = unit.kind != WindowEnd::Kind::kEvent || value == std::floor(value);
    const bool is_share = unit.kind != WindowEnd::Kind::kShare || value <= 100;
    if (is_number && is_whole && is_share) out = WindowEnd{unit.kind, value * unit.factor};
    return is_number && is_whole && is_share;
  }
  return false;
}

trace::SnapshotBlock BlockOf(const StateBlock& block) {
  return {.address = block.address,
          .size_bytes = block.size_bytes,
          .requested_bytes = block.requested_bytes,
          .state = block.state,
          .stack = block.stack};
}

trace::SnapshotSegment SegmentOf(const StateSegment& segment, int device) {
  trace::SnapshotSegment out{.device = device,
                             .address = segment.address,
                             .size_bytes = segment.size_bytes,
                             .stream = segment.stream,
                             .is_small_pool = segment.is_small_pool,
                             .is_expandable = segment.is_expandable,
                             .pool = segment.pool,
                             .stack = segment.stack,
                             .blocks = {}};
  for (const StateBlock& block : segment.blocks) out.blocks.push_back(BlockOf(block));
  for (const FreeRange& range : FreeRanges(segment)) {
    out.blocks.push_back({.address = range.address, .size_bytes = range.size_bytes, .requested_bytes = {}});
  }
  std::sort(out.blocks.begin(), out.blocks.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return out;
}

// Those of the window, each free with what its block spans: the allocation that would tell may lie before.
std::vector<Event> EventsWithin(const Timeline& whole, const EventWindow& window) {
  const auto all = whole.events();
  std::vector<Event> out(all.begin() + window.from, all.begin() + window.to);
  for (const BlockSpan& block : whole.blocks()) {
    const EventIndex freed = block.free_completed_event;
    if (freed < window.from || freed >= window.to || block.size_is_minimum) continue;
    out[static_cast<std::size_t>(freed - window.from)].block_size_bytes = block.size_bytes;
  }
  return out;
}

trace::RecordingInfo InfoWithin(trace::RecordingInfo info, std::size_t event_count, const EventWindow& window) {
  const auto from = static_cast<std::uint64_t>(window.from);
  const auto to = static_cast<std::uint64_t>(window.to);
  const bool is_last = to == event_count;
  std::vector<trace::Fact> facts;
  std::optional<trace::fact::SettingsChanged> settings;  // in force as the window begins, where they were changed
  for (trace::Fact& fact : info.facts) {
    const auto* const limit = std::get_if<trace::fact::LimitSet>(&fact.what);
    if (fact.event < from && limit != nullptr) info.limit_bytes = limit->bytes;
    const auto* const changed = std::get_if<trace::fact::SettingsChanged>(&fact.what);
    if (fact.event < from && changed != nullptr) settings = *changed;
    if (fact.event < from || fact.event > to || (fact.event == to && !is_last)) continue;
    fact.event -= from;
    facts.push_back(fact);
  }
  if (settings.has_value()) facts.insert(facts.begin(), {*std::move(settings), 0});
  info.facts = std::move(facts);
  info.events_before += from;
  info.is_complete = info.is_complete && is_last;
  if (from > 0) info.start.reset();
  return info;
}

}  // namespace

absl::StatusOr<AskedWindow> ParseWindow(absl::string_view text) {
  AskedWindow out{.text = std::string(text)};
  const std::size_t colon = text.find(':');
  const absl::string_view from = text.substr(0, colon);
  const absl::string_view to = colon == absl::string_view::npos ? "" : text.substr(colon + 1);
  const bool is_given = colon != absl::string_view::npos && (!from.empty() || !to.empty());
  if (is_given && (from.empty() || ReadEnd(from, out.from)) && (to.empty() || ReadEnd(to, out.to))) return out;
  return absl::InvalidArgumentError(absl::StrCat(
      "--window: '", text, "' is not FROM:TO, each of them an event (120000), a time since the first event ",
      "(12.5s, 300ms), a share (20%) or nothing"));
}

absl::StatusOr<EventWindow> FindWindow(absl::Span<const Event> events, const AskedWindow& asked) {
  EventWindow out{0, static_cast<EventIndex>(events.size())};
  if (asked.from.has_value()) {
    const absl::StatusOr<EventIndex> at = EventOf(events, *asked.from, asked);
    if (!at.ok()) return at.status();
    out.from = BeginOfRequest(events, *at);
  }
  if (asked.to.has_value()) {
    const absl::StatusOr<EventIndex> at = EventOf(events, *asked.to, asked);
    if (!at.ok()) return at.status();
    out.to = BeginOfRequest(events, *at);
  }
  if (out.from < out.to) return out;
  return OutOfRange(asked, "no request lies between the two ends");
}

trace::Snapshot CutSnapshot(const trace::Snapshot& snapshot, const Timeline& whole, const EventWindow& window) {
  trace::Snapshot out;
  out.annotations = snapshot.annotations;
  out.stacks = snapshot.stacks;
  out.labels = snapshot.labels;
  out.host = snapshot.host;
  out.settings = snapshot.settings;
  out.traits = snapshot.traits;
  out.notes = snapshot.notes;
  const auto device = static_cast<std::size_t>(whole.device());
  out.device_traces.resize(device + 1);
  out.device_traces[device] = EventsWithin(whole, window);
  for (const StateSegment& segment : whole.StateAt(window.to - 1).segments) {
    out.segments.push_back(SegmentOf(segment, whole.device()));
  }
  if (snapshot.recording.has_value() && snapshot.recording->device == whole.device()) {
    out.recording = InfoWithin(*snapshot.recording, whole.events().size(), window);
  }
  if (window == EventWindow{0, static_cast<EventIndex>(whole.events().size())}) return out;
  out.notes.push_back({"trace_window",
                       absl::StrCat("events ", FormatCount(static_cast<std::uint64_t>(window.from)), " to ",
                                    FormatCount(static_cast<std::uint64_t>(window.to)), " of ",
                                    FormatCount(whole.events().size()), " were chosen; what lies outside is not shown"),
                       static_cast<std::uint64_t>(window.to - window.from)});
  return out;
}

}  // namespace ashlar::timeline
