// Failures recorded from programs written down request by request, with figures worked out by hand.
#include "analyzer/analyses/failure/failed_request.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::analyses {
namespace {

using testing::HasSubstr;
using tests::Diagnosis;
using tests::SeededRun;

struct Examined {
  explicit Examined(SeededRun& run) : diagnosis(run.Finish()) {
    EXPECT_EQ(diagnosis.timeline().oom_events().size(), 1u);
    failed = ExamineFailure(diagnosis.timeline(), diagnosis.timeline().oom_events().at(0), diagnosis.options());
  }
  const LadderRung& Rung(const std::string& name) const {
    for (const LadderRung& rung : failed.rungs) {
      if (rung.name == name) return rung;
    }
    ADD_FAILURE() << name;
    return failed.rungs.front();
  }
  Diagnosis diagnosis;
  FailedRequest failed;
};

TEST(FailedRequestTest, ABlockAtTheEndOfEachSegment) {
  SeededRun run({.capacity_bytes = 50 * kMiB});
  std::vector<core::Block*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(run.Allocate(5 * kMiB));  // two segments of 20 MiB, four blocks each
  for (const std::size_t i : {0, 1, 2, 4, 5, 6}) run.Free(blocks[i]);
  EXPECT_EQ(run.Allocate(20 * kMiB), nullptr);
  const Examined examined(run);
  const FailedRequest& failed = examined.failed;
  EXPECT_EQ(failed.request_bytes, 20 * kMiB);
  EXPECT_EQ(failed.segment_bytes, 20 * kMiB);
  EXPECT_EQ(failed.device_free_bytes, 10 * kMiB);
  EXPECT_FALSE(failed.is_small_pool);
  EXPECT_FALSE(failed.is_limited);
  EXPECT_EQ(failed.largest_cached_bytes, 15 * kMiB);
  EXPECT_EQ(failed.largest_servable_bytes, 15 * kMiB);
  EXPECT_EQ(failed.returned_bytes, 0u);
  ASSERT_EQ(failed.rungs.size(), 8u);
  for (const LadderRung& rung : failed.rungs) EXPECT_FALSE(rung.would_serve) << rung.name;
  EXPECT_EQ(examined.Rung("finish frees that waited").bytes, 0u);
  EXPECT_EQ(examined.Rung("reuse a cached block").bytes, 15 * kMiB);
  EXPECT_EQ(examined.Rung("obtain a new segment").bytes, 10 * kMiB);
  EXPECT_THAT(examined.Rung("obtain a new segment").remark, HasSubstr("needs 20.00 MiB"));
  EXPECT_THAT(examined.Rung("collect garbage").remark, HasSubstr("off"));
  EXPECT_THAT(examined.Rung("release oversize blocks").remark, HasSubstr("off"));
  EXPECT_EQ(examined.Rung("release the whole cache").bytes, 0u);
  EXPECT_EQ(examined.Rung("search again").bytes, 15 * kMiB);
  // The 5 MiB at the end of one segment: its 20 MiB are one run then.
  ASSERT_TRUE(failed.release.has_value());
  EXPECT_EQ(failed.release->bytes, 5 * kMiB);
  EXPECT_TRUE(failed.release->is_minimal);
  EXPECT_TRUE(failed.release->is_one_run);
  ASSERT_EQ(failed.release->blocks.size(), 1u);
  const timeline::BlockSpan& block = examined.diagnosis.timeline().blocks()[failed.release->blocks[0]];
  EXPECT_EQ(block.size_bytes, 5 * kMiB);
  EXPECT_TRUE(block.IsLiveAfter(failed.event));
}

TEST(FailedRequestTest, TwoSegmentsEmptiedForTheDevice) {
  SeededRun run({.capacity_bytes = 70 * kMiB});
  for (int i = 0; i < 3; ++i) {  // three segments of 20 MiB: 11 live each but the last, with 3
    core::Block* rest = run.Allocate(9 * kMiB);
    run.Allocate(i == 2 ? 3 * kMiB : 11 * kMiB - 512);
    run.Free(rest);
  }
  EXPECT_EQ(run.Allocate(40 * kMiB), nullptr);
  const Examined examined(run);
  // 10 MiB are free and 40 needed: one segment of 20 MiB and one more, the cheapest being the 3 MiB one and either.
  ASSERT_TRUE(examined.failed.release.has_value());
  EXPECT_FALSE(examined.failed.release->is_one_run);
  EXPECT_EQ(examined.failed.release->blocks.size(), 2u);
  EXPECT_EQ(examined.failed.release->bytes, 3 * kMiB + 11 * kMiB - 512);
  EXPECT_TRUE(examined.failed.release->is_minimal);
}

TEST(FailedRequestTest, WhatTheLadderGaveBackJustBefore) {
  SeededRun run({.capacity_bytes = 60 * kMiB});
  run.Allocate(20 * kMiB);
  run.Free(run.Allocate(30 * kMiB));
  EXPECT_EQ(run.Allocate(50 * kMiB), nullptr);
  const Examined examined(run);
  EXPECT_EQ(examined.failed.returned_bytes, 30 * kMiB);
  EXPECT_EQ(examined.failed.returned_segments, 1u);
  EXPECT_EQ(examined.failed.device_free_bytes, 40 * kMiB);
  EXPECT_EQ(examined.failed.largest_servable_bytes, 40 * kMiB);
  EXPECT_EQ(examined.Rung("reuse a cached block").bytes, 30 * kMiB);
  EXPECT_EQ(examined.Rung("obtain a new segment").bytes, 10 * kMiB);  // when the ladder began
  EXPECT_EQ(examined.Rung("release the whole cache").bytes, 30 * kMiB);
  EXPECT_FALSE(examined.Rung("release the whole cache").would_serve);
  EXPECT_EQ(examined.Rung("search again").bytes, 0u);
  EXPECT_EQ(examined.failed.release->bytes, 20 * kMiB);
}

// The block that waited for another stream is free once the ladder has waited for it, and nobody looks.
TEST(FailedRequestTest, AFitThatIsNotLookedFor) {
  SeededRun run({.capacity_bytes = 80 * kMiB});
  core::Block* first = run.Allocate(12 * kMiB);
  run.Allocate(2 * kMiB);
  run.Free(run.Allocate(40 * kMiB));
  core::Block* big = run.Allocate(30 * kMiB);  // the cached 40: 10 stay behind it
  run.Allocate(9 * kMiB);                      // in that rest
  run.RecordStream(big, Stream{7});
  run.Free(big);
  run.Free(first);
  EXPECT_EQ(run.Allocate(30 * kMiB), nullptr);
  const Examined examined(run);
  EXPECT_EQ(examined.Rung("finish frees that waited").bytes, 30 * kMiB);
  EXPECT_TRUE(examined.Rung("finish frees that waited").would_serve);
  EXPECT_TRUE(examined.Rung("search again").would_serve);
  EXPECT_THAT(examined.Rung("search again").remark, HasSubstr("189504"));
  EXPECT_EQ(examined.failed.largest_cached_bytes, 30 * kMiB);
  ASSERT_TRUE(examined.failed.release.has_value());
  EXPECT_TRUE(examined.failed.release->blocks.empty());  // nothing need be released: ask again
  EXPECT_TRUE(examined.failed.release->is_minimal);
}

TEST(FailedRequestTest, FreeMemoryThatOnlyTheStreamKeepsAway) {
  SeededRun run({.capacity_bytes = 50 * kMiB});
  core::Block* other = run.Allocate(30 * kMiB, Stream{3});
  run.Allocate(10 * kMiB, Stream{3});  // a segment of its own
  run.Free(other);
  core::Block* kept = run.Allocate(9 * kMiB, Stream{3});  // in the 30
  EXPECT_NE(kept, nullptr);
  EXPECT_EQ(run.Allocate(20 * kMiB), nullptr);
  const Examined examined(run);
  EXPECT_EQ(examined.failed.largest_cached_bytes, 0u);
  EXPECT_EQ(examined.failed.free_in_other_streams_bytes, 21 * kMiB);
  EXPECT_EQ(examined.failed.free_in_other_pools_bytes, 0u);
  EXPECT_EQ(examined.failed.release->bytes, 10 * kMiB - kMiB);  // 9 MiB give the segment of 30 back
}

TEST(FailedRequestTest, APrivatePoolKeepsItsFreeBlocks) {
  SeededRun run({.capacity_bytes = 60 * kMiB, .has_pool_ids = true});
  run.Free(run.Allocate(40 * kMiB, {}, PoolId{0, 2}));
  run.Allocate(10 * kMiB);
  EXPECT_EQ(run.Allocate(24 * kMiB), nullptr);
  const Examined examined(run);
  EXPECT_EQ(examined.failed.free_in_other_pools_bytes, 40 * kMiB);
  EXPECT_FALSE(examined.failed.release.has_value());  // 10 MiB more are not enough, and the pool keeps its segment
}

// 18 MiB of the device are no segment for 5 MiB, though they are one for 18.
TEST(FailedRequestTest, AMediumRequestNeedsTwentyMebibytes) {
  SeededRun run({.capacity_bytes = 58 * kMiB});
  run.Allocate(40 * kMiB);
  EXPECT_EQ(run.Allocate(5 * kMiB), nullptr);
  const Examined examined(run);
  EXPECT_EQ(examined.failed.request_bytes, 5 * kMiB);
  EXPECT_EQ(examined.failed.segment_bytes, 20 * kMiB);
  EXPECT_EQ(examined.failed.largest_servable_bytes, 18 * kMiB);
  EXPECT_FALSE(examined.failed.is_limited);
}

TEST(FailedRequestTest, AMemoryFractionIsALimit) {
  SeededRun run({.conf = "per_process_memory_fraction:0.5", .capacity_bytes = 100 * kMiB});
  run.Allocate(30 * kMiB);
  EXPECT_EQ(run.Allocate(40 * kMiB), nullptr);
  const Examined examined(run);
  EXPECT_TRUE(examined.failed.is_limited);
  EXPECT_EQ(examined.failed.device_free_bytes, 70 * kMiB);
  EXPECT_EQ(examined.failed.largest_servable_bytes, 0u);  // of a new segment nothing is known
  EXPECT_FALSE(examined.Rung("obtain a new segment").would_serve);
  EXPECT_THAT(examined.Rung("obtain a new segment").remark, HasSubstr("limit"));
  // How much the limit leaves is not known: 30 MiB back are not surely enough for 40.
  EXPECT_FALSE(examined.failed.release.has_value());
}

TEST(FailedRequestTest, OversizeBlocksAreReleasedFirst) {
  SeededRun run({.conf = "max_split_size_mb:32", .capacity_bytes = 100 * kMiB});
  run.Allocate(20 * kMiB);
  core::Block* a = run.Allocate(40 * kMiB);
  core::Block* b = run.Allocate(34 * kMiB);
  run.Free(a);
  run.Free(b);
  EXPECT_EQ(run.Allocate(90 * kMiB), nullptr);
  const Examined examined(run);
  // The walk from the largest down takes both and does not reach 90.
  EXPECT_EQ(examined.Rung("release oversize blocks").bytes, 74 * kMiB);
  EXPECT_FALSE(examined.Rung("release oversize blocks").would_serve);
  EXPECT_EQ(examined.Rung("release the whole cache").bytes, 74 * kMiB);
  EXPECT_EQ(examined.failed.returned_bytes, 74 * kMiB);
  EXPECT_EQ(examined.failed.returned_segments, 2u);
  EXPECT_EQ(examined.failed.release->bytes, 20 * kMiB);
}

TEST(FailedRequestTest, ExpandableSegmentsGrowByPages) {
  SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = 100 * kMiB});
  run.Allocate(30 * kMiB);
  core::Block* middle = run.Allocate(20 * kMiB);
  run.Allocate(25 * kMiB);  // 75 of 80 mapped
  run.Free(middle);
  EXPECT_EQ(run.Allocate(46 * kMiB), nullptr);
  const Examined examined(run);
  // 30 to 50 free: whole pages 40 to 60 are not, so nothing was unmapped; 5 at the end and a page of 20 more.
  EXPECT_EQ(examined.failed.device_free_bytes, 20 * kMiB);
  EXPECT_EQ(examined.failed.largest_cached_bytes, 20 * kMiB);
  EXPECT_EQ(examined.failed.largest_servable_bytes, 25 * kMiB);
  // 20 of the hole, 25 of the last block, 5 behind it.
  EXPECT_EQ(examined.failed.release->bytes, 25 * kMiB);
}

}  // namespace
}  // namespace ashlar::analyses
