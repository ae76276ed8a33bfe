// Steps and phases from the marks a program made itself: torch.profiler.record_function, ProfilerStep#3,
// Optimizer.step#AdamW.step. A START and the next END of its name make a range; they are placed among the events by
// their time, so a trace without times has none. Pure function.
//
// Steps are, in this order of trust: ProfilerStep#N ranges; ranges of one name that says step, iteration or batch
// (numbers in it aside) and that occurs twice or more without overlap; else the ends of Optimizer.step#... ranges,
// which end a step each, so that the first whole step begins at the first of them.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_STEP_ANNOTATIONS_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_STEP_ANNOTATIONS_H_

#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

struct AnnotatedProgram {
  std::vector<EventRange> steps = {};
  std::vector<Phase> phases = {};  // all other ranges
};

AnnotatedProgram ReadAnnotations(const timeline::Timeline& timeline, absl::Span<const trace::Annotation> annotations);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_STEP_ANNOTATIONS_H_
