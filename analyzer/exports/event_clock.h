// When events happened, for formats that need a time for each: the recorder's, made monotonic; a trace without times
// gets one microsecond an event.
//
//   const EventClock clock(timeline.events());
//   clock.MicrosOf(event);   // of kBeforeWindow: that of the first event; of kNever and later: behind the last
#ifndef ASHLAR_ANALYZER_EXPORTS_EVENT_CLOCK_H_
#define ASHLAR_ANALYZER_EXPORTS_EVENT_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::exports {

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

#endif  // ASHLAR_ANALYZER_EXPORTS_EVENT_CLOCK_H_
