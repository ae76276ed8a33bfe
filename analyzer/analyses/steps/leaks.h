// Finds leaks: what piles up (kept.h) from iteration to iteration and has not been let go before. It looks at two
// moments and takes the one where more is found: the failure or the peak, where everything is still alive; and the end
// of the last whole step, which shows leaks far smaller than what a step itself takes. Of stacks without a recorded
// frame each size is looked at by itself. Pure function; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_LEAKS_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_LEAKS_H_

#include <vector>

#include "absl/types/span.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// `steps` in order and apart; `stacks` may be nullptr. Most bytes a step first, then by stack.
std::vector<Leak> FindLeaks(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                            absl::Span<const EventRange> steps);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_LEAKS_H_
