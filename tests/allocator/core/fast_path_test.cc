// The fast path by itself, over a ledger that the test fills.
#include "allocator/core/fast_path.h"

#include <cstdint>
#include <thread>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/core/thread_caches.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

constexpr Stream kStream{3};

class FastPathTest : public testing::Test {
 protected:
  policy::Block* TryGet(std::uint64_t bytes) {
    return fast_path_.TryAllocate<HandOutAs::kPointer>(bytes, kStream, PoolId{});
  }
  // As the ladder would: a new segment.
  policy::Block* Grow(std::uint64_t bytes, HandOutAs as = HandOutAs::kPointer) {
    const ExclusiveSection section(fast_path_.caches());
    const policy::Decision decision = ledger_.heap().Decide({bytes, kStream, {}});
    policy::Block* block = ledger_.Place(decision, ledger_.AddSegment(decision, next_address_));
    next_address_ += decision.segment_bytes;
    fast_path_.Enter(block, kStream, as);
    ledger_.HandOut(*block, decision);
    return block;
  }
  Stats StatsNow() {
    const ExclusiveSection section(fast_path_.caches());
    EXPECT_EQ(ledger_.Validate(), absl::OkStatus());
    return ledger_.stats();
  }

  Ledger ledger_{policy::Options{},
                 [this](policy::Lane& lane, const policy::AddressRange& range) { fast_path_.Forget(lane, range); }};
  FastPath fast_path_{ledger_};
  std::uint64_t next_address_ = 0x7f0000000000;
};

TEST_F(FastPathTest, AnEmptyCacheServesNothing) {
  EXPECT_EQ(TryGet(2 * kMiB), nullptr);
  EXPECT_FALSE(fast_path_.TryFreeAddress(0x1000));
  EXPECT_EQ(fast_path_.arena_count(), 0u);
}

// A peak may not be passed here; below it everything is served, and the sums arrive with the next section.
TEST_F(FastPathTest, ServesBelowThePeaks) {
  policy::Block* block = Grow(2 * kMiB);
  EXPECT_EQ(TryGet(2 * kMiB), nullptr) << "a second block would be a new peak";
  const std::uint64_t address = block->address;
  ASSERT_TRUE(fast_path_.TryFree(block));
  policy::Block* again = TryGet(2 * kMiB);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->address, address);
  const Stats stats = StatsNow();
  EXPECT_EQ(stats.allocation.all().current, 1);
  EXPECT_EQ(stats.allocation.all().allocated, 2);
  EXPECT_EQ(stats.allocation.all().peak, 1);
  EXPECT_EQ(stats.allocated_bytes.all().current, Signed(2 * kMiB));
}

TEST_F(FastPathTest, BlocksByAddress) {
  policy::Block* block = Grow(2 * kMiB, HandOutAs::kAddress);
  const std::uint64_t address = block->address;
  EXPECT_FALSE(fast_path_.TryFreeAddress(address + 512));
  EXPECT_TRUE(fast_path_.TryFreeAddress(address));
  EXPECT_FALSE(fast_path_.TryFreeAddress(address)) << "it is free";
  policy::Block* again = fast_path_.TryAllocate<HandOutAs::kAddress>(2 * kMiB, kStream, PoolId{});
  ASSERT_NE(again, nullptr);
  const ExclusiveSection section(fast_path_.caches());
  EXPECT_EQ(fast_path_.TakeByAddress(address), again);
  EXPECT_EQ(fast_path_.TakeByAddress(address), nullptr);
}

TEST_F(FastPathTest, ABlockThatOtherStreamsUseWaits) {
  policy::Block* block = Grow(2 * kMiB);
  ASSERT_TRUE(fast_path_.TryRecordStream(block, Stream{9}));
  ASSERT_TRUE(fast_path_.TryRecordStream(block, Stream{9}));
  EXPECT_FALSE(fast_path_.TryFree(block)) << "it needs events";
  const ExclusiveSection section(fast_path_.caches());
  fast_path_.RecordStream(block, Stream{10});
  EXPECT_EQ(fast_path_.Leave(block), (StreamList{Stream{9}, Stream{10}}));
  EXPECT_TRUE(fast_path_.Leave(block).empty());
}

TEST_F(FastPathTest, WhileSerialNothingIsServed) {
  policy::Block* block = Grow(2 * kMiB);
  {
    const ExclusiveSection section(fast_path_.caches());
    section.SetSerial(true);
  }
  EXPECT_FALSE(fast_path_.TryFree(block));
  EXPECT_EQ(TryGet(2 * kMiB), nullptr);
  {
    const ExclusiveSection section(fast_path_.caches());
    section.SetSerial(false);
  }
  EXPECT_TRUE(fast_path_.TryFree(block));
}

TEST_F(FastPathTest, AnArenaGoesWithItsLastLane) {
  policy::Block* block = Grow(2 * kMiB, HandOutAs::kAddress);
  EXPECT_EQ(fast_path_.arena_count(), 1u);
  ASSERT_TRUE(fast_path_.TryFreeAddress(block->address));
  {
    const ExclusiveSection section(fast_path_.caches());
    ledger_.RemoveSegment(ledger_.heap().segments().begin()->second->first);
  }
  EXPECT_EQ(fast_path_.arena_count(), 0u);
  EXPECT_EQ(TryGet(2 * kMiB), nullptr);
}

// Another thread is served, wherever the arena lies.
TEST_F(FastPathTest, AnotherThreadIsServedToo) {
  policy::Block* block = Grow(2 * kMiB);
  ASSERT_TRUE(fast_path_.TryFree(block));
  std::thread([&] {
    for (int i = 0; i < 100; ++i) {
      policy::Block* mine = TryGet(2 * kMiB);
      if (mine == nullptr) mine = Grow(2 * kMiB);
      ASSERT_TRUE(fast_path_.TryFree(mine));
    }
  }).join();
  const Stats stats = StatsNow();
  EXPECT_EQ(stats.allocation.all().current, 0);
  EXPECT_EQ(stats.allocation.all().allocated, 101);
}

using FastPathDeathTest = FastPathTest;

TEST_F(FastPathDeathTest, BlocksThatAreNotLiveOrNotOursEndTheProgram) {
  policy::Block* block = Grow(2 * kMiB);
  FastPath other(ledger_);
  EXPECT_DEATH(other.Check(block, "Free"), "Free: block 0x.* is another allocator's");
  ASSERT_TRUE(fast_path_.TryFree(block));
  EXPECT_DEATH(fast_path_.Check(block, "Free"), "Free: block 0x.* is not live");
}

}  // namespace
}  // namespace ashlar::core
