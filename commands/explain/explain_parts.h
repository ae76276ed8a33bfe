// The parts of an explanation that every timeline gives: the moment, the accounting, the causes.
#ifndef ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_PARTS_H_
#define ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_PARTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/timeline/timeline.h"
#include "analyzer/whatif/what_if_input.h"
#include "commands/explain/explain.h"
#include "commands/explain/explanation.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {

// The parts of an explanation that any timeline gives, whoever made it: the moment to look at, the accounting there,
// the peaks, the stacks, and the verdict on an out-of-memory error.
struct TimelineContext {
  const policy::Options* options = nullptr;    // what the allocator ran under
  const trace::StackTable* stacks = nullptr;   // nullptr: no stacks
  std::optional<std::uint64_t> total_bytes;    // of the device, if known
  std::optional<std::uint64_t> outside_bytes;  // if known without an out-of-memory event (a simulated device: 0)
};

// Fills everything but source, fidelity, what-ifs and causes. `history` is of this timeline (ContextOf in cause.h).
void ExplainTimeline(const timeline::Timeline& timeline, const TimelineContext& context,
                     const analyses::CauseHistory& history, Explanation& out);

// The part of an explanation that says why: the causes, and what came of taking the found ones away.

// What the causes look at, made once for all parts of an explanation. What is given must outlive it.
analyses::CauseContext CausesOf(const trace::Snapshot& snapshot, const ObservedRun& run);
analyses::CauseContext CausesOf(const ReplayedRun& run);

// After the accounting and the what-ifs, whose capacity they share. An error is a replay's own.
absl::Status AddCauses(analyses::CauseContext context, const ObservedRun& run, const ExplainOptions& options,
                       Explanation& out);
absl::Status AddCauses(analyses::CauseContext context, const trace::RequestTrace& requests,
                       const ExplainOptions& options, Explanation& out);
void AddCauses(const analyses::OomMessageVerdict& verdict, Explanation& out);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_PARTS_H_
