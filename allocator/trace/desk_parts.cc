#include "allocator/trace/desk_parts.h"

#include <limits>
#include <utility>

namespace ashlar::trace::codec {

bool DeskParts::Add(const Event& event, std::uint64_t turn) {
  std::vector<Entry>& entries = parts_.back().entries;
  if (!entries.empty() && turn < entries.back().turn) return false;
  entries.push_back({turn, event});
  return true;
}

std::int64_t DeskParts::LaterTime(std::int64_t time_us) {
  if (time_us == kNoTime) return time_us;
  if (time_us > time_us_) time_us_ = time_us;
  return had_parts_ ? time_us_ : time_us;
}

bool DeskParts::IsBefore(const Part& a, const Part& b) {
  return std::pair(a.Next().turn, a.Next().event.time_us) < std::pair(b.Next().turn, b.Next().event.time_us);
}

DeskParts::Leaders DeskParts::FindLeaders() {
  Leaders out;
  for (Part& part : parts_) {
    if (!part.HasNext()) continue;
    if (out.first == nullptr || IsBefore(part, *out.first)) {
      out.second = std::exchange(out.first, &part);
    } else if (out.second == nullptr || IsBefore(part, *out.second)) {
      out.second = &part;
    }
  }
  return out;
}

void DeskParts::Move(Part& part, std::vector<Event>& trace) {
  Event& event = part.entries[part.next++].event;
  event.time_us = LaterTime(event.time_us);
  trace.push_back(event);
}

// One part after another, each until another's event comes first: times are coarse, so that this is seldom.
void DeskParts::MoveBefore(std::uint64_t turn, std::vector<Event>& trace) {
  for (Leaders leaders = FindLeaders(); leaders.first != nullptr; leaders = FindLeaders()) {
    Part& part = *leaders.first;
    if (part.Next().turn >= turn) return;
    do {
      Move(part, trace);
    } while (part.HasNext() && part.Next().turn < turn &&
             (leaders.second == nullptr || IsBefore(part, *leaders.second)));
  }
}

void DeskParts::MoveRest(std::vector<Event>& trace) {
  MoveBefore(std::numeric_limits<std::uint64_t>::max(), trace);
  parts_.clear();
}

}  // namespace ashlar::trace::codec
