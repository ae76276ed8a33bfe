#include "analyzer/timeline/observed.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "analyzer/timeline/disagreement.h"
#include "analyzer/timeline/rewind.h"
#include "analyzer/timeline/segment_step.h"
#include "analyzer/timeline/timeline_builder.h"

namespace ashlar::timeline {
namespace {

// One line of a state's description; two states agree iff their lines do.
struct Line {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  const char* what = "";

  bool operator==(const Line& other) const {
    return address == other.address && size_bytes == other.size_bytes && absl::string_view(what) == other.what;
  }
};

const char* NameOf(trace::BlockState state) {
  return state == trace::BlockState::kLive ? "live block" : "pending block";
}

std::vector<Line> LinesOf(const State& state) {
  std::vector<Line> lines;
  for (const StateSegment& segment : state.segments) {
    lines.push_back({segment.address, segment.size_bytes, "segment"});
    for (const StateBlock& block : segment.blocks) {
      lines.push_back({block.address, block.size_bytes, NameOf(block.state)});
    }
  }
  return lines;
}

std::vector<Line> LinesOf(const trace::Snapshot& snapshot, int device) {
  std::vector<const trace::SnapshotSegment*> segments;
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device) segments.push_back(&segment);
  }
  std::sort(segments.begin(), segments.end(), [](const auto* a, const auto* b) { return a->address < b->address; });
  std::vector<Line> lines;
  for (const trace::SnapshotSegment* segment : segments) {
    lines.push_back({segment->address, segment->size_bytes, "segment"});
    for (const trace::SnapshotBlock& block : segment->blocks) {
      if (block.state != trace::BlockState::kFree) {
        lines.push_back({block.address, block.size_bytes, NameOf(block.state)});
      }
    }
  }
  return lines;
}

std::string Describe(const std::vector<Line>& lines, std::size_t index) {
  if (index >= lines.size()) return "nothing more";
  return absl::StrCat("a ", lines[index].what, " of ", lines[index].size_bytes, " B at ",
                      FormatAddress(lines[index].address));
}

std::size_t AllocationsOf(absl::Span<const trace::Event> events) {
  return static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(), [](const trace::Event& event) { return event.action == trace::Action::kAlloc; }));
}

}  // namespace

absl::Status CheckAgainstFinalState(const State& state, const trace::Snapshot& snapshot) {
  const std::vector<Line> ours = LinesOf(state);
  const std::vector<Line> final_lines = LinesOf(snapshot, state.device);
  if (ours == final_lines) return absl::OkStatus();
  std::size_t i = 0;
  while (i < ours.size() && i < final_lines.size() && ours[i] == final_lines[i]) ++i;
  return absl::FailedPreconditionError(absl::StrCat("device ", state.device, ": the events end with ",
                                                    Describe(ours, i), " where the final segments have ",
                                                    Describe(final_lines, i)));
}

absl::StatusOr<ObservedTrace> ObserveTrace(const trace::Snapshot& snapshot, int device, const BlockSizeRule& rule) {
  absl::StatusOr<RewoundTrace> rewound = RewindTrace(snapshot, device, rule);
  if (!rewound.ok()) return rewound.status();
  TimelineBuilder builder(rewound->start, Maker::kObserved);
  const trace::EventList& events = EventsOf(snapshot, device);
  builder.Share(events);
  builder.Reserve(events.size(), AllocationsOf(events));
  for (std::size_t i = 0; i < events.size(); ++i) {
    const EventFacts facts = rewound->facts.At(i, IsSegmentEvent(events[i].action));
    if (absl::Status status = builder.Add(events[i], facts); !status.ok()) return status;
  }
  rewound->facts = FactColumns();
  for (trace::Note& note : rewound->notes) builder.AddNote(std::move(note));
  absl::StatusOr<Timeline> timeline = builder.Finish();
  if (!timeline.ok()) return timeline.status();
  absl::Status status = CheckAgainstFinalState(timeline->StateAt(timeline->last_event()), snapshot);
#ifndef NDEBUG
  if (status.ok()) status = timeline->Validate();
#endif
  if (!status.ok()) return status;
  return ObservedTrace{std::move(rewound->start), *std::move(timeline)};
}

absl::StatusOr<Timeline> MakeObservedTimeline(const trace::Snapshot& snapshot, int device, const BlockSizeRule& rule) {
  absl::StatusOr<ObservedTrace> observed = ObserveTrace(snapshot, device, rule);
  if (!observed.ok()) return observed.status();
  return std::move(observed->timeline);
}

}  // namespace ashlar::timeline
