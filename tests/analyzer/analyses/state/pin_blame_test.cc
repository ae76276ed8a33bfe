#include "analyzer/analyses/state/pin_blame.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analyzer/analyses/state/state_accounting.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/timeline_builder.h"
#include "gtest/gtest.h"
#include "tests/analyzer/timeline/model_allocator.h"
#include "tests/analyzer/timeline/story.h"
#include "tests/corpus_files.h"
#include "tests/shared_dir.h"

namespace ashlar::analyses {
namespace {

using timeline::StateBlock;
using timeline::StateSegment;
using timeline::Timeline;
using trace::BlockState;

constexpr std::uint64_t kBase = 100 * kGiB;

StateBlock Block(std::uint64_t offset, std::uint64_t bytes, trace::StackId stack = 0,
                 BlockState state = BlockState::kLive) {
  return {.address = kBase + offset, .size_bytes = bytes, .requested_bytes = bytes, .state = state, .stack = stack};
}

StateSegment Segment(std::uint64_t offset, std::uint64_t bytes, std::vector<StateBlock> blocks) {
  return {.address = kBase + offset, .size_bytes = bytes, .blocks = std::move(blocks)};
}

Timeline PinBlameOf(std::vector<StateSegment> segments,
                    const std::vector<std::pair<trace::Event, std::uint64_t>>& events = {}) {
  timeline::StartState start;
  start.segments = std::move(segments);
  timeline::TimelineBuilder builder(std::move(start));
  for (const auto& [event, size_bytes] : events) EXPECT_TRUE(builder.Add(event, size_bytes).ok());
  absl::StatusOr<Timeline> timeline = builder.Finish();
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return *std::move(timeline);
}

// Offset of the block -> its blame.
std::map<std::uint64_t, std::uint64_t> BlameByOffset(const PinBlame& blame) {
  std::map<std::uint64_t, std::uint64_t> out;
  for (const Pin& pin : blame.pins) out[pin.address - kBase] = pin.blame_bytes;
  return out;
}

TEST(PinBlameTest, OneBlockHoldsItsWholeSegment) {
  const PinBlame blame =
      BlamePins(PinBlameOf({Segment(0, 20 * kMiB, {Block(6 * kMiB, 2 * kMiB)})}), timeline::kBeforeWindow);
  EXPECT_EQ(blame.stranded_bytes, 18 * kMiB);
  ASSERT_EQ(blame.pins.size(), 1u);
  const Pin& pin = blame.pins[0];
  EXPECT_EQ(pin.blame_bytes, 18 * kMiB);
  EXPECT_EQ(pin.size_bytes, 2 * kMiB);
  EXPECT_EQ(pin.address, kBase + 6 * kMiB);
  EXPECT_EQ(pin.segment_address, kBase);
  EXPECT_EQ(pin.segment_bytes, 20 * kMiB);
  EXPECT_FALSE(pin.is_pending);
  EXPECT_FALSE(pin.age_events.has_value());  // older than the window: its age is not known
  EXPECT_EQ(pin.alloc_event, timeline::kBeforeWindow);
}

TEST(PinBlameTest, TwoBlocksShareTheirHoleInverselyToTheirSizes) {
  // 12 MiB between 2 MiB and 6 MiB: 9 to the small one, 3 to the large one; 4 MiB behind belong to the last alone.
  const PinBlame blame = BlamePins(
      PinBlameOf({Segment(0, 24 * kMiB, {Block(0, 2 * kMiB), Block(14 * kMiB, 6 * kMiB)})}), timeline::kBeforeWindow);
  const std::map<std::uint64_t, std::uint64_t> expected = {{0, 9 * kMiB}, {14 * kMiB, 3 * kMiB + 4 * kMiB}};
  EXPECT_EQ(BlameByOffset(blame), expected);
  EXPECT_EQ(blame.stranded_bytes, 16 * kMiB);
}

TEST(PinBlameTest, TheRestOfADivisionGoesToTheUpperBlock) {
  // 512 bytes between 512 and 1024: 512 * 1024 / 1536 = 341.33 to the lower.
  const PinBlame blame =
      BlamePins(PinBlameOf({Segment(0, 2048, {Block(0, 512), Block(1024, 1024)})}), timeline::kBeforeWindow);
  const std::map<std::uint64_t, std::uint64_t> expected = {{0, 341}, {1024, 171}};
  EXPECT_EQ(BlameByOffset(blame), expected);
}

TEST(PinBlameTest, ABlockBetweenTwoOthersHoldsNoHole) {
  const PinBlame blame = BlamePins(
      PinBlameOf({Segment(0, 10 * kMiB, {Block(4 * kMiB, kMiB), Block(5 * kMiB, kMiB), Block(6 * kMiB, kMiB)})}),
      timeline::kBeforeWindow);
  const std::map<std::uint64_t, std::uint64_t> expected = {{4 * kMiB, 4 * kMiB}, {6 * kMiB, 3 * kMiB}};
  EXPECT_EQ(BlameByOffset(blame), expected);
}

TEST(PinBlameTest, PrivatePoolsAndWholeFreeSegmentsAreNotStranded) {
  StateSegment pooled = Segment(0, 20 * kMiB, {Block(0, kMiB)});
  pooled.pool = PoolId{0, 3};
  const PinBlame blame =
      BlamePins(PinBlameOf({pooled, Segment(kGiB, 20 * kMiB, {}),
                            Segment(2 * kGiB, 20 * kMiB, {Block(2 * kGiB, 5 * kMiB, 1, BlockState::kPending)})}),
                timeline::kBeforeWindow);
  EXPECT_EQ(blame.stranded_bytes, 15 * kMiB);
  ASSERT_EQ(blame.pins.size(), 1u);
  EXPECT_TRUE(blame.pins[0].is_pending);  // a pending block holds its segment as a live one does
}

TEST(PinBlameTest, AgesAndGroups) {
  using timeline::Alloc;
  trace::Event inside = Alloc(kBase + kGiB + 8 * kMiB, 2 * kMiB);
  inside.stack = 4;
  trace::Event other = Alloc(kBase + 2 * kGiB, 2 * kMiB);
  other.stack = 4;
  const Timeline timeline = PinBlameOf(
      {Segment(0, 20 * kMiB, {Block(0, 2 * kMiB, 7)}), Segment(kGiB, 20 * kMiB, {}), Segment(2 * kGiB, 6 * kMiB, {})},
      {{inside, 2 * kMiB}, {other, 2 * kMiB}, {timeline::MakeEvent(trace::Action::kSnapshot, 0, 0), 0}});
  const PinBlame blame = BlamePins(timeline, 2);
  ASSERT_EQ(blame.groups.size(), 2u);
  EXPECT_EQ(blame.groups[0].stack, 4u);
  EXPECT_EQ(blame.groups[0].blame_bytes, 18 * kMiB + 4 * kMiB);
  EXPECT_EQ(blame.groups[0].size_bytes, 4 * kMiB);
  EXPECT_EQ(blame.groups[0].blocks, 2u);
  EXPECT_EQ(blame.groups[0].oldest_event, 0);
  EXPECT_EQ(blame.groups[1].oldest_event, timeline::kBeforeWindow);
  ASSERT_EQ(blame.pins.size(), 3u);
  EXPECT_EQ(blame.pins[0].age_events, std::nullopt);  // 18 MiB each: the lower address first
  EXPECT_EQ(blame.pins[1].age_events, 2u);
  EXPECT_EQ(blame.pins[2].age_events, 1u);
  // Before the second allocation it pinned nothing.
  EXPECT_EQ(BlamePins(timeline, 0).stranded_bytes, 36 * kMiB);
}

// What must hold for every state: sums, and each hole on the blocks that bound it, by a slow count of its own.
void ExpectSound(const Timeline& timeline, timeline::EventIndex moment) {
  const timeline::State state = timeline.StateAt(moment);
  const PinBlame blame = BlamePins(timeline, moment);
  EXPECT_EQ(blame.stranded_bytes, AccountState(state).stranded_bytes);
  std::map<std::uint64_t, Pin> by_address;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < blame.pins.size(); ++i) {
    sum += blame.pins[i].blame_bytes;
    EXPECT_TRUE(by_address.emplace(blame.pins[i].address, blame.pins[i]).second);
    EXPECT_TRUE(i == 0 || blame.pins[i - 1].blame_bytes >= blame.pins[i].blame_bytes);
  }
  EXPECT_EQ(sum, blame.stranded_bytes);
  std::uint64_t of_groups = 0, blocks = 0;
  for (const PinGroup& group : blame.groups) {
    of_groups += group.blame_bytes;
    blocks += group.blocks;
  }
  EXPECT_EQ(of_groups, sum);
  EXPECT_EQ(blocks, blame.pins.size());
  for (const StateSegment& segment : state.segments) {
    std::uint64_t holes = 0, blamed = 0;
    for (const timeline::FreeRange& hole : timeline::FreeRanges(segment)) holes += hole.size_bytes;
    for (const StateBlock& block : segment.blocks) {
      const auto pin = by_address.find(block.address);
      if (pin == by_address.end()) continue;
      blamed += pin->second.blame_bytes;
      EXPECT_EQ(pin->second.segment_address, segment.address);
      EXPECT_EQ(pin->second.size_bytes, block.size_bytes);
      EXPECT_EQ(pin->second.is_pending, block.state == BlockState::kPending);
      std::uint64_t beside = 0;
      for (const timeline::FreeRange& hole : timeline::FreeRanges(segment)) {
        const bool touches = hole.address == block.End() || hole.address + hole.size_bytes == block.address;
        if (touches) beside += hole.size_bytes;
      }
      EXPECT_LE(pin->second.blame_bytes, beside);
    }
    EXPECT_EQ(blamed, !segment.pool.IsDefault() || segment.blocks.empty() ? 0 : holes);
  }
}

void CheckHistories(const timeline::ModelOptions& options) {
  timeline::BlockSizeRule rule = timeline::TorchRule();
  rule.max_split_size_bytes = options.max_split_size_bytes;
  rule.expandable_option = options.expandable_option;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    timeline::ModelAllocator model(seed, options);
    for (int i = 0; i < 100; ++i) model.Act();
    trace::Snapshot snapshot;
    snapshot.segments = model.StateBefore(model.events().size());
    const std::size_t cut = seed * 31 % model.events().size();
    snapshot.device_traces.emplace_back(model.events().begin() + static_cast<std::ptrdiff_t>(cut),
                                        model.events().end());
    const absl::StatusOr<Timeline> timeline = timeline::MakeObservedTimeline(snapshot, 0, rule);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    for (timeline::EventIndex event = timeline::kBeforeWindow; event < timeline->event_count(); event += 3) {
      ExpectSound(*timeline, event);
      ASSERT_FALSE(testing::Test::HasFailure())
          << "ModelAllocator seed " << seed << ", cut " << cut << ", event " << event;
    }
  }
}

TEST(PinBlameTest, RandomHistoriesSumExactly) {
  CheckHistories({});
  CheckHistories({.max_split_size_bytes = 21 * kMiB});
  CheckHistories({.expandable_option = true});
}

TEST(PinBlameTest, TheCorpusSumsExactly) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  std::uint64_t stranded = 0;
  for (const std::string& file : SnapshotFiles()) {
    SCOPED_TRACE(file);
    const absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(*formats::ReadInput(file));
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    const policy::Options options = *replay::RecordedOptions(*snapshot, replay::GuessCompat(*snapshot));
    const absl::StatusOr<Timeline> timeline = timeline::MakeObservedTimeline(*snapshot, 0, replay::SizeRuleOf(options));
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    const timeline::EventIndex step = std::max<timeline::EventIndex>(timeline->event_count() / 8, 1);
    for (timeline::EventIndex at = timeline::kBeforeWindow; at < timeline->event_count(); at += step) {
      ExpectSound(*timeline, at);
    }
    ExpectSound(*timeline, timeline->allocated_peak().event);
    stranded += BlamePins(*timeline, timeline->allocated_peak().event).stranded_bytes;
  }
  EXPECT_GT(stranded, kGiB);
}

}  // namespace
}  // namespace ashlar::analyses
