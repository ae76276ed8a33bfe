// The forward pass over a rewound trace: each allocation stands at the low end of the free block it was cut from, so
// its place tells how big that free block was, and with the rule how big the block became. It also reveals unsplit
// rests of older blocks: the next block placed behind such a block begins where the rest ends.
#ifndef ASHLAR_ANALYZER_TIMELINE_PLACEMENT_H_
#define ASHLAR_ANALYZER_TIMELINE_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/trace/event.h"
#include "analyzer/timeline/block_size_rule.h"
#include "analyzer/timeline/event_facts.h"
#include "analyzer/timeline/occupancy.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::timeline {

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

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_PLACEMENT_H_
