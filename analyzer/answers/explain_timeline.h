// The parts of an explanation that any timeline gives, whoever made it: the moment to look at, the accounting there,
// the peaks, the stacks, and the verdict on an out-of-memory error.
#ifndef ASHLAR_ANALYZER_ANSWERS_EXPLAIN_TIMELINE_H_
#define ASHLAR_ANALYZER_ANSWERS_EXPLAIN_TIMELINE_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/answers/explanation.h"
#include "analyzer/remedies/what_if_input.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

struct TimelineContext {
  const policy::Options* options = nullptr;    // what the allocator ran under
  const trace::StackTable* stacks = nullptr;   // nullptr: no stacks
  std::optional<std::uint64_t> total_bytes;    // of the device, if known
  std::optional<std::uint64_t> outside_bytes;  // if known without an out-of-memory event (a simulated device: 0)
};

// Fills everything but source, fidelity, what-ifs and causes. `history` is of this timeline (ContextOf in cause.h).
void ExplainTimeline(const timeline::Timeline& timeline, const TimelineContext& context,
                     const analyses::CauseHistory& history, Explanation& out);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_EXPLAIN_TIMELINE_H_
