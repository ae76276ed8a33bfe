// The builder as a replay uses it, the columns it makes, and that Validate sees every way of spoiling them.
#include "analyzer/timeline/timeline.h"

#include <functional>
#include <string>

#include "analyzer/timeline/timeline_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/timeline/story.h"

namespace ashlar::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using trace::BlockState;

constexpr std::uint64_t kTimelineA = 0x1000000;
constexpr std::uint64_t kB = 0x9000000;
constexpr std::uint64_t kTimelineSmall = 2 * kMiB;
constexpr std::uint64_t kTimelineLarge = 20 * kMiB;

StateBlock BlockOf(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t requested_bytes,
                   BlockState state = BlockState::kLive) {
  return {.address = address, .size_bytes = size_bytes, .requested_bytes = requested_bytes, .state = state};
}

// One small segment with a live and a pending block.
StartState TwoBlocks() {
  StartState start;
  start.segments.push_back({.address = kTimelineA, .size_bytes = kTimelineSmall, .is_small_pool = true});
  start.segments[0].blocks = {BlockOf(kTimelineA, 512, 500),
                              BlockOf(kTimelineA + 512, 1024, 1000, BlockState::kPending)};
  return start;
}

void Feed(TimelineBuilder& builder, const trace::Event& event, std::uint64_t block_size_bytes = 0) {
  const absl::Status status = builder.Add(event, block_size_bytes);
  ASSERT_TRUE(status.ok()) << status;
}

TimelineColumns Columns(const Timeline& timeline) {
  TimelineColumns columns;
  columns.events = timeline.event_list();
  columns.start_totals = timeline.TotalsAfter(kBeforeWindow);
  columns.totals.assign(timeline.totals().begin(), timeline.totals().end());
  columns.blocks.assign(timeline.blocks().begin(), timeline.blocks().end());
  columns.segments.assign(timeline.segments().begin(), timeline.segments().end());
  columns.oom_events.assign(timeline.oom_events().begin(), timeline.oom_events().end());
  columns.allocated_peak = timeline.allocated_peak();
  columns.active_peak = timeline.active_peak();
  columns.reserved_peak = timeline.reserved_peak();
  return columns;
}

Timeline Example() {
  TimelineBuilder builder(TwoBlocks());
  Feed(builder, FreeCompleted(kTimelineA + 512, 1000));             // 0
  Feed(builder, SegmentAlloc(kB, kTimelineLarge));                  // 1
  Feed(builder, Alloc(kB, 3 * kMiB), 3 * kMiB);                     // 2
  Feed(builder, FreeRequested(kB, 3 * kMiB));                       // 3
  Feed(builder, Alloc(kB + 3 * kMiB, 17 * kMiB - 512), 17 * kMiB);  // 4
  Feed(builder, MakeEvent(trace::Action::kOom, 0, kGiB));           // 5
  Feed(builder, FreeCompleted(kB, 3 * kMiB));                       // 6
  Feed(builder, FreeRequested(kB + 3 * kMiB, 17 * kMiB - 512));     // 7
  Feed(builder, FreeCompleted(kB + 3 * kMiB, 17 * kMiB - 512));     // 8
  Feed(builder, SegmentFree(kB, kTimelineLarge));                   // 9
  absl::StatusOr<Timeline> timeline = builder.Finish();
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return *std::move(timeline);
}

TEST(TimelineTest, RunningTotals) {
  const Timeline timeline = Example();
  EXPECT_EQ(timeline.maker(), Maker::kReplayed);
  EXPECT_EQ(timeline.TotalsAfter(kBeforeWindow), (Totals{512, 1536, kTimelineSmall, 500}));
  EXPECT_EQ(timeline.TotalsAfter(0), (Totals{512, 512, kTimelineSmall, 500}));
  EXPECT_EQ(timeline.TotalsAfter(1), (Totals{512, 512, kTimelineSmall + kTimelineLarge, 500}));
  EXPECT_EQ(timeline.TotalsAfter(3), (Totals{512, 512 + 3 * kMiB, kTimelineSmall + kTimelineLarge, 500}));
  EXPECT_EQ(timeline.TotalsAfter(4),
            (Totals{512 + 17 * kMiB, 512 + kTimelineLarge, kTimelineSmall + kTimelineLarge, 500 + 17 * kMiB - 512}));
  EXPECT_EQ(timeline.TotalsAfter(9), (Totals{512, 512, kTimelineSmall, 500}));
  EXPECT_TRUE(timeline.Validate().ok()) << timeline.Validate();
}

TEST(TimelineTest, PeaksAreAtTheFirstEventThatReachesThem) {
  const Timeline timeline = Example();
  EXPECT_EQ(timeline.allocated_peak().bytes, 512 + 17 * kMiB);
  EXPECT_EQ(timeline.allocated_peak().event, 4);
  EXPECT_EQ(timeline.active_peak().bytes, 512 + kTimelineLarge);
  EXPECT_EQ(timeline.active_peak().event, 4);
  EXPECT_EQ(timeline.reserved_peak().event, 1);
  EXPECT_THAT(timeline.oom_events(), ElementsAre(5));
}

TEST(TimelineTest, SpansKnowTheirEvents) {
  const Timeline timeline = Example();
  ASSERT_EQ(timeline.blocks().size(), 4u);
  const BlockSpan& old = timeline.blocks()[0];
  EXPECT_EQ(old.alloc_event, kBeforeWindow);
  EXPECT_EQ(old.free_requested_event, kNever);
  const BlockSpan& pending = timeline.blocks()[1];
  EXPECT_EQ(pending.free_requested_event, kBeforeWindow);
  EXPECT_EQ(pending.free_completed_event, 0);
  EXPECT_FALSE(pending.IsLiveAfter(kBeforeWindow));
  EXPECT_TRUE(pending.IsActiveAfter(kBeforeWindow));
  const BlockSpan& young = timeline.blocks()[2];
  EXPECT_EQ(young.alloc_event, 2);
  EXPECT_EQ(young.free_requested_event, 3);
  EXPECT_EQ(young.free_completed_event, 6);
  EXPECT_EQ(young.segment, 1u);
}

TEST(TimelineTest, StateAtAnEvent) {
  const Timeline timeline = Example();
  const State state = timeline.StateAt(4);
  ASSERT_EQ(state.segments.size(), 2u);
  ASSERT_EQ(state.segments[1].blocks.size(), 2u);
  EXPECT_EQ(state.segments[1].blocks[0].state, BlockState::kPending);
  EXPECT_EQ(state.segments[1].blocks[1].state, BlockState::kLive);
  EXPECT_TRUE(FreeRanges(state.segments[1]).empty());
  const State later = timeline.StateAt(6);
  ASSERT_EQ(FreeRanges(later.segments[1]).size(), 1u);
  EXPECT_EQ(FreeRanges(later.segments[1])[0].address, kB);
  EXPECT_EQ(FreeRanges(later.segments[1])[0].size_bytes, 3 * kMiB);
}

TEST(TimelineTest, EveryStateAddsUpToItsTotals) {
  const Timeline timeline = Example();
  for (EventIndex e = kBeforeWindow; e <= timeline.last_event(); ++e) {
    EXPECT_EQ(SumOf(timeline.StateAt(e)), timeline.TotalsAfter(e)) << "event " << e;
  }
}

TEST(TimelineBuilderTest, TouchingRangesJoinWhereAlike) {
  TimelineBuilder builder(StartState{});
  Feed(builder, Map(kTimelineA, kTimelineSmall));
  Feed(builder, Map(kTimelineA + kTimelineSmall, kTimelineSmall));
  trace::Event other_stream = Map(kTimelineA + 2 * kTimelineSmall, kTimelineSmall);
  other_stream.stream = Stream{4};
  Feed(builder, other_stream);
  Feed(builder, Unmap(kTimelineA, kTimelineSmall));
  const absl::StatusOr<Timeline> timeline = builder.Finish();
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  ASSERT_EQ(timeline->segments().size(), 2u);
  EXPECT_EQ(timeline->segments()[0].extents.size(), 3u);
  EXPECT_EQ(timeline->segments()[0].extents[2].address, kTimelineA + kTimelineSmall);
  EXPECT_TRUE(timeline->Validate().ok()) << timeline->Validate();
}

std::string TimelineRefusal(const trace::Event& event, std::uint64_t block_size_bytes = 0) {
  TimelineBuilder builder(TwoBlocks());
  const absl::Status status = builder.Add(event, block_size_bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(builder.Add(MakeEvent(trace::Action::kSnapshot, 0, 0)), status);  // and stays
  EXPECT_EQ(builder.Finish().status(), status);
  return std::string(status.message());
}

TEST(TimelineBuilderTest, RefusesWhatCannotBe) {
  EXPECT_THAT(TimelineRefusal(Alloc(kTimelineA, 100), 512),
              HasSubstr("event 0 (alloc of 100 B at 0x1000000): expected"));
  EXPECT_THAT(TimelineRefusal(Alloc(kTimelineA + 1024, 100), 512), HasSubstr("found a pending block"));
  EXPECT_THAT(TimelineRefusal(Alloc(kB, 100), 512), HasSubstr("expected a segment"));
  EXPECT_THAT(TimelineRefusal(Alloc(kTimelineA + 2048, 100)), HasSubstr("as big as its request, found 0 B"));
  EXPECT_THAT(TimelineRefusal(FreeRequested(kTimelineA + 512, 1000)), HasSubstr("found a pending one"));
  EXPECT_THAT(TimelineRefusal(FreeRequested(kTimelineA + 2048, 1)), HasSubstr("found none"));
  EXPECT_THAT(TimelineRefusal(FreeCompleted(kTimelineA, 500)), HasSubstr("found a live one"));
  EXPECT_THAT(TimelineRefusal(SegmentFree(kTimelineA, kTimelineSmall)), HasSubstr("to be free, found a live block"));
  EXPECT_THAT(TimelineRefusal(SegmentFree(kB, kTimelineSmall)), HasSubstr("expected a segment that starts there"));
  EXPECT_THAT(TimelineRefusal(SegmentAlloc(kTimelineA + kMiB, kTimelineSmall)), HasSubstr("expected no segment"));
  EXPECT_THAT(TimelineRefusal(Unmap(kTimelineA + kMiB, kMiB)), HasSubstr("inside one mapped range"));
}

TEST(TimelineBuilderTest, RefusesAnOverlappingStart) {
  StartState start = TwoBlocks();
  start.segments[0].blocks[1].address = kTimelineA + 256;
  TimelineBuilder builder(start);
  EXPECT_FALSE(builder.Finish().ok());
}

TEST(TimelineValidateTest, SeesEveryWayOfSpoiling) {
  const std::function<void(TimelineColumns&)> spoilers[] = {
      [](TimelineColumns& c) { c.start_totals.allocated_bytes += 1; },
      [](TimelineColumns& c) { c.totals[4].active_bytes -= 512; },
      [](TimelineColumns& c) { c.totals[8].requested_bytes += 1; },
      [](TimelineColumns& c) { c.totals[1].reserved_bytes += 1; },
      [](TimelineColumns& c) { c.totals.pop_back(); },
      [](TimelineColumns& c) { c.blocks[0].size_bytes += 512; },              // into the pending one
      [](TimelineColumns& c) { c.blocks[0].requested_bytes = 513; },          // more than its size
      [](TimelineColumns& c) { c.blocks[3].size_bytes += 512; },              // out of its segment
      [](TimelineColumns& c) { c.blocks[2].free_requested_event = kNever; },  // completed, never requested
      [](TimelineColumns& c) { c.blocks[2].alloc_event = 1; },                // another event's
      [](TimelineColumns& c) { c.blocks.pop_back(); },
      [](TimelineColumns& c) { c.segments[1].end_event = 7; },  // under a block
      [](TimelineColumns& c) { c.segments[1].extents[0].address = kTimelineA + kMiB; },
      [](TimelineColumns& c) { c.segments[1].extents.push_back(c.segments[1].extents[0]); },
      [](TimelineColumns& c) { c.allocated_peak.event = 5; },
      [](TimelineColumns& c) { c.active_peak.bytes += 1; },
      [](TimelineColumns& c) { c.reserved_peak.event = kBeforeWindow; },
      [](TimelineColumns& c) { c.oom_events.clear(); },
  };
  ASSERT_TRUE(Timeline(Columns(Example())).Validate().ok());
  int i = 0;
  for (const auto& spoil : spoilers) {
    TimelineColumns columns = Columns(Example());
    spoil(columns);
    EXPECT_FALSE(Timeline(columns).Validate().ok()) << "spoiler " << i;
    ++i;
  }
}

}  // namespace
}  // namespace ashlar::timeline
