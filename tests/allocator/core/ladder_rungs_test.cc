// The ladder, its growth and its releases by themselves: which rung serves, what the device is asked, what is booked.
#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/core/ladder.h"
#include "allocator/core/rungs.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/parts.h"

namespace ashlar::core {
namespace {

TEST(LadderRungsTest, TheCacheBeforeTheDevice) {
  Parts parts({.capacity_bytes = 40 * kMiB});
  policy::Block* first = parts.Get(8 * kMiB);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(parts.device.calls().segment_alloc, 1u);
  ASSERT_NE(parts.Get(8 * kMiB), nullptr);
  EXPECT_EQ(parts.device.calls().segment_alloc, 1u) << "the rest of the segment";
  EXPECT_EQ(parts.ledger.Validate(), absl::OkStatus());
}

TEST(LadderRungsTest, WhatIsIdleIsReturnedBeforeARequestFails) {
  Parts parts({.capacity_bytes = 40 * kMiB});
  parts.Drop(parts.Get(8 * kMiB));
  EXPECT_NE(parts.Get(40 * kMiB), nullptr);
  EXPECT_EQ(parts.device.calls().segment_free, 1u);
  EXPECT_EQ(parts.ledger.stats().num_alloc_retries, 1u);
  EXPECT_EQ(parts.ledger.stats().num_sync_all_streams, 1u);
  EXPECT_EQ(parts.Get(2 * kMiB), nullptr);
  EXPECT_EQ(parts.served.refusal, Refusal::kOutOfMemory);
  EXPECT_EQ(parts.ledger.Validate(), absl::OkStatus());
}

TEST(LadderRungsTest, WhatWaitsIsWaitedFor) {
  Parts parts({.capacity_bytes = 20 * kMiB});
  parts.DropAfter(parts.Get(20 * kMiB), Stream{7});
  EXPECT_NE(parts.Get(20 * kMiB), nullptr);
  EXPECT_EQ(parts.device.calls().synchronize, 1u);
  EXPECT_EQ(parts.pending.size(), 0u);
}

TEST(LadderRungsTest, ALimitRefusesBeforeTheDeviceIsAsked) {
  Parts parts;
  parts.limits.SetBytes(30 * kMiB);
  EXPECT_NE(parts.Get(8 * kMiB), nullptr);
  EXPECT_EQ(parts.Get(20 * kMiB), nullptr);
  EXPECT_EQ(parts.device.calls().segment_alloc, 1u);
  EXPECT_EQ(parts.served.refusal, Refusal::kOutOfMemory);
}

TEST(LadderRungsTest, ARejectionClimbsNoFurther) {
  Parts parts({.capacity_bytes = 40 * kMiB}, "throw_on_cudamalloc_oom:True");
  parts.Drop(parts.Get(20 * kMiB));
  EXPECT_EQ(parts.Get(64 * kMiB), nullptr);
  EXPECT_EQ(parts.served.refusal, Refusal::kRejected);
  EXPECT_EQ(parts.device.calls().segment_free, 0u);
}

TEST(LadderRungsTest, WhileAGraphIsCapturedNothingWaitsOrReturns) {
  Parts parts({.capacity_bytes = 20 * kMiB});
  parts.Drop(parts.Get(8 * kMiB));
  ASSERT_EQ(parts.pools.Begin({0, 9}, [](Stream) { return false; }, RouteKind::kCapture), absl::OkStatus());
  EXPECT_EQ(parts.Get(12 * kMiB, Stream{5}), nullptr);
  EXPECT_EQ(parts.device.calls().segment_free, 0u);
  EXPECT_EQ(parts.device.calls().synchronize, 0u);
  StreamFilter ended;
  ASSERT_EQ(parts.pools.End({0, 9}, ended), absl::OkStatus());
  EXPECT_NE(parts.Get(12 * kMiB, Stream{5}), nullptr);
}

TEST(LadderRungsTest, AnotherPoolServesBeforeAnythingIsReturned) {
  Parts parts({.capacity_bytes = 20 * kMiB});
  const PoolId pool = parts.pools.Create();
  parts.pools.Configure(pool, /*use_on_oom=*/true, /*no_split=*/false);
  parts.Drop(parts.Get(8 * kMiB, Stream{0}, pool));
  policy::Block* block = parts.Get(8 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->segment->lane->pool->id, pool);
  EXPECT_EQ(parts.ledger.stats().num_alloc_retries, 0u);
}

// Where the device fails otherwise than by being full, that is the answer.
TEST(LadderRungsTest, TheDevicesOwnErrorIsTheAnswer) {
  Parts parts;
  parts.device.FailCall(0, absl::InternalError("broken"));
  EXPECT_EQ(parts.Get(2 * kMiB), nullptr);
  EXPECT_EQ(parts.served.refusal, Refusal::kDeviceError);
  EXPECT_EQ(parts.served.error.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(parts.ledger.heap().reserved_bytes(), 0u);
  EXPECT_NE(parts.Get(2 * kMiB), nullptr) << "the next request is asked for again";
}

TEST(LadderRungsTest, PagesGrowARangeUnderOneReservation) {
  Parts parts({.capacity_bytes = kGiB}, "expandable_segments:True");
  policy::Block* first = parts.Get(20 * kMiB);
  ASSERT_NE(first, nullptr);
  policy::Block* second = parts.Get(20 * kMiB);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->address, first->End());
  EXPECT_EQ(parts.device.calls().reserve, 1u);
  parts.Drop(first);
  parts.Drop(second);
  EXPECT_EQ(parts.ladder.EmptyCache(), absl::OkStatus());
  EXPECT_TRUE(parts.ledger.heap().segments().empty());
  EXPECT_EQ(parts.device.used_bytes(), 0u);
}

TEST(LadderRungsTest, APoolWithUsersKeepsWhatIsFree) {
  Parts parts;
  const PoolId pool = parts.pools.Create();
  parts.Drop(parts.Get(8 * kMiB, Stream{0}, pool));
  EXPECT_EQ(parts.ladder.EmptyCache(), absl::OkStatus());
  EXPECT_EQ(parts.ledger.heap().segments().size(), 1u);
  parts.pools.Release(pool);
  EXPECT_EQ(parts.pools.CheckUnused(pool), absl::OkStatus());
  EXPECT_EQ(parts.ladder.EmptyPool(pool), absl::OkStatus());
  EXPECT_TRUE(parts.ledger.heap().segments().empty());
  EXPECT_EQ(parts.ledger.heap().FindPair(pool), nullptr) << "nothing is left of it";
}

// Work that is counted: a program with many streams would else go through all of them at each failure.
TEST(LadderRungsTest, WhoIsOutOfMemoryAgainSearchesNoStreamAgain) {
  for (const char* conf : {"", "expandable_segments:True", "policy:ashlar"}) {
    Parts parts({.capacity_bytes = 40 * kMiB}, conf);
    std::vector<policy::Block*> held;
    std::uint64_t stream = 0;
    while (policy::Block* block = parts.Get(1000, Stream{++stream})) held.push_back(block);
    EXPECT_EQ(held.size(), 20u) << conf;
    EXPECT_EQ(parts.Get(1000, Stream{++stream}), nullptr);
    const std::uint64_t searches = parts.ladder.searches();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(parts.Get(1000, Stream{++stream}), nullptr);
    EXPECT_EQ(parts.ladder.searches(), searches) << conf;
    parts.Drop(held[7]);
    EXPECT_NE(parts.Get(1000, Stream{++stream}), nullptr) << conf << ": what was freed is found";
    EXPECT_EQ(parts.ledger.Validate(), absl::OkStatus());
  }
}

TEST(DeviceErrorsTest, TheFirstIsKeptUntilItIsTaken) {
  DeviceErrors errors;
  EXPECT_EQ(errors.Take(), absl::OkStatus());
  errors.Note(absl::OkStatus());
  errors.Note(absl::InternalError("first"));
  errors.Note(absl::InternalError("second"));
  EXPECT_EQ(errors.Take(), absl::InternalError("first"));
  EXPECT_EQ(errors.Take(), absl::OkStatus());
}

// Three pages are free between live blocks, one is at the device: they move, and nothing else waits or is returned.
TEST(LadderRungsTest, PagesMoveToWhereTheRequestNeedsThem) {
  Parts parts({.capacity_bytes = 20 * kMiB}, "policy:ashlar");
  policy::Block* low = parts.Get(6 * kMiB);
  policy::Block* hole = parts.Get(6 * kMiB);
  policy::Block* high = parts.Get(6 * kMiB);
  ASSERT_NE(high, nullptr);
  parts.Drop(hole);
  policy::Block* large = parts.Get(8 * kMiB);
  ASSERT_NE(large, nullptr) << "6 MiB are free in one piece, 2 MiB at the device";
  EXPECT_GE(large->address, high->End());
  EXPECT_EQ(parts.ledger.stats().num_sync_all_streams, 0u);
  EXPECT_EQ(parts.device.calls().unmap_pages, 3u);
  EXPECT_EQ(parts.ledger.heap().reserved_bytes(), 20 * kMiB);
  EXPECT_EQ(parts.ledger.Validate(), absl::OkStatus());
  parts.Drop(low);
  parts.Drop(high);
  parts.Drop(large);
}

TEST(LadderRungsTest, PagesOfAnotherStreamMoveOnceItsWorkIsDone) {
  Parts parts({.capacity_bytes = 20 * kMiB}, "policy:ashlar");
  policy::Block* theirs = parts.Get(12 * kMiB, Stream{7});
  parts.Drop(theirs);
  const std::uint64_t before = parts.device.calls().synchronize;
  EXPECT_NE(parts.Get(18 * kMiB), nullptr);
  EXPECT_EQ(parts.device.calls().synchronize, before + 1);
}

TEST(LadderRungsTest, PagesOfAPoolThatIsUsedStay) {
  Parts parts({.capacity_bytes = 20 * kMiB}, "policy:ashlar");
  const PoolId pool = parts.pools.Create();
  parts.Drop(parts.Get(12 * kMiB, Stream{0}, pool));
  EXPECT_EQ(parts.Get(12 * kMiB), nullptr);
  EXPECT_EQ(parts.device.calls().unmap_pages, 0u);
}

// PyTorch's policy passes over expandable blocks there.
TEST(LadderRungsTest, PagesOfAnOverflowPoolServeOthers) {
  for (const char* conf : {"policy:ashlar", "expandable_segments:True"}) {
    Parts parts({.capacity_bytes = 20 * kMiB}, conf);
    const PoolId pool = parts.pools.Create();
    parts.pools.Configure(pool, /*use_on_oom=*/true, /*no_split=*/false);
    parts.Drop(parts.Get(12 * kMiB, Stream{0}, pool));
    const policy::Block* block = parts.Get(12 * kMiB);
    EXPECT_EQ(block != nullptr, conf == std::string("policy:ashlar"));
    EXPECT_EQ(parts.device.calls().unmap_pages, 0u);
  }
}

TEST(LadderRungsTest, NoPageMovesWhileAGraphIsCaptured) {
  Parts parts({.capacity_bytes = 20 * kMiB}, "policy:ashlar");
  parts.Drop(parts.Get(12 * kMiB));
  ASSERT_EQ(parts.pools.Begin({0, 9}, [](Stream) { return false; }, RouteKind::kCapture), absl::OkStatus());
  EXPECT_EQ(parts.Get(12 * kMiB, Stream{5}), nullptr);
  EXPECT_EQ(parts.device.calls().unmap_pages, 0u);
  StreamFilter ended;
  ASSERT_EQ(parts.pools.End({0, 9}, ended), absl::OkStatus());
  EXPECT_NE(parts.Get(12 * kMiB, Stream{5}), nullptr);
}

// Another program has taken what this one thinks is there.
TEST(LadderRungsTest, WhatIsRefusedInLargePagesIsAskedForInSmallOnes) {
  Parts parts({.capacity_bytes = 80 * kGiB}, "policy:ashlar");
  parts.device.FailCall(1, absl::ResourceExhaustedError("injected"));  // after the reservation
  EXPECT_NE(parts.Get(40 * kMiB), nullptr);
  EXPECT_EQ(parts.device.calls().map_pages, 20u);
  EXPECT_EQ(parts.device.calls().unmap_pages, 0u);
}

}  // namespace
}  // namespace ashlar::core
