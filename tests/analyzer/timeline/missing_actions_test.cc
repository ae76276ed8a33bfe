// Histories that leave whole kinds of events out, as _record_memory_history(skip_actions=...) makes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "analyzer/timeline/observed.h"

namespace ashlar::timeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::Action;
using trace::BlockState;

constexpr std::uint64_t kMissingFirst = 4096, kMissingSecond = 8192;

trace::Event Made(Action action, std::uint64_t address, std::uint64_t size_bytes) {
  trace::Event out;
  out.action = action;
  out.address = address;
  out.size_bytes = size_bytes;
  return out;
}

// A segment of two blocks: the first was made, freed and made again, the second made and freed.
trace::Snapshot WholeHistory() {
  trace::Snapshot out;
  trace::SnapshotSegment& segment = out.segments.emplace_back();
  segment.address = kMissingFirst;
  segment.size_bytes = 8192;
  segment.blocks = {{kMissingFirst, 4096, 4096, BlockState::kLive}, {kMissingSecond, 4096, {}, BlockState::kFree}};
  out.device_traces = {{Made(Action::kSegmentAlloc, kMissingFirst, 8192), Made(Action::kAlloc, kMissingFirst, 4096),
                        Made(Action::kAlloc, kMissingSecond, 4096), Made(Action::kFreeRequested, kMissingFirst, 4096),
                        Made(Action::kFreeCompleted, kMissingFirst, 4096), Made(Action::kAlloc, kMissingFirst, 4096),
                        Made(Action::kFreeRequested, kMissingSecond, 4096),
                        Made(Action::kFreeCompleted, kMissingSecond, 4096)}};
  return out;
}

trace::Snapshot WithoutActions(const std::vector<Action>& skipped) {
  trace::Snapshot out = WholeHistory();
  std::erase_if(out.device_traces[0].Mutable(), [&](const trace::Event& event) {
    return std::find(skipped.begin(), skipped.end(), event.action) != skipped.end();
  });
  return out;
}

TEST(MissingActionsTest, AWholeHistoryLacksNothing) {
  EXPECT_THAT(MissingActions({WholeHistory(), 0}), IsEmpty());
  EXPECT_THAT(MissingActions({WholeHistory(), 1}), IsEmpty());  // no such device
}

TEST(MissingActionsTest, WhatOtherEventsProveIsNamed) {
  EXPECT_THAT(MissingActions({WithoutActions({Action::kFreeRequested}), 0}), ElementsAre("free_requested"));
  EXPECT_THAT(MissingActions({WithoutActions({Action::kFreeCompleted}), 0}), ElementsAre("free_completed"));
  EXPECT_THAT(MissingActions({WithoutActions({Action::kFreeRequested, Action::kFreeCompleted}), 0}),
              ElementsAre("free_requested", "free_completed"));
  EXPECT_THAT(MissingActions({WithoutActions({Action::kAlloc}), 0}), ElementsAre("alloc"));
}

TEST(MissingActionsTest, ASegmentObtainedTwiceWasGivenBackBetween) {
  trace::Snapshot snapshot = WholeHistory();
  const trace::Event obtained = snapshot.device_traces[0][0];
  snapshot.device_traces[0].Mutable().insert(snapshot.device_traces[0].Mutable().begin(), obtained);
  EXPECT_THAT(MissingActions({snapshot, 0}), ElementsAre("segment_free"));
}

// Kinds that did not happen are no gap: a run that frees nothing, and one whose segments are older than its window.
TEST(MissingActionsTest, WhatDidNotHappenIsNotMissed) {
  trace::Snapshot snapshot = WholeHistory();
  snapshot.device_traces[0].Mutable().resize(3);
  snapshot.segments[0].blocks[1].state = BlockState::kLive;
  EXPECT_THAT(MissingActions({snapshot, 0}), IsEmpty());
  snapshot.device_traces[0].Mutable().erase(snapshot.device_traces[0].Mutable().begin());
  EXPECT_THAT(MissingActions({snapshot, 0}), IsEmpty());
}

// A history that has every kind and does not lead to its state is damaged, not thinned out: it stays an error.
TEST(MissingActionsTest, AContradictionIsNoGap) {
  trace::Snapshot snapshot = WholeHistory();
  snapshot.segments[0].blocks[0].state = BlockState::kFree;
  EXPECT_THAT(MissingActions({snapshot, 0}), IsEmpty());
}

}  // namespace
}  // namespace ashlar::timeline
