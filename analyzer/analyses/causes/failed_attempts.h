// Finds what failed attempts have left behind: blocks of a forward pass that ran out of memory, still alive when a
// later attempt fails too. An exception that is kept, or handled inside of its except block, holds its traceback, that
// the frames of the failed pass, and these their tensors. An attempt begins with the first block of a forward pass
// since the failure before it, or since the end of the last whole step. Pure function.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_FAILED_ATTEMPTS_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_FAILED_ATTEMPTS_H_

#include <cstddef>
#include <vector>

#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// Indices in Timeline::blocks(); empty where fewer than two requests failed up to the moment. `stacks` may be nullptr.
std::vector<std::size_t> BlocksOfFailedAttempts(const timeline::Timeline& timeline, timeline::EventIndex moment,
                                                const trace::StackTable* stacks, const Steps& steps);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_FAILED_ATTEMPTS_H_
