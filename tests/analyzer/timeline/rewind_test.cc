// Stories of a few events: how the state before them follows from the state after them.
#include "analyzer/timeline/rewind.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/timeline/story.h"

namespace ashlar::timeline {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kA = 0x7f0000000000;
constexpr std::uint64_t kSmall = 2 * kMiB;
constexpr std::uint64_t kRewindLarge = 20 * kMiB;

StartState MustRewind(const Story& story, const BlockSizeRule& rule = TorchRule(), int device = 0) {
  const absl::StatusOr<StartState> start = Rewind({story.snapshot, device}, rule);
  EXPECT_TRUE(start.ok()) << start.status();
  return start.ok() ? *start : StartState{};
}

std::string Refusal(const Story& story, const BlockSizeRule& rule = TorchRule()) {
  const absl::StatusOr<StartState> start = Rewind({story.snapshot, 0}, rule);
  EXPECT_EQ(start.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(start.status().message());
}

TEST(RewindTest, AnEmptySnapshotIsAnEmptyState) { EXPECT_TRUE(MustRewind(Story()).segments.empty()); }

TEST(RewindTest, AnAllocInTheWindowIsFreeBeforeIt) {
  Story story;
  story.Segment(kA, kSmall, true, {Live(kA, 512, 100)});
  story.Then({Alloc(kA, 100)});
  const StartState start = MustRewind(story);
  ASSERT_EQ(start.segments.size(), 1u);
  EXPECT_TRUE(start.segments[0].blocks.empty());
}

TEST(RewindTest, ABlockFreedInTheWindowWasLive) {
  Story story;
  story.Segment(kA, kSmall, true);
  story.Then({FreeRequested(kA + 512, 700), FreeCompleted(kA + 512, 700)});
  const StartState start = MustRewind(story);
  ASSERT_EQ(start.segments[0].blocks.size(), 1u);
  const StateBlock& block = start.segments[0].blocks[0];
  EXPECT_EQ(block.address, kA + 512);
  EXPECT_EQ(block.size_bytes, 1024u);
  EXPECT_EQ(block.requested_bytes, 700u);
  EXPECT_EQ(block.state, trace::BlockState::kLive);
  EXPECT_FALSE(block.size_is_minimum);  // the small pool splits off every rest
}

TEST(RewindTest, AFreeWhoseRequestIsLostWasPending) {
  Story story;
  story.Segment(kA, kSmall, true);
  story.Then({FreeCompleted(kA, 512)});
  EXPECT_EQ(MustRewind(story).segments[0].blocks[0].state, trace::BlockState::kPending);
}

TEST(RewindTest, ABlockStillPendingInTheEndWasLive) {
  Story story;
  story.Segment(kA, kSmall, true, {Pending(kA, 512, 400)});
  story.Then({FreeRequested(kA, 400)});
  EXPECT_EQ(MustRewind(story).segments[0].blocks[0].state, trace::BlockState::kLive);
}

TEST(RewindTest, SegmentsComeAndGo) {
  Story story;
  story.Segment(kA, kRewindLarge, false);
  story.Then({SegmentFree(kA, kSmall), SegmentAlloc(kA, kRewindLarge), SegmentFree(kA + kGiB, kRewindLarge)});
  const StartState start = MustRewind(story);
  ASSERT_EQ(start.segments.size(), 2u);
  EXPECT_EQ(start.segments[0].size_bytes, kSmall);
  EXPECT_TRUE(start.segments[0].is_small_pool);
  EXPECT_EQ(start.segments[1].address, kA + kGiB);
  EXPECT_FALSE(start.segments[1].is_small_pool);
}

TEST(RewindTest, TwoDevicesAreRewoundApart) {
  Story story;
  story.Segment(kA, kSmall, true, {Live(kA, 512, 1)});
  story.Segment(kA, kSmall, true, {Live(kA, 512, 2)}).device = 1;  // the same address on another device
  story.Then({Alloc(kA, 1)}, 0);
  story.Then({MakeEvent(trace::Action::kSnapshot, 0, 5)}, 1);
  EXPECT_TRUE(MustRewind(story, TorchRule(), 0).segments[0].blocks.empty());
  EXPECT_EQ(MustRewind(story, TorchRule(), 1).segments[0].blocks.size(), 1u);
  EXPECT_TRUE(MustRewind(story, TorchRule(), 2).segments.empty());
}

TEST(RewindTest, PrivatePoolsKeepTheirNames) {
  Story story;
  story.Segment(kA, kSmall, true, {Live(kA, 512, 1)}).pool = {0, 7};
  story.Then({Alloc(kA, 1)});
  EXPECT_EQ(MustRewind(story).segments[0].pool, (PoolId{0, 7}));
}

// Tails: what an old block of the large pool spans beyond its request.

TEST(RewindTest, AGapTooSmallForAFreeBlockIsATail) {
  Story story;
  const std::uint64_t next = kA + 4 * kMiB;
  story.Segment(kA, kRewindLarge, false, {Live(next, 3 * kMiB, 3 * kMiB)});
  story.Then({FreeRequested(kA, 3 * kMiB), FreeCompleted(kA, 3 * kMiB)});
  const StartState start = MustRewind(story);
  EXPECT_EQ(start.segments[0].blocks[0].size_bytes, 4 * kMiB);
  EXPECT_FALSE(start.segments[0].blocks[0].size_is_minimum);
  EXPECT_EQ(start.unknown_tails, 0u);
}

TEST(RewindTest, AGapBigEnoughForAFreeBlockHidesTheTail) {
  Story story;
  story.Segment(kA, kRewindLarge, false, {Live(kA + 4 * kMiB + 512, 3 * kMiB, 3 * kMiB)});
  story.Then({FreeRequested(kA, 3 * kMiB), FreeCompleted(kA, 3 * kMiB)});
  const StartState start = MustRewind(story);
  EXPECT_EQ(start.segments[0].blocks[0].size_bytes, 3 * kMiB);
  EXPECT_TRUE(start.segments[0].blocks[0].size_is_minimum);
  EXPECT_EQ(start.unknown_tails, 1u);
}

TEST(RewindTest, TheNextBlockPlacedBehindRevealsTheTail) {
  for (const std::uint64_t tail : {std::uint64_t{0}, std::uint64_t{512}, kMiB}) {
    Story story;
    const std::uint64_t behind = kA + 3 * kMiB + tail;
    story.Segment(kA, kRewindLarge, false, {Live(behind, 2 * kMiB, 2 * kMiB)});
    story.Then({Alloc(behind, 2 * kMiB), FreeRequested(kA, 3 * kMiB), FreeCompleted(kA, 3 * kMiB)});
    const StartState start = MustRewind(story);
    EXPECT_EQ(start.segments[0].blocks[0].size_bytes, 3 * kMiB + tail);
    EXPECT_FALSE(start.segments[0].blocks[0].size_is_minimum);
    EXPECT_EQ(start.inferred_tails, 1u);
    EXPECT_EQ(start.unknown_tails, 0u);
  }
}

TEST(RewindTest, ABlockPlacedAfterTheFreeRevealsNothing) {
  Story story;
  story.Segment(kA, kRewindLarge, false, {Live(kA, 5 * kMiB, 5 * kMiB)});
  story.Then({FreeRequested(kA, 3 * kMiB), FreeCompleted(kA, 3 * kMiB), Alloc(kA, 5 * kMiB)});
  EXPECT_EQ(MustRewind(story).unknown_tails, 1u);
}

TEST(RewindTest, AnOversizeBlockIsItsWholeSegment) {
  BlockSizeRule rule = TorchRule();
  rule.max_split_size_bytes = kRewindLarge;
  Story story;
  story.Segment(kA, 40 * kMiB, false);
  story.Then({FreeRequested(kA, 25 * kMiB), FreeCompleted(kA, 25 * kMiB)});
  EXPECT_EQ(MustRewind(story, rule).segments[0].blocks[0].size_bytes, 40 * kMiB);
  EXPECT_EQ(MustRewind(story).segments[0].blocks[0].size_bytes, 25 * kMiB);
}

TEST(RewindTest, TheExpandableOptionLeavesNoTails) {
  BlockSizeRule rule = TorchRule();
  rule.expandable_option = true;
  Story story;
  story.Segment(kA, kRewindLarge, false, {Live(kA + 4 * kMiB, 3 * kMiB, 3 * kMiB)});
  story.Then({FreeRequested(kA, 3 * kMiB), FreeCompleted(kA, 3 * kMiB)});
  const StartState start = MustRewind(story, rule);
  EXPECT_EQ(start.segments[0].blocks[0].size_bytes, 3 * kMiB);
  EXPECT_EQ(start.unknown_tails, 0u);
}

// Expandable segments: a final segment is a maximal mapped range.

TEST(RewindTest, AMapIsTakenOffItsRange) {
  Story story;
  story.Segment(kA, 2 * kRewindLarge, false, {Live(kA, 30 * kMiB, 30 * kMiB)}).is_expandable = true;
  story.Then({Map(kA + kRewindLarge, kRewindLarge), Alloc(kA, 30 * kMiB)});  // it joins the free bytes before it
  const StartState start = MustRewind(story);
  ASSERT_EQ(start.segments.size(), 1u);
  EXPECT_EQ(start.segments[0].size_bytes, kRewindLarge);
}

TEST(RewindTest, AMapThatClosedAHoleIsAHoleBefore) {
  Story story;
  story.Segment(kA, 3 * kSmall, true).is_expandable = true;
  story.Then({Map(kA + kSmall, kSmall)});
  const StartState start = MustRewind(story);
  ASSERT_EQ(start.segments.size(), 2u);
  EXPECT_EQ(start.segments[1].address, kA + 2 * kSmall);
}

TEST(RewindTest, AnUnmapPunchedAHoleIntoOneRange) {
  Story story;
  story.Segment(kA, kSmall, true, {Live(kA, 512, 1)}).is_expandable = true;
  story.Segment(kA + 2 * kSmall, kSmall, true).is_expandable = true;
  story.Then({Unmap(kA + kSmall, kSmall)});
  const StartState start = MustRewind(story);
  ASSERT_EQ(start.segments.size(), 1u);
  EXPECT_EQ(start.segments[0].size_bytes, 3 * kSmall);
  EXPECT_TRUE(start.segments[0].is_small_pool);
}

TEST(RewindTest, ARangeWhollyUnmappedIsNamedAfterItsBlocks) {
  for (const std::uint64_t bytes : {std::uint64_t{4096}, 3 * kMiB}) {
    Story story;
    story.Then({FreeRequested(kA, bytes), FreeCompleted(kA, bytes), Unmap(kA, kRewindLarge)});
    const StartState start = MustRewind(story);
    ASSERT_EQ(start.segments.size(), 1u);
    EXPECT_TRUE(start.segments[0].is_expandable);
    EXPECT_EQ(start.segments[0].is_small_pool, bytes == 4096);
    EXPECT_EQ(start.segments[0].blocks.size(), 1u);
  }
}

// Records that contradict each other.

TEST(RewindRefusalTest, AnAllocWithoutItsBlock) {
  Story story;
  story.Segment(kA, kSmall, true);
  story.Then({MakeEvent(trace::Action::kSnapshot, 0, 0), Alloc(kA, 100)});
  EXPECT_EQ(Refusal(story),
            "device 0, event 1 (alloc of 100 B at 0x7f0000000000): undone from the final segments: expected a live "
            "block of 100 requested B there, found no block that starts there; the trace and the segments disagree");
}

TEST(RewindRefusalTest, AnAllocOfAnotherRequest) {
  Story story;
  story.Segment(kA, kSmall, true, {Live(kA, 512, 200)});
  story.Then({Alloc(kA, 100)});
  EXPECT_THAT(Refusal(story), HasSubstr("found a live one of 200 requested B"));
}

TEST(RewindRefusalTest, AFreeUnderALiveBlock) {
  Story story;
  story.Segment(kA, kSmall, true, {Live(kA, 1024, 1024)});
  story.Then({FreeRequested(kA + 512, 512), FreeCompleted(kA + 512, 512)});
  EXPECT_THAT(Refusal(story), HasSubstr("event 1 (free_completed of 512 B"));
  EXPECT_THAT(Refusal(story), HasSubstr("found a live block [0x7f0000000000, 0x7f0000000400)"));
}

TEST(RewindRefusalTest, AFreeOutsideEverySegment) {
  Story story;
  story.Segment(kA, kSmall, true);
  story.Then({FreeRequested(kA + kGiB, 512), FreeCompleted(kA + kGiB, 512)});
  EXPECT_THAT(Refusal(story), HasSubstr("expected a segment around it, found none"));
}

TEST(RewindRefusalTest, AFreeLongerThanItsSegment) {
  Story story;
  story.Segment(kA, kSmall, true);
  story.Then({FreeCompleted(kA + kSmall - 512, 1024)});
  EXPECT_THAT(Refusal(story), HasSubstr("found 512 B to its end"));
}

TEST(RewindRefusalTest, AFreeRequestedTwice) {
  Story story;
  story.Segment(kA, kSmall, true);
  story.Then({FreeRequested(kA, 512), FreeRequested(kA, 512), FreeCompleted(kA, 512)});
  EXPECT_THAT(Refusal(story), HasSubstr("expected a pending block of 512 requested B there, found a live one"));
}

TEST(RewindRefusalTest, ASegmentFreedTwice) {
  Story story;
  story.Then({SegmentFree(kA, kSmall), SegmentFree(kA, kSmall)});
  EXPECT_THAT(Refusal(story), HasSubstr("event 0 (segment_free"));
  EXPECT_THAT(Refusal(story), HasSubstr("found the segment [0x7f0000000000, 0x7f0000200000)"));
}

TEST(RewindRefusalTest, ASegmentMadeUnderABlock) {
  Story story;
  story.Segment(kA, kSmall, true, {Live(kA, 512, 1)});
  story.Then({SegmentAlloc(kA, kSmall)});
  EXPECT_THAT(Refusal(story), HasSubstr("found a live block"));
}

TEST(RewindRefusalTest, ASegmentOfAnotherSize) {
  Story story;
  story.Segment(kA, kRewindLarge, false);
  story.Then({SegmentAlloc(kA, kSmall)});
  EXPECT_THAT(Refusal(story), HasSubstr("expected a segment of 2097152 B"));
}

TEST(RewindRefusalTest, AMapOfWhatIsNotMapped) {
  Story story;
  story.Segment(kA, kSmall, true).is_expandable = true;
  story.Then({Map(kA, 2 * kSmall)});
  EXPECT_THAT(Refusal(story), HasSubstr("inside one mapped range"));
}

TEST(RewindRefusalTest, OverlappingFinalSegments) {
  Story story;
  story.Segment(kA, kRewindLarge, false);
  story.Segment(kA + kSmall, kRewindLarge, false);
  EXPECT_THAT(Refusal(story), HasSubstr("device 0, final segment at 0x7f0000200000"));
}

TEST(RewindRefusalTest, ARequestThatDoesNotFitItsPlace) {
  Story story;
  story.Segment(kA, kSmall, true, {Live(kA + 512, 512, 1)});
  story.Then({Alloc(kA, 700), FreeRequested(kA, 700)});
  story.snapshot.segments[0].blocks[0] = Pending(kA, 512, 700);  // 700 bytes in a block of 512
  EXPECT_THAT(Refusal(story), HasSubstr("expected a block of at least its 700 requested B"));
}

}  // namespace
}  // namespace ashlar::timeline
