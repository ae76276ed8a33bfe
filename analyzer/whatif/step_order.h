// Puts the steps of a record in another order: those that hold most come first. Each step stays whole, so that the
// program asks for the same in each; what a step leaves to the next one, which frees it, is then freed by whichever
// step follows.
//
//   recorded         A: a1 a2 -a1 | B: b1 -a2 b2 -b1 | C: c1 -b2 ...
//   the largest      B: b1 b2 -b1 | A: a1 -b2 a2 -a1 | C: c1 -a2 ...
//
// The first steps stay where they are, as they make what stays for good. So does the last one where it was cut off, or
// leaves another number of blocks than the others.
// Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_WHATIF_STEP_ORDER_H_
#define ASHLAR_ANALYZER_WHATIF_STEP_ORDER_H_

#include <cstddef>
#include <optional>

#include "absl/types/span.h"
#include "allocator/trace/request.h"

namespace ashlar::whatif {

struct StepOrder {
  trace::RequestTrace requests;
  std::size_t first = 0;  // of the steps that were put in order, by index in `begins`
  std::size_t count = 0;
};

// `begins`: positions in the requests at which the steps begin, ascending; a step lasts until the next one, and the
// last until the end. `is_last_whole`: else it stays where it is. nullopt: fewer than three steps in a row leave
// equally many blocks to the next one, or one of them frees what an earlier one made; they have the largest first
// already; or a captured graph's pool was put back.
std::optional<StepOrder> LargestStepsFirst(const trace::RequestTrace& requests, absl::Span<const std::size_t> begins,
                                           bool is_last_whole);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_STEP_ORDER_H_
