// Which intervals lie inside one call of something that is less than a step.
#include "analyzer/analyses/steps/period_level.h"

#include <gtest/gtest.h>

#include "allocator/trace/stack_table.h"

namespace ashlar::analyses::period {
namespace {

// `forward` requests of one line of the program, then `rest` without a stack: PyTorch's autograd threads have none.
Sequence ForwardThen(std::size_t forward, std::size_t rest, trace::StackId line) {
  Sequence out;
  for (std::size_t i = 0; i < forward + rest; ++i) {
    out.requests.push_back({.event = static_cast<timeline::EventIndex>(i),
                            .token = 0,
                            .stack = i < forward ? line : trace::kNoStack,
                            .freed = timeline::kNever});
  }
  out.all_requests = out.requests.size();
  return out;
}

TEST(PeriodLevelTest, TheLayersOfABackwardPassAreNoSteps) {
  trace::StackTable stacks;
  const trace::StackId line = stacks.InternStack({stacks.InternFrame("train.py", 7, "<module>")});
  const ProgramParts parts(&stacks);
  const Sequence sequence = ForwardThen(12, 12, line);
  EXPECT_TRUE(IsInsideOneCall(sequence, {12, 15, 18, 21, 24}, stacks, parts));
  EXPECT_FALSE(IsInsideOneCall(sequence, {0, 6, 12, 18, 24}, stacks, parts));
}

TEST(PeriodLevelTest, WithoutAnyStackNothingIsKnown) {
  const trace::StackTable stacks;
  EXPECT_FALSE(IsInsideOneCall(ForwardThen(0, 12, trace::kNoStack), {0, 3, 6, 9, 12}, stacks, ProgramParts(&stacks)));
}

}  // namespace
}  // namespace ashlar::analyses::period
