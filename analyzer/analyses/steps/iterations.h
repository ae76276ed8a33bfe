// Cuts a window into iterations: the whole steps where they are known, and where they are not (a program without steps,
// the evaluation that follows the last step) the rounds of a loop of the program's own code. Such a loop shows by a
// line outside of all modules, optimizers and backward passes that allocates again and again: the batch, the loss. The
// layers of one pass are no iterations, since their lines lie in a module. After the last step, passes without any line
// of the program's own between them show by making again and again what the pass of a step makes. Where the steps are
// epochs, the rounds of the evaluation that ends one are iterations of their own. A program without steps may have one
// such loop after another.
//
//   const Iterations iterations(timeline, stacks, steps);
//   iterations.At(block.alloc_event);  // 0: before the first boundary
//
// Immutable; safe to share between threads.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_ITERATIONS_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_ITERATIONS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// Begins of the rounds of the loop in `range` that the program's own lines tell; empty for fewer than three.
std::vector<timeline::EventIndex> RoundsIn(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                                           EventRange range);

class Iterations {
 public:
  // `stacks` may be nullptr; `steps` in order and apart.
  Iterations(const timeline::Timeline& timeline, const trace::StackTable* stacks, absl::Span<const EventRange> steps);

  // Which iteration an event belongs to; events before the window and before the first boundary are in 0.
  std::size_t At(timeline::EventIndex event) const;

 private:
  std::vector<timeline::EventIndex> begins_;  // of iterations 1, 2, ...
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_ITERATIONS_H_
