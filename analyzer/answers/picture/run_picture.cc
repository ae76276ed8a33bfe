#include "analyzer/answers/picture/run_picture.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/answers/picture/free_sums.h"
#include "analyzer/answers/picture/moments.h"

namespace ashlar::answers {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;
using timeline::Extent;
using timeline::SegmentSpan;
using timeline::Timeline;

// Values by the number that they got when they were first asked for.
template <typename Value>
class Numbering {
 public:
  explicit Numbering(std::vector<Value>& values) : values_(values) {}
  std::uint32_t operator()(const Value& value) {
    const auto [found, is_new] = numbers_.try_emplace(value, static_cast<std::uint32_t>(values_.size()));
    if (is_new) values_.push_back(value);
    return found->second;
  }

 private:
  std::vector<Value>& values_;
  std::map<Value, std::uint32_t> numbers_;
};

void AddSums(const Timeline& timeline, MomentColumns& out) {
  FreeSums sums(timeline);
  for (const EventIndex event : out.events) {
    sums.AdvanceTo(event);
    const timeline::Totals& totals = timeline.TotalsAfter(event);
    const bool is_known = sums.unknown_requests() == 0;
    out.requested_bytes.push_back(is_known ? Signed(totals.requested_bytes) : kUnknownBytes);
    out.allocated_bytes.push_back(Signed(totals.allocated_bytes));
    out.active_bytes.push_back(Signed(totals.active_bytes));
    out.reserved_bytes.push_back(Signed(totals.reserved_bytes));
    out.stranded_bytes.push_back(Signed(sums.stranded_bytes()));
    out.private_free_bytes.push_back(Signed(sums.private_free_bytes()));
  }
}

void AddPlaces(const RunFacts& facts, MomentColumns& out) {
  for (const EventIndex event : out.events) {
    const bool is_told = event >= 0 && facts.place_of;
    out.places.push_back(is_told ? facts.place_of(event) : event);
  }
}

// An event without a time has that of the one before, the first ones that of the first that has any.
void AddTimes(const Timeline& timeline, const RunFacts& facts, MomentColumns& out) {
  const auto time_of = [&](EventIndex event) {
    return facts.time_of ? facts.time_of(event) : timeline.events()[static_cast<std::size_t>(event)].time_us;
  };
  EventIndex at = 0;
  while (at < timeline.event_count() && time_of(at) == trace::kNoTime) ++at;
  if (at == timeline.event_count()) return;
  std::int64_t time_us = time_of(at);
  for (const EventIndex event : out.events) {
    for (; at <= event; ++at) {
      const std::int64_t told = time_of(at);
      if (told != trace::kNoTime) time_us = told;
    }
    out.times_us.push_back(time_us);
  }
}

void AddSpans(const Timeline& timeline, const RunFacts& facts, const MomentTable& moments, PicturedRun& made) {
  RunPicture& out = made.run;
  Numbering<Stream> streams(out.streams);
  Numbering<PoolId> pools(out.pools);
  for (std::uint32_t i = 0; i < timeline.blocks().size(); ++i) {
    const BlockSpan& span = timeline.blocks()[i];
    const Moment alloc = moments.Since(span.alloc_event);
    const Moment done = moments.Since(span.free_completed_event);
    if (alloc >= done) continue;
    made.block_sources.push_back(i);
    out.blocks.push_back({.address = span.address,
                          .size_bytes = span.size_bytes,
                          .requested_bytes = span.requested_bytes,
                          .alloc_event = span.alloc_event,
                          .alloc = alloc,
                          .freed = moments.Since(span.free_requested_event),
                          .done = done,
                          .stack = span.stack,
                          .text = facts.text_of ? facts.text_of(span.alloc_event) : kNoText,
                          .stream = streams(span.stream),
                          .pool = pools(span.pool),
                          .is_small_pool = span.is_small_pool,
                          .size_is_minimum = span.size_is_minimum});
  }
  for (const SegmentSpan& span : timeline.segments()) {
    const Moment end = moments.Since(span.end_event);
    if (moments.Since(span.BeginEvent()) >= end) continue;
    SegmentPicture segment{.extents = {},
                           .end = end,
                           .stack = span.stack,
                           .stream = streams(span.stream),
                           .pool = pools(span.pool),
                           .is_small_pool = span.is_small_pool,
                           .is_expandable = span.is_expandable};
    for (const Extent& extent : span.extents) {
      const ExtentPicture drawn{moments.Since(extent.event), extent.address, extent.size_bytes};
      if (drawn.moment >= end) break;
      if (!segment.extents.empty() && segment.extents.back().moment == drawn.moment) segment.extents.pop_back();
      segment.extents.push_back(drawn);
    }
    out.segments.push_back(std::move(segment));
  }
}

PeakPicture PeakOf(const timeline::Peak& peak, const MomentTable& moments) {
  return {moments.Since(peak.event), peak.bytes};
}

}  // namespace

PicturedRun PictureOfRun(const Timeline& timeline, const RunFacts& facts) {
  PicturedRun made;
  RunPicture& out = made.run;
  out.event_count = static_cast<std::uint64_t>(timeline.event_count());
  out.moments.events = ChooseMoments(timeline, facts.most_moments, facts.pointed_at);
  out.is_thinned = out.moments.size() != out.event_count + 1;
  AddSums(timeline, out.moments);
  AddPlaces(facts, out.moments);
  AddTimes(timeline, facts, out.moments);
  const MomentTable moments(out.moments.events, timeline.event_count());
  AddSpans(timeline, facts, moments, made);
  out.allocated_peak = PeakOf(timeline.allocated_peak(), moments);
  out.active_peak = PeakOf(timeline.active_peak(), moments);
  out.reserved_peak = PeakOf(timeline.reserved_peak(), moments);
  for (const EventIndex event : timeline.oom_events()) out.failures.push_back(moments.Since(event));
  out.verdict = out.failures.empty() ? out.allocated_peak.moment : out.failures.back();
  return made;
}

}  // namespace ashlar::answers
