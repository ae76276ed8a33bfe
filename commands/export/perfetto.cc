#include "commands/export/perfetto.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "commands/explain/picture/free_sums.h"

namespace ashlar::exports {
namespace {

constexpr std::int64_t kNanosPerMicro = 1000;
constexpr std::array kCounterNames = {"allocated", "active", "reserved", "requested", "stranded"};
constexpr std::uint64_t kSlicesRank = kCounterNames.size() + 1;

std::int64_t NanosOf(const EventClock& clock, timeline::EventIndex event) {
  return clock.MicrosOf(event) * kNanosPerMicro;
}

// Memory given back by the events [first, last].
struct Returned {
  timeline::EventIndex first = 0, last = 0;
  std::uint64_t bytes = 0;
};

bool GivesBack(trace::Action action) {
  return action == trace::Action::kSegmentFree || action == trace::Action::kSegmentUnmap;
}

// Runs of events that return memory to the device.
std::vector<Returned> ReturnsOf(const timeline::Timeline& timeline) {
  std::vector<Returned> out;
  for (timeline::EventIndex i = 0; i < timeline.event_count(); ++i) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(i)];
    if (!GivesBack(event.action)) continue;
    if (out.empty() || out.back().last + 1 != i) out.push_back({i, i, 0});
    out.back().last = i;
    out.back().bytes += event.size_bytes;
  }
  return out;
}

// What comes next says why: an allocator that returns its cache and grows at once has tried again.
const char* NameOf(const Returned& returned, const timeline::Timeline& timeline) {
  const auto next = static_cast<std::size_t>(returned.last + 1);
  if (next >= timeline.events().size()) return "memory returned to the device";
  const trace::Action action = timeline.events()[next].action;
  const bool is_retry = trace::IsGrowth(action) || action == trace::Action::kOom;
  return is_retry ? "cache returned, then another try (or empty_cache)" : "memory returned to the device";
}

}  // namespace

void PerfettoWriter::Counters(const ExportedRun& run, const EventClock& clock, std::uint64_t parent) {
  const timeline::Timeline& timeline = run.traced.timeline;
  std::array<std::uint64_t, kCounterNames.size()> tracks{};
  std::array<std::optional<std::uint64_t>, kCounterNames.size()> last{};
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    packets_.CounterTrack(tracks[i] = NextId(), parent, kCounterNames[i], i + 1);
  }
  answers::FreeSums free(timeline);
  for (timeline::EventIndex event = timeline::kBeforeWindow; event < timeline.event_count(); ++event) {
    free.AdvanceTo(event);
    const timeline::Totals& totals = timeline.TotalsAfter(event);
    const std::array<std::uint64_t, kCounterNames.size()> values = {totals.allocated_bytes, totals.active_bytes,
                                                                    totals.reserved_bytes, totals.requested_bytes,
                                                                    free.stranded_bytes()};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (last[i] == values[i]) continue;
      last[i] = values[i];
      packets_.Counter(tracks[i], NanosOf(clock, event), values[i]);
    }
  }
}

void PerfettoWriter::Slices(const std::vector<Slice>& slices, const std::string& name, bool may_nest,
                            std::uint64_t rank, const EventClock& clock, std::uint64_t parent) {
  if (slices.empty()) return;
  std::vector<LaneSlice> intervals;
  for (const Slice& slice : slices) intervals.push_back({slice.begin, std::max(slice.begin, slice.end)});
  const std::vector<std::size_t> lanes = LanesOf(intervals, may_nest);
  const std::size_t lane_count = *std::max_element(lanes.begin(), lanes.end()) + 1;
  std::vector<std::uint64_t> tracks;
  const std::uint64_t group = NextId();
  packets_.Track(group, parent, name, rank);
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    if (lane_count == 1) {
      tracks.push_back(group);
    } else {
      packets_.Track(tracks.emplace_back(NextId()), group, absl::StrCat(name, " ", lane + 1), lane);
    }
  }
  // What ends at an event ends before anything begins there, the innermost first.
  struct Edge {
    timeline::EventIndex event;
    bool is_begin;
    timeline::EventIndex other;
    std::size_t slice;
  };
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (intervals[i].end == intervals[i].begin) continue;
    edges.push_back({intervals[i].begin, true, intervals[i].end, i});
    edges.push_back({intervals[i].end, false, intervals[i].begin, i});
  }
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tuple(a.event, a.is_begin, -a.other) < std::tuple(b.event, b.is_begin, -b.other);
  });
  for (const Edge& edge : edges) {
    const std::uint64_t track = tracks[lanes[edge.slice]];
    if (edge.is_begin) {
      packets_.SliceBegin(track, NanosOf(clock, edge.event), slices[edge.slice].name, slices[edge.slice].facts);
    } else {
      packets_.SliceEnd(track, NanosOf(clock, edge.event));
    }
  }
}

std::vector<PerfettoWriter::Slice> PerfettoWriter::StepsOf(const ExportedRun& run) {
  std::vector<Slice> out;
  for (const analyses::EventRange& step : run.steps.steps) {
    out.push_back({absl::StrCat("step ", out.size() + 1), step.begin, step.end});
  }
  return out;
}

std::vector<PerfettoWriter::Slice> PerfettoWriter::PhasesOf(const ExportedRun& run) {
  std::vector<Slice> out;
  for (const analyses::Phase& phase : run.steps.phases) {
    out.push_back({phase.name, phase.events.begin, phase.events.end});
  }
  return out;
}

std::vector<PerfettoWriter::Slice> PerfettoWriter::SegmentsOf(const ExportedRun& run) {
  std::vector<Slice> out;
  for (const timeline::SegmentSpan& segment : run.traced.timeline.segments()) {
    std::uint64_t most = 0;
    for (const timeline::SegmentExtent& extent : segment.extents) most = std::max(most, extent.size_bytes);
    Slice slice{FormatBytes(most), segment.BeginEvent(),
                std::min(segment.end_event, run.traced.timeline.event_count())};
    slice.facts = {{"address", segment.extents.front().address},
                   {"most_bytes", most},
                   {"stream", Handle(segment.stream)},
                   {"kind", std::string(segment.is_expandable ? "expandable" : "fixed")},
                   {"class", std::string(segment.is_small_pool ? "small" : "large")}};
    if (!segment.pool.IsDefault()) {
      slice.facts.emplace_back("pool", absl::StrCat(segment.pool.first, ",", segment.pool.second));
    }
    if (!run.traced.stacks.stack(segment.stack).empty()) {
      slice.facts.emplace_back("line", analyses::StackLabel(run.traced.stacks, segment.stack));
    }
    out.push_back(std::move(slice));
  }
  return out;
}

void PerfettoWriter::Instants(const ExportedRun& run, const EventClock& clock, std::uint64_t parent) {
  const timeline::Timeline& timeline = run.traced.timeline;
  const std::uint64_t track = NextId();
  packets_.Track(track, parent, "moments", 0);
  for (const Returned& returned : ReturnsOf(timeline)) {
    packets_.Instant(
        track, NanosOf(clock, returned.last), NameOf(returned, timeline),
        {{"bytes", returned.bytes}, {"events", static_cast<std::uint64_t>(returned.last - returned.first + 1)}});
  }
  for (const timeline::EventIndex oom : timeline.oom_events()) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(oom)];
    packets_.Instant(track, NanosOf(clock, oom),
                     absl::StrCat("out of memory: ", FormatBytes(event.size_bytes), " requested"),
                     {{"event", static_cast<std::uint64_t>(oom)},
                      {"requested_bytes", event.size_bytes},
                      {"device_free_bytes", event.address},
                      {"line", analyses::StackLabel(run.traced.stacks, event.stack)}});
  }
  const timeline::Totals& totals = timeline.TotalsAfter(run.moment);
  packets_.Instant(track, NanosOf(clock, run.moment), absl::StrCat("explained: ", MomentInWords(run)),
                   {{"allocated_bytes", totals.allocated_bytes}, {"reserved_bytes", totals.reserved_bytes}});
}

void PerfettoWriter::Add(const ExportedRun& run) {
  const EventClock clock(run.traced.timeline.events());
  const std::uint64_t device = NextId();
  packets_.Track(device, 0, absl::StrCat("device ", run.device(), ": ", run.traced.source),
                 static_cast<std::uint64_t>(run.device()));
  Instants(run, clock, device);
  Counters(run, clock, device);
  Slices(StepsOf(run), "steps", /*may_nest=*/true, kSlicesRank, clock, device);
  Slices(PhasesOf(run), "phases", /*may_nest=*/true, kSlicesRank + 1, clock, device);
  Slices(SegmentsOf(run), "segments", /*may_nest=*/false, kSlicesRank + 2, clock, device);
}

namespace {

// Ends of the slices that are open on a lane, outermost first.
using OpenEnds = std::vector<timeline::EventIndex>;

bool TakeRoom(const LaneSlice& slice, bool may_nest, OpenEnds& open) {
  while (!open.empty() && open.back() <= slice.begin) open.pop_back();
  if (!open.empty() && (!may_nest || slice.end > open.back())) return false;
  open.push_back(slice.end);
  return true;
}

}  // namespace

std::vector<std::size_t> LanesOf(absl::Span<const LaneSlice> slices, bool may_nest) {
  std::vector<std::size_t> order(slices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(slices[a].begin, -slices[a].end) < std::pair(slices[b].begin, -slices[b].end);
  });
  std::vector<std::size_t> out(slices.size());
  std::vector<OpenEnds> lanes;
  for (const std::size_t i : order) {
    std::size_t lane = 0;
    while (lane < lanes.size() && !TakeRoom(slices[i], may_nest, lanes[lane])) ++lane;
    if (lane == lanes.size()) lanes.push_back({slices[i].end});
    out[i] = lane;
  }
  return out;
}

}  // namespace ashlar::exports
