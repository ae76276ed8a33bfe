// Finds the steps of a program without annotations: the period of its requests. Private to FindSteps.
//
// An n-gram of requests that a shuffle would not repeat, and that recurs at even distances, is an anchor; its
// occurrences cut the window into intervals; the share of requests that an interval has in common with the next one
// says how regular that is. Anchors of many levels are found: layers within a pass, passes, epochs. The step is the
// shortest interval that stands by itself: at most 25 % of its boundaries are crossed by a block that lives into the
// second interval after its own (a layer of a forward pass leaves its activations to the backward pass, a micro-step
// its gradients to the next), and, where there are stacks, it is not a loop inside one call of a module's `forward`,
// one backward pass, one optimizer step, the loading of a checkpoint or a constructor. The cut is then moved to the
// recurring place with the least memory allocated, and steps that the anchor missed are filled in by the vote of the
// other recurring places.
//
// Without stacks the layers of a single forward pass cannot be told from steps, so what is found is a repetition, which
// Steps::told_from_sizes says; three whole intervals that cover 70 % of the requests and repeat 85 % of them are asked
// for, against two, 50 % and 60 % with stacks.
//
// Costs O(n) a candidate level, at most 32 levels, for up to two notions of likeness.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_STEP_PERIOD_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_STEP_PERIOD_H_

#include <vector>

#include "analyzer/analyses/steps/program_part.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

struct StepPeriod {
  std::vector<EventRange> steps = {};  // empty: no period
  double regularity = 0;               // share of all requests of the steps that the next step repeats
  bool told_from_sizes = false;
};

// `phases`: those told from stacks.
StepPeriod FindStepPeriod(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                          const ProgramParts& parts, const std::vector<Phase>& phases);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_STEP_PERIOD_H_
