#include "allocator/trace/trace_tail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "allocator/base/rng.h"

namespace ashlar::trace {
namespace {

Event Made(Action action, std::uint64_t address) {
  Event event;
  event.action = action;
  event.address = address;
  event.size_bytes = 512;
  return event;
}

TEST(TraceTailTest, HoldsTheLastAndSumsAll) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const std::uint64_t most = 1 + rng.Below(40);
    TraceTail tail(most);
    std::vector<Event> all, events;
    std::uint64_t dropped = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      all.push_back(Made(rng.Below(3) == 0 ? Action::kFreeRequested : Action::kAlloc, i));
      events.push_back(all.back());
      const std::size_t count = tail.TooMany(events);
      EXPECT_LE(events.size(), most + most / 4 + 1);
      tail.Drop(count, events);
      dropped += count;
      EXPECT_EQ(tail.dropped(), dropped);
      EXPECT_EQ(events.front().address, dropped);
    }
    tail.Drop(tail.Rest(events), events);
    EXPECT_EQ(events.size(), most);
    EXPECT_EQ(events.front().address, 300 - most);
    Snapshot snapshot;
    tail.Describe(events, 0, snapshot);
    EXPECT_EQ(snapshot.windows.at(0).events_before, 300 - most);
    EXPECT_EQ(snapshot.notes.size(), 1u);
  }
}

TEST(TraceTailTest, CutsBetweenRequests) {
  const std::vector<Event> events = {Made(Action::kAlloc, 0),         Made(Action::kSegmentFree, 1),
                                     Made(Action::kSegmentAlloc, 2),  Made(Action::kAlloc, 2),
                                     Made(Action::kFreeRequested, 0), Made(Action::kFreeCompleted, 0)};
  EXPECT_EQ(TraceTail(1).Rest(events), 4u);
  EXPECT_EQ(TraceTail(2).Rest(events), 4u);
  EXPECT_EQ(TraceTail(3).Rest(events), 1u);
  EXPECT_EQ(TraceTail(5).Rest(events), 1u);
  EXPECT_EQ(TraceTail(6).Rest(events), 0u);
  EXPECT_EQ(TraceTail(0).Rest(events), 0u);
}

// One request that a thousand segments belong to is cut: else such a file would be held whole.
TEST(TraceTailTest, StaysBoundedWhereNothingIsBetweenRequests) {
  const std::vector<Event> events(1000, Made(Action::kSegmentFree, 1));
  EXPECT_EQ(TraceTail(100).Rest(events), 900u);
}

}  // namespace
}  // namespace ashlar::trace
