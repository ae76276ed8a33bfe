#include "analyzer/answers/picture/moments.h"

#include <algorithm>
#include <numeric>

namespace ashlar::answers {
namespace {

using timeline::EventIndex;
using timeline::Timeline;
using timeline::Totals;

// The first highest and lowest of a sum in [begin, end).
void KeepExtremes(absl::Span<const Totals> totals, EventIndex begin, EventIndex end, std::uint64_t Totals::*sum,
                  std::vector<EventIndex>& out) {
  EventIndex low = begin;
  EventIndex high = begin;
  for (EventIndex event = begin; event < end; ++event) {
    const std::uint64_t bytes = totals[static_cast<std::size_t>(event)].*sum;
    if (bytes < totals[static_cast<std::size_t>(low)].*sum) low = event;
    if (bytes > totals[static_cast<std::size_t>(high)].*sum) high = event;
  }
  out.push_back(low);
  out.push_back(high);
}

void KeepOfStretches(const Timeline& timeline, std::size_t count, std::vector<EventIndex>& out) {
  const auto stretches = static_cast<EventIndex>(std::max<std::size_t>(count, 1));
  const EventIndex length = (timeline.event_count() + stretches - 1) / stretches;
  for (EventIndex begin = 0; begin < timeline.event_count(); begin += length) {
    const EventIndex end = std::min(begin + length, timeline.event_count());
    KeepExtremes(timeline.totals(), begin, end, &Totals::allocated_bytes, out);
    KeepExtremes(timeline.totals(), begin, end, &Totals::reserved_bytes, out);
  }
}

}  // namespace

std::vector<EventIndex> ChooseMoments(const Timeline& timeline, std::size_t most,
                                      absl::Span<const EventIndex> pointed_at) {
  std::vector<EventIndex> out;
  const auto count = static_cast<std::size_t>(timeline.event_count());
  if (count < most) {
    out.resize(count + 1);
    std::iota(out.begin(), out.end(), timeline::kBeforeWindow);
    return out;
  }
  out = {timeline::kBeforeWindow, timeline.last_event(), timeline.allocated_peak().event, timeline.active_peak().event,
         timeline.reserved_peak().event};
  out.insert(out.end(), timeline.oom_events().begin(), timeline.oom_events().end());
  for (const EventIndex event : pointed_at) {
    if (timeline::kBeforeWindow <= event && event < timeline.event_count()) out.push_back(event);
  }
  KeepOfStretches(timeline, most / 4, out);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

MomentTable::MomentTable(absl::Span<const EventIndex> events, EventIndex event_count)
    : count_(static_cast<Moment>(events.size())) {
  since_.reserve(static_cast<std::size_t>(event_count) + 1);
  for (Moment moment = 0; moment < count_; ++moment) {
    while (static_cast<EventIndex>(since_.size()) - 1 <= events[moment]) since_.push_back(moment);
  }
}

}  // namespace ashlar::answers
