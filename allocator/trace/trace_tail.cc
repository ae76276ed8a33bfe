#include "allocator/trace/trace_tail.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::trace {
namespace {

bool IsOfSegment(Action action) {
  return action == Action::kSegmentAlloc || action == Action::kSegmentFree || action == Action::kSegmentMap ||
         action == Action::kSegmentUnmap;
}

struct Held {
  std::uint64_t requested_bytes = 0;
  std::uint64_t reserved_bytes = 0;
};

Held HeldAtEnd(const Snapshot& snapshot, std::size_t device) {
  Held out;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (static_cast<std::size_t>(segment.device) != device) continue;
    out.reserved_bytes += segment.size_bytes;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == BlockState::kLive) out.requested_bytes += block.requested_bytes.value_or(block.size_bytes);
    }
  }
  return out;
}

std::string FailuresOf(const TraceSums& sums) {
  if (sums.failures() == 0) return "no request failed";
  return absl::StrCat(sums.failures(), sums.failures() == 1 ? " request" : " requests", " failed, the last at entry ",
                      sums.last_failure());
}

}  // namespace

std::size_t BetweenRequests(absl::Span<const Event> events, std::size_t at) {
  if (at == 0 || at >= events.size()) return at;
  const bool is_in_free = events[at].action == Action::kFreeCompleted &&
                          events[at - 1].action == Action::kFreeRequested &&
                          events[at].address == events[at - 1].address;
  if (is_in_free) --at;
  while (at > 0 && IsOfSegment(events[at - 1].action)) --at;
  return at;
}

std::optional<Note> DescribeWindow(const TraceSums& sums, std::uint64_t held, std::size_t device,
                                   std::uint64_t max_events, Snapshot& snapshot) {
  const std::uint64_t before = sums.events() - std::min(sums.events(), held);
  if (before == 0) return std::nullopt;
  const Held at_end = HeldAtEnd(snapshot, device);
  const TraceSums::Peak requested = sums.RequestedPeak(at_end.requested_bytes);
  const TraceSums::Peak reserved = sums.ReservedPeak(at_end.reserved_bytes);
  snapshot.windows.resize(std::max(snapshot.windows.size(), device + 1));
  snapshot.windows[device] = {.events_before = before,
                              .events_after = 0,
                              .failures = sums.failures(),
                              .allocated_peak_bytes = requested.bytes,
                              .reserved_peak_bytes = reserved.bytes};
  return Note{"window",
              absl::StrCat("older events of device ", device, " were summed and are not held (--max-events ",
                           max_events, "): over all ", sums.events(), " entries requested memory was highest, ",
                           FormatBytes(requested.bytes), ", after entry ", requested.event, ", reserved memory, ",
                           FormatBytes(reserved.bytes), ", after entry ", reserved.event, "; ", FailuresOf(sums),
                           "; what is shown begins at entry ", before),
              before};
}

std::size_t TraceTail::TooMany(absl::Span<const Event> events) const {
  const bool are_few =
      max_events_ == 0 || events.size() <= max_events_ || events.size() - max_events_ <= max_events_ / 4;
  return are_few ? 0 : Rest(events);
}

std::size_t TraceTail::Rest(absl::Span<const Event> events) const {
  if (max_events_ == 0 || events.size() <= max_events_) return 0;
  const std::size_t at = events.size() - static_cast<std::size_t>(max_events_);
  const std::size_t between = BetweenRequests(events, at);
  // Of a file that holds little but segments the list is cut anywhere: it stays bounded.
  return at - between > max_events_ / 8 + 64 ? at : between;
}

void TraceTail::Drop(std::size_t count, std::vector<Event>& events) {
  const auto end = events.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto event = events.begin(); event != end; ++event) sums_.Add(*event);
  events.erase(events.begin(), end);
}

void TraceTail::Describe(absl::Span<const Event> events, std::size_t device, Snapshot& snapshot) const {
  if (dropped() == 0) return;
  TraceSums all = sums_;
  for (const Event& event : events) all.Add(event);
  std::optional<Note> note = DescribeWindow(all, events.size(), device, max_events_, snapshot);
  if (note.has_value()) snapshot.notes.push_back(*std::move(note));
}

}  // namespace ashlar::trace
