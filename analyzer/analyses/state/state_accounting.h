// Accounts for the bytes of a timeline's state, by the allocator's own code (allocator/core/accounting.h).
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_STATE_ACCOUNTING_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_STATE_ACCOUNTING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "allocator/core/accounting.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/start_state.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

core::Accounting AccountState(const timeline::State& state);

// The largest run of free bytes that a request on `stream` could be served from in its pool; 0 when there is none.
std::uint64_t LargestFreeBytes(const timeline::State& state, Stream stream, bool is_small_pool, PoolId pool);

// The difference between two states of an allocator: their accounting, their blocks by stack, size and phase, their
// segments by pool and size. Every view lists all rows of both sides, matched by label, and each part of its rows sums
// to the difference of the whole exactly:
//
//   by_stack, by_size, by_phase   each block in use is in one row: allocated, live, rounding, pending
//   by_segment                    each segment is in one row: reserved and all its parts, holes too
//
//   StateDiff diff = DiffStates({&a, a.allocated_peak().event, &a_stacks}, {&b, b.last_event(), &b_stacks});
//
// Where a function allocates on as many lines on both sides, they are matched by their order: the row has the line of
// b.
//
// Pure function; sizes are bytes.
struct DiffSide {
  const timeline::Timeline* timeline = nullptr;
  timeline::EventIndex moment = timeline::kBeforeWindow;
  const trace::StackTable* stacks = nullptr;
  // The phase of the program at an event, empty where none is known; without the function no phase is known.
  std::function<std::string(timeline::EventIndex)> phase_of = {};
};

// In a row of blocks `bytes.reserved_bytes` is what the blocks span, and `segments` is 0.
struct DiffParts {
  core::Accounting bytes;
  std::uint64_t blocks = 0;  // live and pending
  std::uint64_t segments = 0;

  bool IsEmpty() const { return blocks == 0 && segments == 0; }
};

struct DiffRow {
  std::string label;
  DiffParts a, b;  // empty: not on that side

  std::int64_t GrownBytes() const { return static_cast<std::int64_t>(b.bytes.reserved_bytes - a.bytes.reserved_bytes); }
};

// Rows that differ most first, equal differences by label.
struct StateDiff {
  DiffParts a, b;
  std::vector<DiffRow> by_stack, by_size, by_phase, by_segment;
};

StateDiff DiffStates(const DiffSide& a, const DiffSide& b);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_STATE_ACCOUNTING_H_
