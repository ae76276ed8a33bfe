// Causes of out-of-memory messages: those of a message's own figures, worked out by hand, and those it cannot show.
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::analyses {
namespace {

std::vector<CauseFinding> CausesOf(const std::string& text) {
  const std::vector<formats::OomMessage> messages = formats::FindOomMessages(text);
  EXPECT_EQ(messages.size(), 1u) << text;
  return FindCauses({.message = JudgeOomMessage(messages.front(), {})});
}

const CauseFinding& Of(CauseKind kind, const std::vector<CauseFinding>& causes) {
  for (const CauseFinding& cause : causes) {
    if (cause.kind == kind) return cause;
  }
  ADD_FAILURE() << CauseName(kind);
  return causes.front();
}

// 12.32 allocated + 2.69 tried = 15.01 GiB, of 14.76 - 0.88 = 13.88 GiB that can be held: 1.13 GiB short.
TEST(CausesMessageTest, AFullDeviceIsProven) {
  const std::vector<CauseFinding> causes = CausesOf(
      "RuntimeError: CUDA out of memory. Tried to allocate 2.69 GiB (GPU 0; 14.76 GiB total capacity; 12.32 GiB "
      "already "
      "allocated; 835.88 MiB free; 13.06 GiB reserved in total by PyTorch)");
  EXPECT_EQ(causes.front().kind, CauseKind::kCapacity);
  EXPECT_EQ(causes.front().confidence, Confidence::kProven);
  EXPECT_NEAR(static_cast<double>(causes.front().bytes) / kGiB, 1.13, 0.02);
  // 0.88 GiB outside is what one context takes.
  EXPECT_EQ(Of(CauseKind::kOtherProcess, causes).finding, Finding::kAbsent);
  EXPECT_EQ(Of(CauseKind::kPinnedSegment, causes).finding, Finding::kNotInTrace);
}

// 14.44 reserved - 13.16 allocated = 1.28 GiB behind blocks in use; 220 MiB would fit in that.
TEST(CausesMessageTest, HolesLieBehindBlocksInUse) {
  const std::vector<CauseFinding> causes = CausesOf(
      "RuntimeError: CUDA out of memory. Tried to allocate 220.00 MiB (GPU 0; 15.78 GiB total capacity; 13.16 GiB "
      "already "
      "allocated; 201.44 MiB free; 14.44 GiB reserved in total by PyTorch");
  EXPECT_EQ(causes.front().kind, CauseKind::kPinnedSegment);
  EXPECT_EQ(causes.front().confidence, Confidence::kPossible);
  EXPECT_NEAR(static_cast<double>(causes.front().bytes) / kGiB, 1.28, 0.02);
  EXPECT_EQ(Of(CauseKind::kCapacity, causes).finding, Finding::kAbsent);
}

// 1.63 GiB outside, more than a tenth of 7.43 GiB, and no more than one context can take.
TEST(CausesMessageTest, ALargeContextOnASmallDeviceIsNamed) {
  const std::vector<CauseFinding> causes = CausesOf(
      "RuntimeError: CUDA out of memory. Tried to allocate 24.00 MiB (GPU 0; 7.43 GiB total capacity; 5.42 GiB already "
      "allocated; 8.94 MiB free; 5.79 GiB reserved in total by PyTorch)");
  const CauseFinding& workspaces = Of(CauseKind::kWorkspaces, causes);
  EXPECT_EQ(workspaces.finding, Finding::kFound);
  EXPECT_NEAR(static_cast<double>(workspaces.bytes) / kGiB, 1.63, 0.02);
}

std::string CausesMessageNamed(const std::string& processes) {
  return "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 "
         "GiB "
         "of which 101.00 MiB is free. " +
         processes +
         "Including non-PyTorch memory, this process has 10.00 GiB memory in use. Of the allocated memory 9.00 GiB is "
         "allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.";
}

TEST(CausesMessageTest, NamedProcessesAreOthersOrContextsOfRanks) {
  const std::vector<CauseFinding> other = CausesOf(CausesMessageNamed("Process 77 has 13.50 GiB memory in use. "));
  EXPECT_EQ(other.front().kind, CauseKind::kOtherProcess);
  EXPECT_EQ(other.front().confidence, Confidence::kLikely);
  EXPECT_NEAR(static_cast<double>(other.front().bytes) / kGiB, 13.5, 0.01);
  EXPECT_EQ(Of(CauseKind::kOtherRanksContexts, other).finding, Finding::kAbsent);

  const std::vector<CauseFinding> ranks = CausesOf(CausesMessageNamed(
      "Process 77 has 500.00 MiB memory in use. Process 78 has 500.00 MiB memory in use. Process 79 has 524.00 MiB "
      "memory in use. "));
  const CauseFinding& contexts = Of(CauseKind::kOtherRanksContexts, ranks);
  EXPECT_EQ(contexts.finding, Finding::kFound);
  EXPECT_NEAR(static_cast<double>(contexts.bytes) / kMiB, 1524, 1);
  EXPECT_EQ(Of(CauseKind::kOtherProcess, ranks).finding, Finding::kAbsent);
}

// Nothing that needs a trace is guessed from a message: each says what would tell.
TEST(CausesMessageTest, WhatAMessageCannotShowSaysWhatWould) {
  for (const CauseFinding& cause : CausesOf("CUDA out of memory. Tried to allocate 2.00 GiB")) {
    EXPECT_EQ(cause.finding, Finding::kNotInTrace) << CauseName(cause.kind);
    EXPECT_THAT(cause.missing, testing::HasSubstr(" would")) << CauseName(cause.kind);
  }
}

}  // namespace
}  // namespace ashlar::analyses
