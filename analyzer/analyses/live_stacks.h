// Who holds the memory at one moment: live blocks grouped by the stack that allocated them, biggest first.
#ifndef ASHLAR_ANALYZER_ANALYSES_LIVE_STACKS_H_
#define ASHLAR_ANALYZER_ANALYSES_LIVE_STACKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::analyses {

struct LiveStack {
  trace::StackId stack = trace::kNoStack;  // kNoStack: blocks whose stack the trace does not know
  std::uint64_t bytes = 0;                 // block sizes
  std::uint64_t blocks = 0;
};

// Equal bytes are ordered by stack id. `most` groups at the most.
std::vector<LiveStack> LiveStacks(const timeline::State& state, std::size_t most);

// "model.py:211 forward": the innermost Python frame outside the framework, else the innermost Python frame, else the
// innermost frame; "no stack recorded" without one.
std::string StackLabel(const trace::StackTable& stacks, trace::StackId stack);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_LIVE_STACKS_H_
