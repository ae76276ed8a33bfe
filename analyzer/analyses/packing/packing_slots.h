// Packing of slots: buffers that come back. A slot is alive several times, always at the same offset, as the same
// request of every step of a run is.
//
//   memory
//     ^   +---+       +---+         slot 1: alive twice
//     |   | 1 +---+   | 1 +---+     slot 2: alive twice, between the two of slot 1 and after
//     |   +---+ 2 |   +---+ 2 |
//     +-------+---+-------+---+--> time
//
// Units as in packing.h. The lives of one slot must not meet.
#ifndef ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_SLOTS_H_
#define ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_SLOTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/analyses/packing/packing.h"

namespace ashlar::analyses {

struct Slot {
  std::uint64_t size = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> lives = {};  // lower, upper; half-open
};

// One offset a slot. Checked: no two lives overlap.
Packing PackSlots(absl::Span<const Slot> slots, const PackOptions& options);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_SLOTS_H_
