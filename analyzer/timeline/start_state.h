// The state of one device's allocator at one moment: its segments and what is occupied in them. What no block covers
// is free.
//
//   segment  [address ........................ address + size_bytes)
//            | live 512 |    free    | pending 1024 |    free    |
//              blocks[0]               blocks[1]                       FreeRanges(segment): the two gaps
//
// Segments and blocks are in ascending address order; sizes are bytes, intervals half-open. Plain values.
#ifndef ASHLAR_ANALYZER_TIMELINE_START_STATE_H_
#define ASHLAR_ANALYZER_TIMELINE_START_STATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::timeline {

struct StateBlock {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::optional<std::uint64_t> requested_bytes = {};   // nullopt where the trace does not say
  trace::BlockState state = trace::BlockState::kLive;  // kLive or kPending
  trace::StackId stack = trace::kNoStack;              // where it was allocated, if known
  bool size_is_minimum = false;                        // an unsplit rest behind it may be its own, unseen

  std::uint64_t End() const { return address + size_bytes; }
};

struct StateSegment {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;  // expandable: the mapped bytes of one contiguous range
  Stream stream{};
  bool is_small_pool = false;
  bool is_expandable = false;
  PoolId pool = {};
  trace::StackId stack = trace::kNoStack;
  std::vector<StateBlock> blocks = {};  // occupied ones only

  std::uint64_t End() const { return address + size_bytes; }
};

struct State {
  int device = 0;
  std::vector<StateSegment> segments = {};
};

// The state before the first event of a window.
struct StartState : State {
  // Blocks older than the window and freed in it: their size is known only as the rounded request plus a possible
  // rest. Rests found because a later block was placed right behind them, and those never revealed (taken as 0).
  std::uint64_t inferred_tails = 0;
  std::uint64_t unknown_tails = 0;
};

struct FreeRange {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
};

// The gaps between the blocks of a segment, ascending.
std::vector<FreeRange> FreeRanges(const StateSegment& segment);

// Sums over a state, as they stand at one moment.
struct Totals {
  std::uint64_t allocated_bytes = 0;  // sizes of live blocks
  std::uint64_t active_bytes = 0;     // live and pending
  std::uint64_t reserved_bytes = 0;   // sizes of segments
  std::uint64_t requested_bytes = 0;  // what the callers of the live blocks asked for, where the trace says

  bool operator==(const Totals&) const = default;
};

Totals SumOf(const State& state);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_START_STATE_H_
