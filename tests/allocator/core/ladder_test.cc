// The rungs beyond PyTorch's ladder: a program that fails, or waits for all, without one of them, and does not with it.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/stream_order.h"

namespace ashlar::core {
namespace {

device::SimDeviceOptions Capacity(std::uint64_t bytes) {
  device::SimDeviceOptions options;
  options.capacity_bytes = bytes;
  return options;
}

policy::Options Conf(const std::string& conf) {
  return *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar);
}

// A device of one segment: a block that waits for stream 7, and a live one that keeps the segment.
struct OneSegment {
  explicit OneSegment(const std::string& conf) : allocator(&device, Conf(conf)) {
    Block* waiting = *allocator.Allocate(8 * kMiB, Stream{0});
    EXPECT_TRUE(allocator.Allocate(9 * kMiB, Stream{0}).ok());
    allocator.RecordStream(waiting, Stream{7});
    allocator.Free(waiting);
  }
  device::SimDevice device{Capacity(20 * kMiB)};
  CachingAllocator allocator;
};

TEST(LadderTest, SearchAfterSync) {
  OneSegment without("");
  EXPECT_FALSE(without.allocator.Allocate(8 * kMiB, Stream{0}).ok());
  EXPECT_TRUE(without.allocator.Allocate(8 * kMiB, Stream{0}).ok()) << "the same request, once more";

  OneSegment with("search_after_sync:True");
  EXPECT_TRUE(with.allocator.Allocate(8 * kMiB, Stream{0}).ok());
  EXPECT_EQ(with.allocator.stats().num_ooms, 0u);
  EXPECT_EQ(with.allocator.stats().num_alloc_retries, 0u) << "nothing was returned for it";
  EXPECT_EQ(with.allocator.Validate(), absl::OkStatus());
}

// Four blocks in two segments, each used by a stream of its own; the one that was freed last has another size.
struct FourWaiting {
  explicit FourWaiting(const std::string& conf) : allocator(&device, Conf(conf)) {
    std::vector<Block*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(*allocator.Allocate((i == 3 ? 9 : 8) * kMiB, Stream{0}));
    for (std::uint64_t i = 0; i < 4; ++i) {
      allocator.RecordStream(blocks[i], Stream{7 + i});
      if (i != 2) allocator.Free(blocks[i]);
    }
    kept = blocks[2];
  }
  device::SimDevice device{Capacity(40 * kMiB)};
  CachingAllocator allocator;
  Block* kept = nullptr;
};

TEST(LadderTest, SyncJustEnough) {
  FourWaiting all("search_after_sync:True");
  EXPECT_TRUE(all.allocator.Allocate(9 * kMiB, Stream{0}).ok());
  EXPECT_EQ(all.device.calls().synchronize, 3u);
  EXPECT_EQ(all.allocator.pending_event_count(), 0u);

  FourWaiting few("sync_just_enough:True");
  EXPECT_TRUE(few.allocator.Allocate(9 * kMiB, Stream{0}).ok());
  EXPECT_EQ(few.device.calls().synchronize, 1u) << "the one block that is large enough";
  EXPECT_EQ(few.allocator.pending_event_count(), 2u);
  EXPECT_EQ(few.allocator.stats().num_ooms, 0u);
  EXPECT_EQ(few.allocator.Validate(), absl::OkStatus());
}

TEST(LadderTest, SyncJustEnoughReturnsNoMoreThanIsNeeded) {
  for (const bool is_few : {false, true}) {
    device::SimDevice device{Capacity(60 * kMiB)};
    CachingAllocator allocator(&device, Conf(is_few ? "sync_just_enough:True" : ""));
    for (std::uint64_t i = 0; i < 3; ++i) {  // whole segments of another stream
      Block* block = *allocator.Allocate(20 * kMiB, Stream{5});
      allocator.RecordStream(block, Stream{7 + i});
      allocator.Free(block);
    }
    EXPECT_TRUE(allocator.Allocate(20 * kMiB, Stream{0}).ok());
    EXPECT_EQ(device.calls().synchronize, is_few ? 1u : 3u);
    EXPECT_EQ(device.calls().segment_free, is_few ? 1u : 3u);
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  }
}

TEST(LadderTest, SyncJustEnoughSaysOutOfMemoryOnlyAtTheEnd) {
  FourWaiting few("sync_just_enough:True");
  EXPECT_TRUE(absl::IsResourceExhausted(few.allocator.Allocate(40 * kMiB, Stream{0}).status()));
  EXPECT_EQ(few.allocator.pending_event_count(), 0u);
  few.allocator.Free(few.kept);
  EXPECT_TRUE(few.allocator.Allocate(40 * kMiB, Stream{0}).ok());
}

TEST(LadderTest, Borrow) {
  for (const bool may_borrow : {false, true}) {
    device::SimDevice device{Capacity(20 * kMiB)};
    CachingAllocator allocator(&device, Conf(may_borrow ? "borrow_across_streams:True" : ""));
    ASSERT_TRUE(allocator.Allocate(8 * kMiB, Stream{5}).ok());  // keeps its stream's segment
    const absl::StatusOr<Block*> block = allocator.Allocate(9 * kMiB, Stream{0});
    EXPECT_EQ(block.ok(), may_borrow) << block.status();
    EXPECT_EQ(device.calls().stream_wait, may_borrow ? 1u : 0u);
    if (!may_borrow) continue;
    EXPECT_EQ(device.calls().synchronize, 0u) << "the device waits, not the caller";
    allocator.Free(*block);
    EXPECT_EQ(allocator.pending_event_count(), 1u) << "the borrower's work is waited for";
    EXPECT_FALSE(allocator.Allocate(40 * kMiB, Stream{5}).ok());
    EXPECT_TRUE(allocator.Allocate(9 * kMiB, Stream{5}).ok()) << "it is its stream's again";
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  }
}

TEST(LadderTest, OfSeveralStreamsTheSmallestBlockIsBorrowed) {
  device::SimDevice device{Capacity(60 * kMiB)};
  CachingAllocator allocator(&device, Conf("borrow_across_streams:True"));
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(allocator.Allocate((2 + i) * kMiB, Stream{5 + i}).ok());
  Block* block = *allocator.Allocate(9 * kMiB, Stream{0});
  EXPECT_EQ(block->segment->lane->stream, Stream{7}) << "16 MiB are free there, 17 and 18 elsewhere";
}

// At once as many as the setting says; then one for as many requests as pay for it, by whomever.
TEST(LadderTest, BorrowedBlocksCostSoManyWaits) {
  device::SimDevice device{Capacity(64 * kMiB)};
  CachingAllocator allocator(&device, Conf("borrow_across_streams:True,borrow_most_waits:2"));
  std::vector<Block*> theirs;
  for (int i = 0; i < 3; ++i) theirs.push_back(*allocator.Allocate(20 * kMiB, Stream{5}));
  Block* small = *allocator.Allocate(kMiB, Stream{5});  // keeps its segment, so that the device is full
  ASSERT_TRUE(allocator.Allocate(kMiB, Stream{0}).ok());
  for (Block* block : theirs) allocator.Free(block);
  const auto borrow = [&] {
    const std::uint64_t before = allocator.stats().num_stream_waits;
    const absl::StatusOr<Block*> block = allocator.Allocate(20 * kMiB, Stream{0});
    if (block.ok() && allocator.stats().num_stream_waits > before) return true;
    return false;
  };
  EXPECT_TRUE(borrow());
  EXPECT_TRUE(borrow());
  EXPECT_FALSE(borrow()) << "two are owed";
  EXPECT_EQ(device.calls().stream_wait, 2u);
  EXPECT_EQ(allocator.stats().num_stream_waits, 2u);
  allocator.Free(small);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

TEST(LadderTest, OwedWaitsArePaidByRequests) {
  WaitBudget owed;
  EXPECT_TRUE(owed.MayWait(0, std::nullopt));
  EXPECT_TRUE(owed.MayWait(0, 1));
  owed.Add(0, 1);
  EXPECT_FALSE(owed.MayWait(999, 1));
  EXPECT_TRUE(owed.MayWait(1000, 1));
  EXPECT_TRUE(owed.MayWait(0, 2)) << "two at once";
  EXPECT_EQ(owed.Standing(10), (trace::fact::WaitsOwed{1000, 10}));
  WaitBudget later;  // in a replay that has served 3 requests where the recording had served 10
  later.Restore(owed.Standing(10), 3);
  EXPECT_FALSE(later.MayWait(3 + 989, 1));
  EXPECT_TRUE(later.MayWait(3 + 990, 1));
}

TEST(LadderTest, AMemoryLimitInBytes) {
  device::SimDevice device{Capacity(kGiB)};
  CachingAllocator allocator(&device, Conf("memory_limit_mb:40,per_process_memory_fraction:0.5"));
  EXPECT_EQ(allocator.limit_bytes(), 40 * kMiB) << "the lower of both";
  Block* block = *allocator.Allocate(30 * kMiB, Stream{0});
  EXPECT_TRUE(absl::IsResourceExhausted(allocator.Allocate(12 * kMiB, Stream{0}).status()));
  allocator.SetMemoryLimit(42 * kMiB);
  EXPECT_TRUE(allocator.Allocate(12 * kMiB, Stream{0}).ok());
  allocator.Free(block);
  allocator.EmptyCache();
  allocator.SetMemoryLimit(std::nullopt);
  EXPECT_EQ(allocator.limit_bytes(), kGiB / 2);
  ASSERT_TRUE(allocator.SetMemoryFraction(1).ok());
  EXPECT_EQ(allocator.limit_bytes(), std::nullopt);
}

TEST(LadderTest, ASoftLimitTellsEachCrossingOnce) {
  device::SimDevice device{Capacity(kGiB)};
  CachingAllocator allocator(&device, Conf("soft_limit_mb:100,memory_limit_mb:230"));
  std::vector<SoftLimitCrossing> told;
  allocator.SetSoftLimitCallback([&](const SoftLimitCrossing& crossing) {
    told.push_back(crossing);
    EXPECT_EQ(allocator.stats().reserved_bytes.all().current, static_cast<std::int64_t>(crossing.reserved_bytes));
    EXPECT_TRUE(allocator.Allocate(120 * kMiB, Stream{9}).ok()) << "a crossing of its own: not told";
    allocator.EmptyCache();
  });
  std::vector<Block*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(*allocator.Allocate(20 * kMiB, Stream{0}));
  EXPECT_TRUE(told.empty()) << "100 MiB are not above the limit";
  EXPECT_FALSE(allocator.Allocate(20 * kMiB, Stream{0}).ok()) << "now the callback's own 120 MiB are in the way";
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].limit_bytes, 100 * kMiB);
  EXPECT_EQ(told[0].reserved_bytes, 100 * kMiB);
  EXPECT_EQ(told[0].wanted_bytes, 20 * kMiB);
}

TEST(LadderTest, WhatASoftLimitsCallbackFreesIsUsedBeforeTheHardLimitRefuses) {
  device::SimDevice device{Capacity(kGiB)};
  CachingAllocator allocator(&device, Conf("memory_limit_mb:100,soft_limit_fraction:0.08"));  // 81.92 MiB
  std::vector<Block*> kept;
  int told = 0;
  allocator.SetSoftLimitCallback([&](const SoftLimitCrossing&) {
    ++told;
    for (Block* block : kept) allocator.Free(block);
    kept.clear();
  });
  for (int i = 0; i < 4; ++i) kept.push_back(*allocator.Allocate(20 * kMiB, Stream{0}));
  EXPECT_TRUE(allocator.Allocate(20 * kMiB, Stream{0}).ok());
  EXPECT_EQ(told, 1);
  EXPECT_EQ(allocator.stats().reserved_bytes.all().current, static_cast<std::int64_t>(80 * kMiB)) << "from the cache";
  EXPECT_TRUE(allocator.Allocate(60 * kMiB, Stream{1}).ok()) << "a second crossing, and the hard limit holds";
  EXPECT_EQ(told, 2);
  EXPECT_LE(allocator.stats().reserved_bytes.all().peak, static_cast<std::int64_t>(100 * kMiB));
}

// What a callback throws is the request's answer; the allocator is as before, and tells the next crossing.
TEST(LadderTest, ACallbackThatThrowsEndsItsRequestAlone) {
  device::SimDevice device{Capacity(kGiB)};
  CachingAllocator allocator(&device, Conf("soft_limit_mb:50"));
  int told = 0;
  allocator.SetSoftLimitCallback([&](const SoftLimitCrossing&) {
    if (++told < 3) throw std::runtime_error("too much");
  });
  Block* first = *allocator.Allocate(40 * kMiB, Stream{0});
  for (int i = 1; i <= 2; ++i) {
    EXPECT_THROW((void)allocator.Allocate(20 * kMiB, Stream{0}), std::runtime_error);
    EXPECT_EQ(told, i);
    EXPECT_EQ(allocator.stats().reserved_bytes.all().current, static_cast<std::int64_t>(40 * kMiB));
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  }
  EXPECT_TRUE(allocator.Allocate(20 * kMiB, Stream{0}).ok());
  EXPECT_EQ(told, 3);

  allocator.AddFreeMemoryCallback([]() -> bool { throw std::runtime_error("nothing to give"); });
  EXPECT_THROW((void)allocator.AllocateAddress(20 * kMiB, Stream{0}), std::runtime_error);
  EXPECT_EQ(allocator.stats().allocation.all().current, 2);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  allocator.Free(first);
  EXPECT_TRUE(allocator.Allocate(40 * kMiB, Stream{0}).ok()) << "from the cache: nobody is asked";
}

// Random programs on four streams over a device that is nearly full: whatever is handed to a stream, what other streams
// did there comes before it, by the events that were waited for and by nothing else.
TEST(LadderTest, EveryReuseIsInOrder) {
  const std::string all = "search_after_sync:True,sync_just_enough:True,borrow_across_streams:True";
  for (const std::string& conf :
       {std::string(), std::string("sync_just_enough:True"), all, std::string("borrow_across_streams:True"),
        all + ",expandable_segments:True", all + ",max_split_size_mb:21"}) {
    std::uint64_t borrowed = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE(conf + ", seed " + std::to_string(seed));
      OrderedDevice device(Capacity(96 * kMiB));
      CachingAllocator allocator(&device, Conf(conf));
      RunInOrder(device, allocator, seed, 400);
      EXPECT_EQ(allocator.Validate(), absl::OkStatus());
      borrowed += device.simulated().calls().stream_wait;
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(borrowed > 0, conf.find("borrow") != std::string::npos);
  }
}

// The proof that EveryReuseIsInOrder can fail.
TEST(LadderTest, AReuseOutOfOrderIsSeen) {
  OrderedDevice device(Capacity(96 * kMiB));
  device.Hand(0x1000, 512, Stream{1});
  EXPECT_EQ(device.disorder(), "");
  device.Hand(0x1000, 512, Stream{1});
  EXPECT_EQ(device.disorder(), "") << "the same stream";
  const device::DeviceEvent event = device.RecordEvent(Stream{1});
  device.CompleteAllWork();
  ASSERT_TRUE(device.QueryEvent(event));
  device.Hand(0x1000, 512, Stream{2});
  EXPECT_EQ(device.disorder(), "") << "an event that was seen done";
  ASSERT_TRUE(device.MakeStreamWait(Stream{3}, Stream{2}).ok());
  device.Hand(0x1100, 512, Stream{3});
  EXPECT_EQ(device.disorder(), "") << "a stream that waits";
  device.Hand(0x1100, 512, Stream{1});
  EXPECT_NE(device.disorder(), "");
}

}  // namespace
}  // namespace ashlar::core
