// Stories told forwards: block sizes from places, and the notes on what does not follow the rule.
#include "analyzer/timeline/observed.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/timeline/story.h"

namespace ashlar::timeline {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kObservedA = 0x7f0000000000;
constexpr std::uint64_t kObservedSmall = 2 * kMiB;
constexpr std::uint64_t kLarge = 20 * kMiB;

Timeline MustObserve(const Story& story, const BlockSizeRule& rule = TorchRule()) {
  absl::StatusOr<Timeline> timeline = MakeObservedTimeline({story.snapshot, 0}, rule);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *std::move(timeline) : Timeline(TimelineColumns{});
}

std::uint64_t CountOf(const Timeline& timeline, absl::string_view name) {
  for (const trace::Note& note : timeline.notes()) {
    if (note.name == name) return note.count;
  }
  return 0;
}

TEST(ObservedTest, NoEventsLeaveTheFinalState) {
  Story story;
  story.Segment(kObservedA, kObservedSmall, true, {Live(kObservedA, 512, 100), Pending(kObservedA + 1024, 1024, 900)});
  const Timeline timeline = MustObserve(story);
  EXPECT_EQ(timeline.event_count(), 0);
  EXPECT_EQ(timeline.maker(), Maker::kObserved);
  EXPECT_EQ(timeline.TotalsAfter(kBeforeWindow), (Totals{512, 1536, kObservedSmall, 100}));
  EXPECT_TRUE(CheckAgainstFinalState(timeline.StateAt(kBeforeWindow), {story.snapshot, 0}).ok());
  EXPECT_EQ(MustObserve(Story()).reserved_peak().bytes, 0u);
}

TEST(ObservedTest, AFreedBlockGetsTheRestOfItsGap) {
  Story story;
  story.Segment(kObservedA, kLarge, false);
  story.Then({Alloc(kObservedA, kLarge - kMiB), FreeRequested(kObservedA, kLarge - kMiB),
              FreeCompleted(kObservedA, kLarge - kMiB), Alloc(kObservedA, 3 * kMiB),
              FreeRequested(kObservedA, 3 * kMiB), FreeCompleted(kObservedA, 3 * kMiB)});
  const Timeline timeline = MustObserve(story);
  ASSERT_EQ(timeline.blocks().size(), 2u);
  EXPECT_EQ(timeline.blocks()[0].size_bytes, kLarge);
  EXPECT_EQ(timeline.blocks()[1].size_bytes, 3 * kMiB);
  EXPECT_EQ(timeline.allocated_peak().bytes, kLarge);
  EXPECT_EQ(timeline.allocated_peak().event, 0);
}

TEST(ObservedTest, APendingBlockIsActiveAndInTheWay) {
  Story story;
  const std::uint64_t b = kObservedA + 5 * kMiB;
  story.Segment(kObservedA, kLarge, false);
  story.Then({Alloc(kObservedA, 5 * kMiB), Alloc(b, 15 * kMiB), FreeRequested(b, 15 * kMiB),
              FreeRequested(kObservedA, 5 * kMiB), FreeCompleted(kObservedA, 5 * kMiB), Alloc(kObservedA, 4 * kMiB),
              FreeRequested(kObservedA, 4 * kMiB), FreeCompleted(kObservedA, 4 * kMiB), FreeCompleted(b, 15 * kMiB)});
  const Timeline timeline = MustObserve(story);
  EXPECT_EQ(timeline.blocks()[2].size_bytes, 5 * kMiB);  // the gap ends at the pending block
  EXPECT_EQ(timeline.TotalsAfter(2), (Totals{5 * kMiB, 20 * kMiB, kLarge, 5 * kMiB}));
  EXPECT_EQ(timeline.TotalsAfter(8), (Totals{0, 0, kLarge, 0}));
}

TEST(ObservedTest, TheFinalSizeWinsOverTheRule) {
  Story story;
  story.Segment(kObservedA, kLarge, false, {Live(kObservedA, kLarge, 3 * kMiB)});  // a pool that never splits
  story.Then({Alloc(kObservedA, 3 * kMiB)});
  const Timeline timeline = MustObserve(story);
  EXPECT_EQ(timeline.blocks()[0].size_bytes, kLarge);
  EXPECT_EQ(CountOf(timeline, "rule_disagreements"), 1u);
}

TEST(ObservedTest, ABlockInsideAnAssumedRestShrinksIt) {
  Story story;  // recorded with another limit than the rule's: a rest of 512 KiB was split off
  story.Segment(kObservedA, 4 * kMiB, false);
  const std::uint64_t bytes = 7 * kMiB / 2;
  story.Then({Alloc(kObservedA, bytes), Alloc(kObservedA + bytes, 1024), FreeRequested(kObservedA, bytes),
              FreeCompleted(kObservedA, bytes), FreeRequested(kObservedA + bytes, 1024),
              FreeCompleted(kObservedA + bytes, 1024)});
  const Timeline timeline = MustObserve(story);
  EXPECT_EQ(timeline.blocks()[0].size_bytes, bytes);
  EXPECT_EQ(CountOf(timeline, "rule_disagreements"), 1u);
}

TEST(ObservedTest, AnAllocInTheMiddleOfAGapIsCounted) {
  Story story;
  story.Segment(kObservedA, kObservedSmall, true, {Live(kObservedA + 4096, 512, 1)});
  story.Then({Alloc(kObservedA + 4096, 1)});
  EXPECT_EQ(CountOf(MustObserve(story), "unexplained_gaps"), 1u);
}

TEST(ObservedTest, AStreamThatIsNotTheSegmentsIsCounted) {
  Story story;
  story.Segment(kObservedA, kObservedSmall, true, {Live(kObservedA, 512, 1)});
  story.Then({MakeEvent(trace::Action::kAlloc, kObservedA, 1, /*stream=*/5)});
  EXPECT_EQ(CountOf(MustObserve(story), "stream_mismatches"), 1u);
}

TEST(ObservedTest, ASegmentAddressIsUsedAgain) {
  Story story;
  story.Segment(kObservedA, kLarge, false, {Live(kObservedA, 4 * kMiB, 4 * kMiB)});
  story.Then({SegmentFree(kObservedA, kObservedSmall), SegmentAlloc(kObservedA, kLarge), Alloc(kObservedA, 4 * kMiB)});
  const Timeline timeline = MustObserve(story);
  ASSERT_EQ(timeline.segments().size(), 2u);
  EXPECT_EQ(timeline.segments()[0].end_event, 0);
  EXPECT_EQ(timeline.segments()[1].BeginEvent(), 1);
  EXPECT_EQ(timeline.blocks()[0].segment, 1u);
  EXPECT_EQ(timeline.TotalsAfter(0).reserved_bytes, 0u);
}

TEST(ObservedTest, AMappedRangeGrowsJoinsAndSplits) {
  Story story;
  story.Segment(kObservedA, kLarge, false).is_expandable = true;
  story.Segment(kObservedA + 2 * kLarge, kLarge, false).is_expandable = true;
  story.Then({Map(kObservedA, kLarge), Map(kObservedA + 2 * kLarge, kLarge), Map(kObservedA + kLarge, kLarge),
              Alloc(kObservedA, 50 * kMiB), FreeRequested(kObservedA, 50 * kMiB), FreeCompleted(kObservedA, 50 * kMiB),
              Unmap(kObservedA + kLarge, kLarge)});
  const Timeline timeline = MustObserve(story);
  ASSERT_EQ(timeline.segments().size(), 3u);
  EXPECT_EQ(timeline.segments()[0].extents.size(), 3u);  // one page, three, one
  EXPECT_EQ(timeline.segments()[0].ExtentAfter(3).size_bytes, 3 * kLarge);
  EXPECT_EQ(timeline.segments()[0].ExtentAfter(6).size_bytes, kLarge);
  EXPECT_EQ(timeline.segments()[1].end_event, 2);
  EXPECT_EQ(timeline.segments()[2].BeginEvent(), 6);
  EXPECT_EQ(timeline.reserved_peak().bytes, 3 * kLarge);
}

TEST(ObservedTest, ABlockInAnExpandableSegmentLeavesEveryRest) {
  Story story;
  story.Segment(kObservedA, kLarge, false).is_expandable = true;
  story.Then({Alloc(kObservedA, kLarge - 512), FreeRequested(kObservedA, kLarge - 512),
              FreeCompleted(kObservedA, kLarge - 512)});
  EXPECT_EQ(MustObserve(story).blocks()[0].size_bytes, kLarge - 512);
}

TEST(ObservedTest, ContradictionsAreRefused) {
  Story story;
  story.Segment(kObservedA, kObservedSmall, true);
  story.Then({Alloc(kObservedA, 1)});
  EXPECT_EQ(MakeObservedTimeline({story.snapshot, 0}, TorchRule()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CheckAgainstFinalStateTest, NamesTheFirstDifference) {
  Story story;
  story.Segment(kObservedA, kObservedSmall, true, {Live(kObservedA, 512, 1), Live(kObservedA + 512, 512, 1)});
  const Timeline timeline = MustObserve(story);
  story.snapshot.segments[0].blocks[1].state = trace::BlockState::kPending;
  EXPECT_EQ(CheckAgainstFinalState(timeline.StateAt(kBeforeWindow), {story.snapshot, 0}).message(),
            "device 0: the events end with a live block of 512 B at 0x7f0000000200 where the final segments have a "
            "pending block of 512 B at 0x7f0000000200");
  story.snapshot.segments.clear();
  EXPECT_THAT(std::string(CheckAgainstFinalState(timeline.StateAt(kBeforeWindow), {story.snapshot, 0}).message()),
              HasSubstr("have nothing more"));
}

}  // namespace
}  // namespace ashlar::timeline
