// The timeline of a recorded trace, with the addresses as recorded: rewound to the start of the window, then followed
// event by event. Where a block was placed gives its size.
//
//   absl::StatusOr<Timeline> timeline = MakeObservedTimeline(trace, rule);
#ifndef ASHLAR_ANALYZER_TIMELINE_OBSERVED_H_
#define ASHLAR_ANALYZER_TIMELINE_OBSERVED_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/timeline/block_size_rule.h"
#include "analyzer/timeline/device_trace.h"
#include "analyzer/timeline/start_state.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::timeline {

// FailedPrecondition if the trace and the segments contradict each other: the event, or the first difference between
// the end of the timeline and the final segments. A device with segments only gives a timeline without events, whose
// state is the final one.
absl::StatusOr<Timeline> MakeObservedTimeline(const DeviceTrace& trace, const BlockSizeRule& rule);

// The same, and the state that it begins with, which rewinding gave: for who needs both.
struct ObservedTrace {
  StartState start;
  Timeline timeline;
};
absl::StatusOr<ObservedTrace> ObserveTrace(const DeviceTrace& trace, const BlockSizeRule& rule);

// Whether `state` has the segments and the occupied blocks with which the trace ends: addresses, sizes, states. Names
// the first difference by address.
absl::Status CheckAgainstFinalState(const State& state, const DeviceTrace& trace);

// Kinds of events that a history lacks as a whole, because recording was told to leave them out
// (_record_memory_history(skip_actions=...)). Such a history neither leads to its final state nor can be replayed.
//
//   MissingActions(trace)         {"free_requested"}   a kind is named only where other events prove that it happened:
//                                                      a block that is allocated twice, freed twice, or is gone

// In the order of trace::Action; empty for a whole history. O(events).
std::vector<std::string> MissingActions(const DeviceTrace& trace);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_OBSERVED_H_
