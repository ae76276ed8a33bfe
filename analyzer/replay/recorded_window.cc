#include "analyzer/replay/recorded_window.h"

#include <utility>
#include <vector>

#include "allocator/core/inspect.h"
#include "analyzer/replay/log_replay.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {

RecordedMoment MomentOf(const core::CachingAllocator& allocator, int device) {
  RecordedMoment out;
  const core::Inspection inspection(allocator);
  inspection.WhileStill([&] {
    out = {inspection.StartNow(), inspection.PoolsNow(), inspection.LimitNow(), inspection.ReservationsNow()};
  });
  out.start.has_segments = true;
  for (trace::SnapshotSegment& segment : out.start.segments) segment.device = device;
  return out;
}

namespace {

using timeline::EventWindow;

// Of the allocator that was recorded.
timeline::BlockSizeRule RuleOf(const trace::Snapshot& snapshot) {
  if (trace::RecordsDeviceCalls(snapshot)) return CallsSizeRule();
  const absl::StatusOr<policy::Options> options = RecordedOptions(snapshot, GuessCompat(snapshot));
  return SizeRuleOf(options.ok() ? *options : policy::Options{});
}

// What stood when the window began, and the facts since.
void SetStart(RecordedMoment begin, std::vector<trace::ReservedRange> reservations, trace::RecordingInfo& info) {
  std::vector<trace::Fact> facts;
  for (const trace::AnyFact& fact : begin.pools) facts.push_back({fact, 0});
  facts.insert(facts.end(), info.facts.begin(), info.facts.end());
  info.facts = std::move(facts);
  info.limit_bytes = begin.limit_bytes;
  info.start = std::move(begin.start);
  info.reservations = std::move(reservations);
}

}  // namespace

absl::StatusOr<trace::Snapshot> CutTrace(const timeline::DeviceTrace& trace, const timeline::AskedWindow& asked) {
  const trace::Snapshot& snapshot = *trace.snapshot;
  const absl::StatusOr<EventWindow> window = timeline::FindWindow({trace.events.data(), trace.events.size()}, asked);
  if (!window.ok()) return window.status();
  absl::StatusOr<ObservedProgram> whole = ObserveProgram(trace, RuleOf(snapshot));
  if (!whole.ok()) return whole.status();
  if (!trace.NamesCalls()) return timeline::CutSnapshot(snapshot, whole->observed, *window);
  const absl::StatusOr<policy::Options> options = RecordedOptions(snapshot, GuessCompat(snapshot));
  if (!options.ok()) return options.status();
  const WarmReplayHints hints{.device_total_bytes = snapshot.recording->device_total_bytes};
  absl::StatusOr<RecordedMoments> moments = ReplayToMoments(trace, whole->program, *options, hints, *window);
  if (!moments.ok()) return timeline::CutSnapshot(snapshot, whole->observed, *window);
  trace::Snapshot out = timeline::CutSnapshot(snapshot, whole->observed, moments->window);
  SetStart(std::move(moments->begin), std::move(moments->end.reservations), *out.recording);
  return out;
}

}  // namespace ashlar::replay
