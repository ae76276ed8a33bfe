// Every value of a report on a failed request is the one that `ashlar explain` has of the same state.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_EXPECT_SAME_FAILURE_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_EXPECT_SAME_FAILURE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/core/oom_report.h"
#include "commands/explain/explain.h"
#include "gtest/gtest.h"

namespace ashlar::tests {

inline answers::OomVerdict VerdictOf(core::OomKind kind) {
  switch (kind) {
    case core::OomKind::kCapacity:
      return answers::OomVerdict::kCapacity;
    case core::OomKind::kNearlyFull:
      return answers::OomVerdict::kNearlyFull;
    case core::OomKind::kFragmentation:
      return answers::OomVerdict::kFragmentation;
    case core::OomKind::kOutside:
      return answers::OomVerdict::kOutside;
    case core::OomKind::kLimit:
      return answers::OomVerdict::kLimit;
  }
  return answers::OomVerdict::kUnknown;
}

inline void ExpectSameFailure(const core::OomReport& report, const answers::Explanation& explained) {
  const core::FailedAllocation& failed = report.failed;
  EXPECT_EQ(explained.verdict.kind, VerdictOf(report.judgement.kind));
  EXPECT_EQ(explained.failure.headroom->value_bytes, report.judgement.headroom_bytes);
  EXPECT_EQ(explained.verdict.evidence, core::OomSentences(report.judgement, report.figures));
  EXPECT_EQ(explained.failure.tried_bytes, failed.segment_bytes);
  const answers::OomAccounting& parts = explained.memory.accounting;
  EXPECT_EQ(parts.total_bytes, failed.device_total_bytes);
  EXPECT_EQ(parts.reserved_bytes, report.parts.reserved_bytes);
  EXPECT_EQ(parts.allocated_bytes, report.parts.allocated_bytes);
  EXPECT_EQ(parts.live_bytes, report.parts.live_bytes);
  EXPECT_EQ(parts.rounding_bytes, report.parts.rounding_bytes);
  EXPECT_EQ(parts.pending_bytes, report.parts.pending_bytes);
  EXPECT_EQ(parts.stranded_bytes, report.parts.stranded_bytes);
  EXPECT_EQ(parts.whole_free_bytes, report.parts.whole_free_bytes);
  EXPECT_EQ(parts.private_pool_bytes, report.parts.private_pool_bytes);
  EXPECT_EQ(parts.outside_bytes, report.outside_bytes);
  EXPECT_EQ(parts.free_bytes, failed.device_free_bytes);
  EXPECT_EQ(explained.memory.pins.stranded_segments, report.parts.stranded_segment_count);
  EXPECT_EQ(explained.memory.pins.pinning_blocks, report.parts.pinning_block_count);
  ASSERT_TRUE(explained.failure.recorded.has_value());
  const analyses::FailedRequest& request = explained.failure.recorded->request;
  EXPECT_EQ(request.request_bytes, failed.rounded_bytes);
  EXPECT_EQ(request.largest_cached_bytes, report.largest_cached_bytes);
  EXPECT_EQ(request.largest_servable_bytes, report.largest_servable_bytes);
  EXPECT_EQ(request.free_in_other_streams_bytes, report.largest_other_stream_bytes);
  // Without stacks each block is a line of its own.
  const std::vector<answers::PinLine>& pins = explained.memory.pins.lines;
  std::uint64_t blame = explained.memory.pins.other_blame_bytes;
  for (const answers::PinLine& pin : pins) blame += pin.blame_bytes;
  EXPECT_EQ(blame, report.parts.stranded_bytes);
  EXPECT_EQ(pins.size() + explained.memory.pins.other_blocks, report.pin_count);
  ASSERT_GE(pins.size(), report.pins.size());
  for (std::size_t i = 0; i < report.pins.size(); ++i) {
    EXPECT_EQ(pins[i].label, absl::StrCat("at 0x", absl::Hex(report.pins[i].address)));
    EXPECT_EQ(pins[i].size_bytes, report.pins[i].size_bytes);
    EXPECT_EQ(pins[i].blame_bytes, report.pins[i].blame_bytes);
  }
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_EXPECT_SAME_FAILURE_H_
