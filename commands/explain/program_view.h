// The program behind a timeline as an answer shows it: its steps, the step and phase of the moment, its phases, what
// each step leaves behind.
//
//   const ProgramView program = ViewProgram(context);
//   program.moment, program.leaks.front().label   // "step 12, backward", "train.py:58 loss"
#ifndef ASHLAR_COMMANDS_EXPLAIN_PROGRAM_VIEW_H_
#define ASHLAR_COMMANDS_EXPLAIN_PROGRAM_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

struct LeakLine {  // the leaking stacks of one line of the program
  std::string label;
  std::uint64_t bytes_per_step = 0;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;  // alive at the failure or peak, or the end of the last step
};

// What earlier steps left behind, alive at the moment looked at.
struct GrowingBytes {
  std::uint64_t bytes = 0;
  std::uint64_t bytes_per_step = 0;
};

struct ProgramView {
  analyses::Steps steps;
  std::string moment = {};                   // "step 12, backward"; empty where not known
  std::vector<LeakLine> leaks = {};          // most bytes a step first
  std::optional<GrowingBytes> growing = {};  // nullopt: nothing piles up, or no history tells
};

// Of a context with a history.
ProgramView ViewProgram(const analyses::CauseContext& context);
// Of steps alone. `stacks` may be nullptr.
ProgramView ViewSteps(analyses::Steps steps, timeline::EventIndex moment, const trace::StackTable* stacks);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_PROGRAM_VIEW_H_
