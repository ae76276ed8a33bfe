// Finds leaks: blocks that a whole step allocated, that outlived a whole later step, and that are still alive at the
// end of the last whole one. A stack leaks if at least three steps left something of it behind, and 60 % of those that
// could have (all but the last); so the optimizer's state, which the first step makes, is no leak. Without stacks all
// blocks are one group. Pure function; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_LEAKS_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_LEAKS_H_

#include <vector>

#include "absl/types/span.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// `steps` in order and apart; fewer than four give no leak. Most bytes a step first, then by stack.
std::vector<Leak> FindLeaks(const timeline::Timeline& timeline, absl::Span<const EventRange> steps);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_LEAKS_H_
