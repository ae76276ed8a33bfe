// Finds the steps (iterations) and phases (forward, backward, optimizer, evaluation, ...) of a program, by its
// annotations where it made some, else by the period of its requests; and the memory that stays behind at the end of
// each step. Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_STEPS_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_STEPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

struct EventRange {  // [begin, end)
  timeline::EventIndex begin = 0;
  timeline::EventIndex end = 0;
};

struct Phase {
  std::string name;
  EventRange events;
};

enum class StepSource : std::uint8_t { kNone, kAnnotations, kPeriod };

// What iterations leave behind for good, by stack.
struct Leak {
  trace::StackId stack = trace::kNoStack;
  std::uint64_t bytes_per_step = 0;  // on average over the steps since the first that left some
  std::uint64_t blocks = 0;          // of all steps together
  std::uint64_t bytes = 0;           // alive at the moment of the failure or peak, or the end of the last step
};

struct Steps {
  StepSource source = StepSource::kNone;
  std::vector<EventRange> steps = {};  // whole ones only, in order and apart; empty where none were found
  std::vector<Phase> phases = {};      // in order of begin; may be empty, may nest
  double regularity = 0;               // of a period: share of requests that repeat one step later, 0 to 1
  bool told_from_sizes = false;        // without stacks: what repeats may be the layers of one pass
  std::vector<Leak> leaks = {};        // most bytes a step first
};

Steps FindSteps(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                absl::Span<const trace::Annotation> annotations);

// Index in steps.steps of the step around an event.
std::optional<std::size_t> StepAt(const Steps& steps, timeline::EventIndex event);

// "step 12, backward": the step around an event, counted from 1 in the window, and the innermost phase; outside of the
// whole steps "before step 1" or "after step 14". What is not known is left out, so empty where neither is.
std::string PhaseOf(const Steps& steps, timeline::EventIndex event);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_STEPS_H_
