// A walk over the events of a timeline: which block each is about, and when it was.
#ifndef ASHLAR_COMMANDS_EXPORT_EVENT_WALK_H_
#define ASHLAR_COMMANDS_EXPORT_EVENT_WALK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::exports {

// Which block of a timeline an event is about, walking forwards: spans stand in order of allocation, so it takes no
// search.
//
//   BlockOfEvent blocks(timeline);
//   for (const trace::Event& event : timeline.events()) {
//     const timeline::BlockSpan* block = blocks.Next(event);   // nullptr: an event of a segment, a failure
//   }
class BlockOfEvent {
 public:
  explicit BlockOfEvent(const timeline::Timeline& timeline) : timeline_(timeline) {
    while (next_ < timeline.blocks().size() && timeline.blocks()[next_].alloc_event == timeline::kBeforeWindow) {
      at_.emplace(timeline.blocks()[next_].address, next_);
      ++next_;
    }
  }

  const timeline::BlockSpan* Next(const trace::Event& event) {
    switch (event.action) {
      case trace::Action::kAlloc:
        at_[event.address] = next_;
        return &timeline_.blocks()[next_++];
      case trace::Action::kFreeRequested:
      case trace::Action::kFreeCompleted:
      case trace::Action::kAnnotate: {
        const auto known = at_.find(event.address);
        if (known == at_.end()) return nullptr;
        const timeline::BlockSpan* const block = &timeline_.blocks()[known->second];
        if (event.action == trace::Action::kFreeCompleted) at_.erase(known);
        return block;
      }
      default:
        return nullptr;
    }
  }

 private:
  const timeline::Timeline& timeline_;
  std::size_t next_ = 0;
  absl::flat_hash_map<std::uint64_t, std::size_t> at_;  // blocks in use, by address
};

// When events happened, for formats that need a time for each: the recorder's, made monotonic; a trace without times
// gets one microsecond an event.
//
//   const EventClock clock(timeline.events());
//   clock.MicrosOf(event);   // of kBeforeWindow: that of the first event; of kNever and later: behind the last
class EventClock {
 public:
  explicit EventClock(absl::Span<const trace::Event> events) : count_(static_cast<std::int64_t>(events.size())) {
    has_time_ = std::any_of(events.begin(), events.end(),
                            [](const trace::Event& event) { return event.time_us != trace::kNoTime; });
    if (!has_time_) return;
    times_.reserve(events.size());
    std::int64_t now = 0;
    for (const trace::Event& event : events) {
      if (event.time_us != trace::kNoTime) now = times_.empty() ? event.time_us : std::max(now, event.time_us);
      times_.push_back(now);
    }
  }

  bool has_time() const { return has_time_; }

  std::int64_t MicrosOf(timeline::EventIndex event) const {
    const std::int64_t at = std::clamp<std::int64_t>(event, 0, count_);
    if (!has_time_) return at;
    return at == count_ ? times_.back() + 1 : times_[static_cast<std::size_t>(at)];
  }

 private:
  std::int64_t count_;
  bool has_time_ = false;
  std::vector<std::int64_t> times_;
};

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_EVENT_WALK_H_
