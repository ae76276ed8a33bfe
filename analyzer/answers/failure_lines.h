// The part of an explanation about a failed request and about stranded memory: the analyses' values with stacks turned
// into lines.
#ifndef ASHLAR_ANALYZER_ANSWERS_FAILURE_LINES_H_
#define ASHLAR_ANALYZER_ANSWERS_FAILURE_LINES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/state/pin_blame.h"
#include "analyzer/analyses/steps/steps.h"

namespace ashlar::answers {

struct FailureLines {
  analyses::FailedRequest request;
  std::vector<analyses::LabelledStack> release = {};  // who allocated the blocks of its release set, most bytes first
};

// Pins of one line of code; of one block each where the trace has no stacks.
struct PinLine {
  std::string label;
  std::uint64_t blame_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t blocks = 0;
  std::optional<timeline::EventIndex> oldest_event = {};  // nullopt: allocated before the window
  std::string phase = {};                                 // of the oldest; empty = not known
};

// The blame of the lines and the others sums to the stranded bytes.
struct PinLines {
  std::vector<PinLine> lines = {};  // most blame first
  std::uint64_t other_blame_bytes = 0;
  std::uint64_t other_blocks = 0;
};

// `stacks` may be nullptr.
FailureLines DescribeFailure(analyses::FailedRequest request, const timeline::Timeline& timeline,
                             const trace::StackTable* stacks);
PinLines DescribePins(const analyses::PinBlame& pins, const analyses::Steps& steps, const trace::StackTable* stacks);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_FAILURE_LINES_H_
