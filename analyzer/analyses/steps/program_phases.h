// Steps and phases of a program: by the marks that it made itself, and by its stacks.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_PROGRAM_PHASES_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_PROGRAM_PHASES_H_

#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/steps/program_part.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// Steps and phases from the marks a program made itself: torch.profiler.record_function, ProfilerStep#3,
// Optimizer.step#AdamW.step. A START and the next END of its name make a range; they are placed among the events by
// their time, so a trace without times has none. Pure function.
//
// Steps are, in this order of trust: ProfilerStep#N ranges; ranges of one name that says step, iteration or batch
// (numbers in it aside) and that occurs twice or more without overlap; else the ends of Optimizer.step#... ranges,
// which end a step each, so that the first whole step begins at the first of them.
struct AnnotatedProgram {
  std::vector<EventRange> steps = {};
  std::vector<Phase> phases = {};  // all other ranges
};

AnnotatedProgram ReadAnnotations(const timeline::Timeline& timeline, absl::Span<const trace::Annotation> annotations);

// Finds phases by their stacks: runs of allocations of one part of the program. A run of fewer than four allocations
// between two runs of one other part is taken as part of them. A phase holds up to the first allocation of the next
// run, whatever that is, so the frees between belong to it. Pure function.

std::vector<Phase> FindStackPhases(const timeline::Timeline& timeline, const ProgramParts& parts);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_PROGRAM_PHASES_H_
