// When work is done, by each lag model.
#include "hollow/model/streams.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/hollow/property.h"

namespace ashlar::hollow {
namespace {

using test::Operation;
using test::Operations;

constexpr std::uint64_t kNoHost = 0;

// Work on a stream that is not captured.
void Give(Streams& streams, StreamModel& stream) {
  bool runs_now = false;
  EXPECT_EQ(streams.Submit(stream, NodeKind::kKernel, {}, &runs_now), Error::kNone);
  EXPECT_TRUE(runs_now);
}

struct TwoStreams {
  explicit TwoStreams(const LagModel& lag) : streams(lag, 1) {}
  Streams streams;
  StreamModel& first = *streams.Create(0, 0, 0);
  StreamModel& second = *streams.Create(0, 0, 0);
  EventModel& event = *streams.CreateEvent(0, 0);
};

TEST(StreamsTest, WithoutLagAllIsDoneAtOnce) {
  TwoStreams on({});
  Give(on.streams, on.first);
  ASSERT_EQ(on.streams.Record(on.event, on.first), Error::kNone);
  EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNone);
  EXPECT_EQ(on.streams.Query(on.first, kNoHost), Error::kNone);
}

// What a device that lags might have answered otherwise.
TEST(StreamsTest, WithoutLagAnswersThatNothingWaitedForAreCounted) {
  Streams streams({}, 1);
  StreamModel& stream = *streams.Create(0, 0, 0);
  EventModel& event = *streams.CreateEvent(0, 0);
  EXPECT_EQ(streams.Query(event, 0), Error::kNone) << "never recorded";
  EXPECT_EQ(streams.found_done(), 0u);
  EXPECT_EQ(streams.Record(event, stream), Error::kNone);
  EXPECT_EQ(streams.Query(event, 0), Error::kNone);
  EXPECT_EQ(streams.found_done(), 1u);
  EXPECT_EQ(streams.Synchronize(stream), Error::kNone);
  EXPECT_EQ(streams.Query(event, 0), Error::kNone);
  EXPECT_EQ(streams.found_done(), 1u);
}

TEST(StreamsTest, AnEventIsDoneAtItsNthQuery) {
  TwoStreams on({.queries = 3});
  EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNone) << "never recorded";
  for (int round = 0; round < 2; ++round) {
    Give(on.streams, on.first);
    ASSERT_EQ(on.streams.Record(on.event, on.first), Error::kNone);
    EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNotReady);
    EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNotReady);
    EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNone);
    EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNone);
  }
}

// As in the recorded runs: that a stream was synchronised says nothing of an event, the event's own wait and the
// device's do.
TEST(StreamsTest, WithQueriesOnlyTheEventsOwnWaitCounts) {
  TwoStreams on({.queries = 3});
  ASSERT_EQ(on.streams.Record(on.event, on.first), Error::kNone);
  ASSERT_EQ(on.streams.Synchronize(on.first), Error::kNone);
  EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNotReady);
  ASSERT_EQ(on.streams.Synchronize(on.event), Error::kNone);
  EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNone);
  ASSERT_EQ(on.streams.Record(on.event, on.first), Error::kNone);
  on.streams.SynchronizeDevice(0);
  EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNone);
}

TEST(StreamsTest, AStreamIsDoneAtTheNthQueryAfterItsLastWork) {
  TwoStreams on({.queries = 2});
  EXPECT_EQ(on.streams.Query(on.first, kNoHost), Error::kNone) << "it was given nothing";
  Give(on.streams, on.first);
  EXPECT_EQ(on.streams.Query(on.first, kNoHost), Error::kNotReady);
  Give(on.streams, on.first);
  EXPECT_EQ(on.streams.Query(on.first, kNoHost), Error::kNotReady) << "counted anew";
  EXPECT_EQ(on.streams.Query(on.first, kNoHost), Error::kNone);
  Give(on.streams, on.first);
  ASSERT_EQ(on.streams.Synchronize(on.first), Error::kNone);
  EXPECT_EQ(on.streams.Query(on.first, kNoHost), Error::kNone);
}

TEST(StreamsTest, BySimulatedTimeWorkTakesAsLongAsItSays) {
  TwoStreams on({.work_ns = 5'000});
  Give(on.streams, on.first);  // begins at 1 us, since each call takes one, and ends at 6
  ASSERT_EQ(on.streams.Record(on.event, on.first), Error::kNone);  // at 2
  for (int i = 3; i < 6; ++i) EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNotReady) << i;
  EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNone);
  EXPECT_EQ(on.streams.now_ns(), 6'000U);
}

TEST(StreamsTest, AWaitMakesTheOtherStreamsWorkLater) {
  TwoStreams on({.work_ns = 10'000});
  EventModel& end = *on.streams.CreateEvent(0, 0);
  Give(on.streams, on.first);  // 1 to 11 us
  ASSERT_EQ(on.streams.Record(on.event, on.first), Error::kNone);
  ASSERT_EQ(on.streams.Wait(on.second, on.event), Error::kNone);
  Give(on.streams, on.second);  // 11 to 21
  ASSERT_EQ(on.streams.Record(end, on.second), Error::kNone);
  float ms = 0;
  ASSERT_EQ(on.streams.ElapsedMs(on.event, end, &ms), Error::kNone);
  EXPECT_FLOAT_EQ(ms, 0.010F);
  ASSERT_EQ(on.streams.Synchronize(end), Error::kNone);
  EXPECT_EQ(on.streams.now_ns(), 21'000U);
  EXPECT_EQ(on.streams.Query(on.first, kNoHost), Error::kNone) << "what was waited for is done as well";
}

TEST(StreamsTest, WaitingForADeviceOrItsBlockingStreamsFinishesThem) {
  Streams streams({.work_ns = 50'000}, 2);
  StreamModel& blocking = *streams.Create(0, 0, 0);
  StreamModel& free = *streams.Create(0, 1, 0);
  StreamModel& elsewhere = *streams.Create(1, 0, 0);
  for (StreamModel* stream : {&blocking, &free, &free, &elsewhere}) Give(streams, *stream);
  streams.SynchronizeBlocking(0);
  EXPECT_EQ(streams.Query(blocking, kNoHost), Error::kNone);
  EXPECT_EQ(streams.Query(free, kNoHost), Error::kNotReady);
  Give(streams, free);
  streams.SynchronizeDevice(0);
  EXPECT_EQ(streams.Query(free, kNoHost), Error::kNone);
}

TEST(StreamsTest, HostFunctionsAreWaitedFor) {
  TwoStreams on({});
  on.first.host_ticket = 4;
  ASSERT_EQ(on.streams.Record(on.event, on.first), Error::kNone);
  EXPECT_EQ(on.streams.Query(on.event, 3), Error::kNotReady);
  EXPECT_EQ(on.streams.Query(on.first, 3), Error::kNotReady);
  ASSERT_EQ(on.streams.Wait(on.second, on.event), Error::kNone);
  EXPECT_EQ(on.streams.Query(on.second, 3), Error::kNotReady);
  EXPECT_EQ(on.streams.Query(on.event, 4), Error::kNone);
  EXPECT_EQ(on.streams.Query(on.second, 4), Error::kNone);
  EXPECT_EQ(on.streams.LastHostTicket(0), 4U);
}

TEST(StreamsTest, TimeIsMeasuredBetweenEventsThatKeepIt) {
  TwoStreams on({});
  EventModel& untimed = *on.streams.CreateEvent(0, 2);
  float ms = -1;
  EXPECT_EQ(on.streams.ElapsedMs(on.event, on.event, &ms), Error::kInvalidHandle) << "not recorded";
  ASSERT_EQ(on.streams.Record(on.event, on.first), Error::kNone);
  ASSERT_EQ(on.streams.Record(untimed, on.first), Error::kNone);
  EXPECT_EQ(on.streams.ElapsedMs(on.event, untimed, &ms), Error::kInvalidHandle);
  EXPECT_EQ(ms, -1);
  EXPECT_EQ(on.streams.ElapsedMs(on.event, on.event, &ms), Error::kNone);
  EXPECT_EQ(ms, 0);
}

TEST(StreamsTest, HandlesAreKnownWhileTheyAreThere) {
  TwoStreams on({.work_ns = 1'000'000});
  StreamModel& gone = *on.streams.Create(0, 0, 0);
  Give(on.streams, gone);
  ASSERT_EQ(on.streams.Record(on.event, gone), Error::kNone);
  EXPECT_EQ(on.streams.FindStream(&gone), &gone);
  ASSERT_EQ(on.streams.Destroy(gone), Error::kNone);
  EXPECT_EQ(on.streams.FindStream(&gone), nullptr);
  EXPECT_EQ(on.streams.Query(on.event, kNoHost), Error::kNone) << "its stream is gone: nothing is left to wait for";
  EXPECT_EQ(on.streams.FindEvent(&on.event), &on.event);
  on.streams.Destroy(on.event);
  EXPECT_EQ(on.streams.FindEvent(&on.event), nullptr);
}

// By time: an event is done at the latest end of what comes before it, reckoned for each piece of work alone.
std::string LagDifference(const Operations& program) {
  Streams streams({.work_ns = 7'000}, 1);
  std::vector<StreamModel*> all;
  std::vector<std::uint64_t> busy(4, 0);
  std::vector<EventModel*> events;
  std::vector<std::uint64_t> done_at(4, 0);
  for (int i = 0; i < 4; ++i) {
    all.push_back(streams.Create(0, 1, 0));
    events.push_back(streams.CreateEvent(0, 0));
  }
  std::uint64_t now = 0;
  std::vector<bool> recorded(4, false);
  for (const Operation& one : program) {
    StreamModel& stream = *all[one.a];
    if (one.kind == 0) {
      now += 1000;
      busy[one.a] = std::max(busy[one.a], now) + 7000;
      streams.Count(stream);
    } else if (one.kind == 1) {
      now += 1000;
      done_at[one.b] = std::max(busy[one.a], now);
      recorded[one.b] = true;
      if (streams.Record(*events[one.b], stream) != Error::kNone) return "not recorded";
    } else if (one.kind == 2) {
      if (recorded[one.b]) busy[one.a] = std::max(busy[one.a], done_at[one.b]);
      if (streams.Wait(stream, *events[one.b]) != Error::kNone) return "not waited";
    } else {
      if (recorded[one.b]) now += 1000;
      const bool is_done = !recorded[one.b] || done_at[one.b] <= now;
      if ((streams.Query(*events[one.b], kNoHost) == Error::kNone) != is_done)
        return "an event is done at another time";
    }
  }
  return "";
}

TEST(StreamsTest, AnEventIsDoneWhenAllBeforeItIs) {
  test::CheckPrograms("StreamsTest", "LagDifference", LagDifference,
                      {.kinds = 4, .operations = 120, .below_a = 4, .below_b = 4, .seeds = 300});
}

}  // namespace
}  // namespace ashlar::hollow
