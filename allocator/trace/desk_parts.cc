#include "allocator/trace/desk_parts.h"

#include <cstddef>
#include <limits>

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

void DeskParts::Begin() {
  parts_.emplace_back();
  heads_ = {};
  is_ordered_ = false;
  had_parts_ = true;
}

DeskParts::Head DeskParts::HeadOf(std::size_t index) const {
  const Entry& next = parts_[index].Next();
  return {next.turn, next.event.time_us, index};
}

void DeskParts::Order() {
  if (is_ordered_) return;
  is_ordered_ = true;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].HasNext()) heads_.push(HeadOf(i));
  }
}

void DeskParts::Move(Part& part, std::vector<Event>& trace) {
  Event& event = part.entries[part.next++].event;
  event.time_us = LaterTime(event.time_us);
  trace.push_back(event);
}

// One part after another, each until another's event comes first: times are coarse, so that this is seldom.
void DeskParts::MoveBefore(std::uint64_t turn, std::vector<Event>& trace) {
  Order();
  while (!heads_.empty() && heads_.top().turn < turn) {
    const std::size_t index = heads_.top().index;
    Part& part = parts_[index];
    heads_.pop();
    do {
      Move(part, trace);
    } while (part.HasNext() && part.Next().turn < turn && (heads_.empty() || heads_.top() > HeadOf(index)));
    if (part.HasNext()) heads_.push(HeadOf(index));
  }
}

void DeskParts::MoveRest(std::vector<Event>& trace) {
  MoveBefore(std::numeric_limits<std::uint64_t>::max(), trace);
  parts_.clear();
  heads_ = {};
}

}  // namespace ashlar::trace::codec
