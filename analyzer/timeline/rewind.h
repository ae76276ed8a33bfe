// Undoes a device's events, last to first, from the final segments and blocks of a snapshot: what is left is the
// state in which the recorded window began. Most windows begin on a populated allocator, so nothing else can tell.
//
//   alloc            the block disappears           segment_alloc   the segment disappears (it must be free)
//   free_completed   a pending block appears        segment_free    a free segment appears
//   free_requested   that pending block is live     segment_map     the range disappears (it must be free)
//                                                   segment_unmap   a free range appears, joined to its neighbours
//
// A window may begin with the free_completed of a block whose free_requested is lost: that block is pending at the
// start. Records that cannot be undone, because the trace and the segments are not of one run, are refused with
// FailedPrecondition: which event, what was expected, what was found.
//
//   absl::StatusOr<StartState> start = Rewind(trace, rule);
#ifndef ASHLAR_ANALYZER_TIMELINE_REWIND_H_
#define ASHLAR_ANALYZER_TIMELINE_REWIND_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/block_size_rule.h"
#include "analyzer/timeline/device_trace.h"
#include "analyzer/timeline/occupancy.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::timeline {

// The forward pass over a rewound trace: each allocation stands at the low end of the free block it was cut from, so
// its place tells how big that free block was, and with the rule how big the block became. It also reveals unsplit
// rests of older blocks: the next block placed behind such a block begins where the rest ends.

// A trace undone to its beginning.
struct UndoneTrace {
  int device = 0;
  Occupancy picture;               // before the first event; block ids index `blocks`
  std::vector<StateBlock> blocks;  // size_is_minimum: known only from its free event
  FactColumns facts;               // the block's size where the final state shows the block
};

struct PlacementCounts {
  std::uint64_t inferred_tails = 0;
  std::uint64_t unknown_tails = 0;
  std::uint64_t rule_disagreements = 0;  // blocks whose size is not what the rule says
  std::uint64_t unexplained_gaps = 0;    // allocations not at the low end of a free block
};

// Fills in the sizes: of the blocks before the window in `undone.blocks`, of those in it in `undone.facts`.
absl::StatusOr<PlacementCounts> PlaceBlocks(absl::Span<const trace::Event> events, const BlockSizeRule& rule,
                                            UndoneTrace& undone);

struct RewoundTrace {
  StartState start;
  FactColumns facts;               // every block's size, every segment's pool
  std::vector<trace::Note> notes;  // what did not follow the rule, and what stays unknown
};

// The rule's rounded_bytes must be set. A device without segments and events gives an empty state.
absl::StatusOr<RewoundTrace> RewindTrace(const DeviceTrace& trace, const BlockSizeRule& rule);
absl::StatusOr<StartState> Rewind(const DeviceTrace& trace, const BlockSizeRule& rule);

// A recorded segment as a state has it, with its occupied blocks.
StateSegment StateSegmentOf(const trace::SnapshotSegment& segment);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_REWIND_H_
