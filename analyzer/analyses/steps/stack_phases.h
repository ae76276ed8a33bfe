// Finds phases by their stacks: runs of allocations of one part of the program. A run of fewer than four allocations
// between two runs of one other part is taken as part of them. A phase holds up to the first allocation of the next
// run, whatever that is, so the frees between belong to it. Pure function.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_STACK_PHASES_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_STACK_PHASES_H_

#include <vector>

#include "analyzer/analyses/steps/program_part.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

std::vector<Phase> FindStackPhases(const timeline::Timeline& timeline, const ProgramParts& parts);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_STACK_PHASES_H_
