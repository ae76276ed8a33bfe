// How a recorded run would have gone on: whether it ended in a request that failed, and what would have followed.
//
//   input.next = ProjectionOf(recorded.program, observed, snapshot.stacks, steps);
//   RunWhatIfs(input.requests, input.settings, {}, input.next ? &*input.next : nullptr);
#ifndef ASHLAR_ANALYZER_REMEDIES_PROJECTION_H_
#define ASHLAR_ANALYZER_REMEDIES_PROJECTION_H_

#include <optional>

#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/steps/continuation.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::remedies {

// `steps` are those of the timeline. nullopt: no request failed, or the program went on to ask for more after the last
// that did. The requests are those of WhatIfRequests with the capacity known.
std::optional<analyses::Continuation> ProjectionOf(const replay::SnapshotProgram& program,
                                                   const timeline::Timeline& observed, const trace::StackTable& stacks,
                                                   const analyses::Steps& steps);

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_PROJECTION_H_
