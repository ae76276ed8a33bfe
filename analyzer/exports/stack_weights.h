// Bytes by call stack at the moment of a run: what flame graphs are drawn of.
#ifndef ASHLAR_ANALYZER_EXPORTS_STACK_WEIGHTS_H_
#define ASHLAR_ANALYZER_EXPORTS_STACK_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/trace/stack_table.h"
#include "analyzer/exports/exported_run.h"

namespace ashlar::exports {

struct StackWeight {
  trace::StackId stack = trace::kNoStack;  // kNoStack: not in the trace
  std::uint64_t bytes = 0;
};

// A picture: what it shows, and its stacks, most bytes first.
struct WeightedStacks {
  std::string name;  // "device 0: live bytes at the out-of-memory error, event 6,768"
  std::vector<StackWeight> stacks;
};

// Live bytes at the moment; they add up to the allocated bytes there.
WeightedStacks LiveWeights(const ExportedRun& run);
// Free bytes that cannot be used or returned, by the stacks of the blocks that pin them (pin_blame.h); they add up to
// the stranded bytes.
WeightedStacks StrandedWeights(const ExportedRun& run);

inline constexpr char kNoStackText[] = "no stack recorded";

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_STACK_WEIGHTS_H_
