#include "analyzer/timeline/observed.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "analyzer/timeline/occupancy.h"
#include "analyzer/timeline/rewind.h"
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

std::vector<Line> LinesOf(std::vector<const trace::SnapshotSegment*> segments) {
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

absl::Status CheckAgainstFinalState(const State& state, const DeviceTrace& trace) {
  const std::vector<Line> ours = LinesOf(state);
  const std::vector<Line> final_lines = LinesOf(trace.segments);
  if (ours == final_lines) return absl::OkStatus();
  std::size_t i = 0;
  while (i < ours.size() && i < final_lines.size() && ours[i] == final_lines[i]) ++i;
  return absl::FailedPreconditionError(absl::StrCat("device ", state.device, ": the events end with ",
                                                    Describe(ours, i), " where the final segments have ",
                                                    Describe(final_lines, i)));
}

absl::StatusOr<ObservedTrace> ObserveTrace(const DeviceTrace& trace, const BlockSizeRule& rule) {
  absl::StatusOr<RewoundTrace> rewound = RewindTrace(trace, rule);
  if (!rewound.ok()) return rewound.status();
  TimelineBuilder builder(rewound->start, Maker::kObserved);
  const trace::EventList& events = trace.events;
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
  absl::Status status = CheckAgainstFinalState(timeline->StateAt(timeline->last_event()), trace);
#ifndef NDEBUG
  if (status.ok()) status = timeline->Validate();
#endif
  if (!status.ok()) return status;
  return ObservedTrace{std::move(rewound->start), *std::move(timeline)};
}

absl::StatusOr<Timeline> MakeObservedTimeline(const DeviceTrace& trace, const BlockSizeRule& rule) {
  absl::StatusOr<ObservedTrace> observed = ObserveTrace(trace, rule);
  if (!observed.ok()) return observed.status();
  return std::move(observed->timeline);
}

namespace {

using trace::Action;

// The kinds that skip_actions may name and that move a block or a segment.
constexpr Action kSkippable[] = {Action::kAlloc, Action::kFreeRequested, Action::kFreeCompleted, Action::kSegmentAlloc,
                                 Action::kSegmentFree};
constexpr std::size_t kActions = static_cast<std::size_t>(Action::kUnknown) + 1;

class Census {
 public:
  explicit Census(const trace::EventList& events) {
    for (const trace::Event& event : events) ++counts_[static_cast<std::size_t>(event.action)];
  }
  bool HasAll() const {
    for (const Action action : kSkippable) {
      if (Lacks(action)) return false;
    }
    return true;
  }
  bool Lacks(Action action) const { return counts_[static_cast<std::size_t>(action)] == 0; }

  void Visit(const trace::Event& event) {
    switch (event.action) {
      case Action::kAlloc:
      case Action::kFreeRequested:
      case Action::kFreeCompleted:
        return VisitBlock(event);
      case Action::kSegmentAlloc:
      case Action::kSegmentFree:
        return VisitSegment(event);
      default:
        return;
    }
  }

  // Blocks that are in use at the end, by address.
  void VisitEnd(const std::set<std::uint64_t>& live, const std::set<std::uint64_t>& pending) {
    for (const auto& [address, last] : blocks_) {
      const bool is_live = live.contains(address);
      const bool is_pending = pending.contains(address);
      if (last == Action::kAlloc && !is_live) Prove(Action::kFreeRequested);
      if (last == Action::kAlloc && !is_live && !is_pending) Prove(Action::kFreeCompleted);
      if (last == Action::kFreeRequested && !is_live && !is_pending) Prove(Action::kFreeCompleted);
      if (last != Action::kAlloc && is_live) Prove(Action::kAlloc);
    }
  }

  std::vector<std::string> Missing() const {
    std::vector<std::string> out;
    for (const Action action : kSkippable) {
      if (proven_.contains(action)) out.emplace_back(trace::ActionName(action));
    }
    return out;
  }

 private:
  void Prove(Action action) {
    if (Lacks(action)) proven_.insert(action);
  }

  void VisitBlock(const trace::Event& event) {
    const auto [it, is_first] = blocks_.try_emplace(event.address, event.action);
    if (is_first) return;
    const Action last = it->second;
    it->second = event.action;
    if (event.action == Action::kAlloc && last != Action::kFreeCompleted) {
      Prove(Action::kFreeCompleted);
      if (last == Action::kAlloc) Prove(Action::kFreeRequested);
    }
    if (event.action == Action::kFreeCompleted && last == Action::kAlloc) Prove(Action::kFreeRequested);
    if (event.action == Action::kFreeRequested && last != Action::kAlloc) Prove(Action::kAlloc);
    if (event.action == Action::kFreeCompleted && last == Action::kFreeCompleted) Prove(Action::kAlloc);
  }

  void VisitSegment(const trace::Event& event) {
    const auto [it, is_first] = segments_.try_emplace(event.address, event.action);
    if (is_first) return;
    const bool is_repeated = it->second == event.action;
    it->second = event.action;
    if (is_repeated) Prove(event.action == Action::kSegmentAlloc ? Action::kSegmentFree : Action::kSegmentAlloc);
  }

  std::array<std::uint64_t, kActions> counts_{};
  absl::flat_hash_map<std::uint64_t, Action> blocks_;  // the last event of each address
  absl::flat_hash_map<std::uint64_t, Action> segments_;
  std::set<Action> proven_;
};

}  // namespace

std::vector<std::string> MissingActions(const DeviceTrace& trace) {
  // A recording of our own leaves nothing out; device calls have no cache.
  if (trace.snapshot->recording.has_value() || trace::RecordsDeviceCalls(*trace.snapshot)) return {};
  Census census(trace.events);
  if (trace.events.empty() || census.HasAll()) return {};
  for (const trace::Event& event : trace.events) census.Visit(event);
  std::set<std::uint64_t> live, pending;
  for (const trace::SnapshotSegment* segment : trace.segments) {
    for (const trace::SnapshotBlock& block : segment->blocks) {
      if (block.state == trace::BlockState::kLive) live.insert(block.address);
      if (block.state == trace::BlockState::kPending) pending.insert(block.address);
    }
  }
  if (!trace.snapshot->segments.empty()) census.VisitEnd(live, pending);
  return census.Missing();
}

}  // namespace ashlar::timeline
