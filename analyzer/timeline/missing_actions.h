// Kinds of events that a history lacks as a whole, because recording was told to leave them out
// (_record_memory_history(skip_actions=...)). Such a history neither leads to its final state nor can be replayed.
//
//   MissingActions(snapshot, 0)   {"free_requested"}   a kind is named only where other events prove that it happened:
//                                                      a block that is allocated twice, freed twice, or is gone
#ifndef ASHLAR_ANALYZER_TIMELINE_MISSING_ACTIONS_H_
#define ASHLAR_ANALYZER_TIMELINE_MISSING_ACTIONS_H_

#include <string>
#include <vector>

#include "allocator/trace/snapshot.h"

namespace ashlar::timeline {

// In the order of trace::Action; empty for a whole history. O(events).
std::vector<std::string> MissingActions(const trace::Snapshot& snapshot, int device);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_MISSING_ACTIONS_H_
