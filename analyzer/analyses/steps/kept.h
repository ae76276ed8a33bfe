// Finds what piles up: groups of blocks that are alive at one moment and were born in many iterations before it.
//
// A group is what one stack allocated (one size of it, where there is no stack). It piles up if it has blocks of at
// least three iterations before the moment's own, if the newest of them is as recent as the distances between them let
// expect, and if in the time since its first block no more of it went away late than is there (a buffer of fixed length
// loses one block for each that comes). So the optimizer's state, a model, a cache made once do not pile up, a leak
// in every tenth step does, and so does one whose first block is of the first step.
//
// A group is replaced where each of its blocks took the place of a slightly smaller one, which was freed right after
// it: torch.cat of a tensor with itself and a bit more. Here a group is what one line of a module allocated, whoever
// called the outermost module: a cache is filled by one call and grown by others. One that is also copied between two
// rounds, as a beam search reorders its cache, counts too.
//
//   for (const KeptGroup& group : KeptGroups(timeline, iterations, moment)) Print(group.bytes,
//   group.bytes_per_iteration);
//
// Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_KEPT_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_KEPT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/analyses/steps/iterations.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

struct KeptGroup {
  trace::StackId stack = trace::kNoStack;
  std::vector<std::size_t> blocks = {};   // indices in Timeline::blocks(), oldest first
  std::uint64_t bytes = 0;                // theirs
  std::uint64_t bytes_per_iteration = 0;  // of one that left something; of a replaced group what one added
  std::size_t iterations = 0;             // that left something
  std::size_t first_iteration = 0;
  std::size_t span = 0;          // iterations from the first to the moment's own, without it
  std::size_t freed_before = 0;  // blocks that had stayed late and were freed before its first; replaced: as large ones
  bool is_replaced = false;
  trace::StackId via = trace::kNoStack;  // replaced: what makes the copies in between, where something does

  // Whether as much had piled up before, and went again: what an epoch collects and then lets go.
  bool WasLetGo() const { return is_replaced ? freed_before > 0 : freed_before >= blocks.size(); }
};

// Most bytes first, then by the first block.
std::vector<KeptGroup> KeptGroups(const timeline::Timeline& timeline, const Iterations& iterations,
                                  timeline::EventIndex moment, const trace::StackTable* stacks = nullptr);

// The same rule for lists of blocks that somebody holds, whichever lines made them; each in the order of allocation.
// nullopt where a list does not pile up. The `stack` of a group is that of its first block.
std::vector<std::optional<KeptGroup>> PiledOf(const timeline::Timeline& timeline, const Iterations& iterations,
                                              timeline::EventIndex moment,
                                              absl::Span<const std::vector<std::size_t>> lists);

// Finds leaks: what piles up (kept.h) from iteration to iteration and has not been let go before. It looks at two
// moments and takes the one where more is found: the failure or the peak, where everything is still alive; and the end
// of the last whole step, which shows leaks far smaller than what a step itself takes. Of stacks without a recorded
// frame each size is looked at by itself. Pure function; sizes are bytes.

// `steps` in order and apart; `stacks` may be nullptr. Most bytes a step first, then by stack.
std::vector<Leak> FindLeaks(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                            absl::Span<const EventRange> steps);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_KEPT_H_
