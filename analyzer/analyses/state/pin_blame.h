// Finds the blocks that keep the free memory of their segments from being used or returned. Each stranded byte is
// charged to live and pending blocks of its segment, so the charges of all blocks sum to the stranded bytes exactly.
//
//   segment | live 2 MiB |        free 18 MiB        |               18 MiB are to blame on that block
//
//   segment | A 2 MiB |   free 12 MiB   | B 6 MiB |                  9 MiB on A, 3 MiB on B
//
// The rule for one segment is the live allocator's own: allocator/core/accounting.h.
//
// Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_PIN_BLAME_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_PIN_BLAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

struct Pin {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t blame_bytes = 0;
  std::uint64_t segment_address = 0;
  std::uint64_t segment_bytes = 0;
  trace::StackId stack = trace::kNoStack;
  bool is_pending = false;
  timeline::EventIndex alloc_event = timeline::kBeforeWindow;  // kBeforeWindow: older than the window
  std::optional<std::uint64_t> age_events = {};                // nullopt: older than the window
};

struct PinGroup {  // the pins of one stack
  trace::StackId stack = trace::kNoStack;
  std::uint64_t blame_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t blocks = 0;
  timeline::EventIndex oldest_event = timeline::kBeforeWindow;
  std::string phase = {};  // where the oldest was allocated: a step or phase of the program; empty = not known
};

struct PinBlame {
  std::uint64_t stranded_bytes = 0;   // equals the sum of all blame
  std::vector<Pin> pins = {};         // blocks with blame, most first; equal ones by address
  std::vector<PinGroup> groups = {};  // most blame first; equal ones by stack
};

// Private pools' free bytes are not stranded (they are accounted for by themselves). Phases are left empty. O(all
// spans).
PinBlame BlamePins(const timeline::Timeline& timeline, timeline::EventIndex moment);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_PIN_BLAME_H_
