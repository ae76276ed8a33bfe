// What a step that failed before any whole one must still ask for, at the least. No earlier step shows it
// (steps/continuation.h), but the blocks that are there say some of it:
//
//   forward    layers that repeat: as many more as there are sets of their weights, each as the last whole one was
//   backward   gradients of the parameters that have none, where others of their size have one; activations go
//   optimizer  state of the gradients' parameters that have none yet
//
// An estimate from below: whatever the blocks do not show is left out, so it can refute that a setting carries the run
// through, and promises nothing.
//
//   for (const ComingRequest& next : RestOfFirstStep(context)) ...;   // in the order in which the program would ask
//
// Pure function; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_FIRST_STEP_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_FIRST_STEP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/program_memory.h"

namespace ashlar::analyses {

struct ComingRequest {
  std::uint64_t bytes = 0;  // asked for; 0: `freed` goes
  std::size_t freed = 0;    // an index in Timeline::blocks()
};

// Empty where an earlier step was whole, or the blocks say nothing. The context needs no stacks.
std::vector<ComingRequest> RestOfFirstStep(const CauseContext& context);

// Parts of the detector of CauseKind::kOptimizerState.

// Made before an event. Lists of a multi-tensor optimizer go at the end of its step; state is made one by one.
std::vector<std::size_t> StateBlocks(const CauseContext& context, const ProgramMemory& memory,
                                     timeline::EventIndex before);
// How many equal blocks in a row each parameter gets: 2 for Adam's moments, 3 with amsgrad, 1 for a momentum. Where all
// sizes are equal they do not tell: 2.
std::uint64_t BlocksForEach(const ProgramMemory& memory, const std::vector<std::size_t>& state);
bool IsForeachFrame(const trace::Frame& frame);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_FIRST_STEP_H_
