// The last word on a failure. The failed request alone gives a first verdict (core::JudgeOom); what the causes, the
// replays and the projection of the cut-off step tell may overrule it, so that verdict, causes, table and advice never
// contradict each other:
//
//   leak         each step leaves memory behind: a quarter of what is live, or a tenth and more than the holes; but not
//                where a setting carries the run on without that
//   capacity     every setting that gets past the request fails again for want of memory, holes or none
//   fragmentation  a setting carries the run through to the end of the step
//   nearly_full  the request is said not to fit, and a replay found room for it
//
// Whatever no setting can cure pastes none. Pure function.
#ifndef ASHLAR_COMMANDS_EXPLAIN_VERDICT_H_
#define ASHLAR_COMMANDS_EXPLAIN_VERDICT_H_

#include "commands/explain/explanation.h"

namespace ashlar::answers {

// Of an explanation whose accounting, first verdict, what-ifs, advice, causes and growth are filled.
void SetLastVerdict(Explanation& explanation);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_VERDICT_H_
