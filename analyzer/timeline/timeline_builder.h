// Builds a timeline from a start state and the events that follow, in order. Both makers use it: the observed one
// hands in the sizes it worked out, a replay the sizes it knows.
//
//   TimelineBuilder builder(std::move(start), Maker::kReplayed);
//   builder.Add({.action = trace::Action::kAlloc, .address = a, .size_bytes = 700, .stream = s}, 1024);
//   absl::StatusOr<Timeline> timeline = builder.Finish();
//
// A contradictory step (a block where one is already, a free of what is not live, a segment freed while occupied) is
// refused with FailedPrecondition that names the event, and so is one event more than kMostEvents; the builder then
// refuses everything with the same status.
#ifndef ASHLAR_ANALYZER_TIMELINE_TIMELINE_BUILDER_H_
#define ASHLAR_ANALYZER_TIMELINE_TIMELINE_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/trace/event.h"
#include "analyzer/timeline/occupancy.h"
#include "analyzer/timeline/start_state.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::timeline {

class TimelineBuilder {
 public:
  explicit TimelineBuilder(const StartState& start, Maker maker = Maker::kReplayed);

  // `block_size_bytes` is the size of the block that an alloc made; not used for other events.
  absl::Status Add(const trace::Event& event, std::uint64_t block_size_bytes = 0);
  absl::Status Add(const trace::Event& event, const EventFacts& facts);
  // Takes room for so many events and blocks more: a list that grows by itself is held twice at times.
  void Reserve(std::size_t events, std::size_t blocks);
  void AddNote(trace::Note note) { columns_.notes.push_back(std::move(note)); }

  // The events that will be added are these: the timeline shares them, and Add keeps none. Before the first Add.
  void Share(const trace::EventList& events) { shared_ = events, keeps_ = false; }
  // The timeline is to have no events, which take most of its memory: only what is made of them.
  void LeaveOutEvents() { keeps_ = false; }

  // Leaves the builder empty.
  absl::StatusOr<Timeline> Finish();

 private:
  void LoadSegment(const StateSegment& segment);
  void LoadBlock(const StateBlock& block);
  absl::Status Apply(const trace::Event& event, const EventFacts& facts);
  absl::Status Allocate(const trace::Event& event, std::uint64_t block_size_bytes);
  absl::Status RequestFree(const trace::Event& event);
  absl::Status CompleteFree(const trace::Event& event);
  absl::Status ChangeSegments(const trace::Event& event, const EventFacts& facts);
  void RecordSegmentChange(const trace::Event& event, std::optional<std::uint32_t> touched_id);
  void RecordExtent(const SegmentRange& range);
  BlockSpan& SpanOf(const OccupiedBlock& block) { return columns_.blocks[block.id]; }
  EventIndex Now() const { return static_cast<EventIndex>(columns_.totals.size()); }
  void RaisePeaks(EventIndex event);

  absl::Status status_;
  Occupancy picture_;
  Totals totals_;
  TimelineColumns columns_;
  trace::EventList shared_;
  bool keeps_ = true;                // the events that are added
  std::vector<trace::Event> added_;  // where nothing is shared
};

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_TIMELINE_BUILDER_H_
