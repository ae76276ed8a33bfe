#include "commands/explain/picture/run_picture.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/observed.h"
#include "commands/explain/picture/free_sums.h"
#include "commands/explain/picture/picture.h"

namespace ashlar::answers {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;
using timeline::SegmentExtent;
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

// A block by its index in the timeline, and what speaks for keeping it.
struct WeighedBlock {
  std::uint32_t index = 0;
  bool is_of_verdict = false;  // in use at the verdict's moment
  double bytes_events = 0;
};

std::vector<WeighedBlock> BlocksAtMoments(const Timeline& timeline, const MomentTable& moments, Moment verdict) {
  std::vector<WeighedBlock> out;
  for (std::uint32_t i = 0; i < timeline.blocks().size(); ++i) {
    const BlockSpan& span = timeline.blocks()[i];
    const Moment alloc = moments.Since(span.alloc_event);
    const Moment done = moments.Since(span.free_completed_event);
    if (alloc >= done) continue;
    const EventIndex events =
        std::min<EventIndex>(span.free_requested_event, timeline.event_count()) - span.alloc_event;
    out.push_back({i, alloc <= verdict && verdict < done,
                   static_cast<double>(span.size_bytes) * static_cast<double>(std::max<EventIndex>(events, 1))});
  }
  return out;
}

// Which blocks are drawn, ascending.
std::vector<std::uint32_t> ChooseBlocks(std::vector<WeighedBlock> all, std::size_t most, LeftOutBlocks& left_out) {
  if (all.size() > most) {
    const auto is_before = [](const WeighedBlock& a, const WeighedBlock& b) {
      return std::tuple(!a.is_of_verdict, -a.bytes_events, a.index) <
             std::tuple(!b.is_of_verdict, -b.bytes_events, b.index);
    };
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(all.begin(), end, all.end(), is_before);
    const auto add = [](double sum, const WeighedBlock& block) { return sum + block.bytes_events; };
    const double lost = std::accumulate(end, all.end(), 0.0, add);
    left_out = {all.size() - most, lost / std::accumulate(all.begin(), end, lost, add)};
    all.erase(end, all.end());
  }
  std::vector<std::uint32_t> out;
  for (const WeighedBlock& block : all) out.push_back(block.index);
  std::sort(out.begin(), out.end());
  return out;
}

void AddSpans(const Timeline& timeline, const RunFacts& facts, const MomentTable& moments, PicturedRun& made) {
  RunPicture& out = made.run;
  Numbering<Stream> streams(out.streams);
  Numbering<PoolId> pools(out.pools);
  made.block_sources = ChooseBlocks(BlocksAtMoments(timeline, moments, out.verdict), facts.most_blocks, out.left_out);
  for (const std::uint32_t i : made.block_sources) {
    const BlockSpan& span = timeline.blocks()[i];
    out.blocks.push_back({.address = span.address,
                          .size_bytes = span.size_bytes,
                          .requested_bytes = span.requested_bytes,
                          .alloc_event = span.alloc_event,
                          .alloc = moments.Since(span.alloc_event),
                          .freed = moments.Since(span.free_requested_event),
                          .done = moments.Since(span.free_completed_event),
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
    for (const SegmentExtent& extent : span.extents) {
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
  out.allocated_peak = PeakOf(timeline.allocated_peak(), moments);
  out.active_peak = PeakOf(timeline.active_peak(), moments);
  out.reserved_peak = PeakOf(timeline.reserved_peak(), moments);
  for (const EventIndex event : timeline.oom_events()) out.failures.push_back(moments.Since(event));
  out.verdict = out.failures.empty() ? out.allocated_peak.moment : out.failures.back();
  AddSpans(timeline, facts, moments, made);
  return made;
}

namespace {

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

BlockTexts::BlockTexts(const timeline::Timeline& timeline, const trace::LabelTable& labels) {
  if (labels.size() == 0) return;
  absl::flat_hash_map<std::uint64_t, EventIndex> allocated_by;  // the block that lives at an address
  for (EventIndex i = 0; i < timeline.event_count(); ++i) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(i)];
    const trace::Label& label = labels.label(event.label);
    if (event.action == trace::Action::kAlloc) {
      allocated_by[event.address] = i;
      Put(i, label.user_metadata.empty() ? label.internal_metadata : label.user_metadata);
    } else if (event.action == trace::Action::kFreeRequested) {
      allocated_by.erase(event.address);
    } else if (event.action == trace::Action::kAnnotate) {
      const auto found = allocated_by.find(event.address);
      if (found != allocated_by.end()) Put(found->second, label.user_metadata);
    }
  }
}

void BlockTexts::Put(EventIndex alloc_event, const std::string& text) {
  if (text.empty()) return;
  const auto [found, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text);
  text_of_[alloc_event] = found->second;
}

std::uint32_t BlockTexts::TextOf(EventIndex alloc_event) const {
  const auto found = text_of_.find(alloc_event);
  return found == text_of_.end() ? kNoText : found->second;
}

namespace {

using trace::Action;
using trace::Event;

// A free that was completed had been asked for, also where the record leaves that out.
std::vector<Event> WithRequestedFrees(const std::vector<Event>& events) {
  std::vector<Event> out;
  absl::flat_hash_set<std::uint64_t> asked;
  for (const Event& event : events) {
    if (event.action == Action::kFreeRequested) asked.insert(event.address);
    if (event.action == Action::kFreeCompleted && asked.erase(event.address) == 0) {
      Event request = event;
      request.action = Action::kFreeRequested;
      out.push_back(request);
    }
    out.push_back(event);
  }
  return out;
}

trace::Snapshot AsDevice(const trace::Snapshot& snapshot) {
  trace::Snapshot out;
  out.segments = snapshot.host.segments;
  out.device_traces = {WithRequestedFrees(snapshot.host.events)};
  return out;
}

}  // namespace

std::optional<RunPicture> PictureOfHost(const trace::Snapshot& snapshot, const PictureLimits& limits) {
  if (snapshot.host.IsEmpty()) return std::nullopt;
  trace::Snapshot host = AsDevice(snapshot);
  absl::StatusOr<timeline::Timeline> timeline = timeline::MakeObservedTimeline({host, 0}, replay::CallsSizeRule());
  if (!timeline.ok()) {
    host.device_traces.clear();
    timeline = timeline::MakeObservedTimeline({host, 0}, replay::CallsSizeRule());
    if (!timeline.ok()) return std::nullopt;
  }
  RunPicture out =
      PictureOfRun(*timeline, {.most_moments = limits.what_if_moments, .most_blocks = limits.what_if_blocks}).run;
  out.kind = RunKind::kHost;
  out.name = "pinned host memory";
  return out;
}

}  // namespace ashlar::answers
