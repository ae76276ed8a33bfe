#include "allocator/core/pending_frees.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

// A program may use any number of streams, one after the other: what is kept and visited goes by those waited for now.
TEST(PendingFreesTest, StreamsThatAreDoneAreForgotten) {
  device::SimDevice device({.capacity_bytes = kMiB});
  PendingFrees pending;
  std::vector<policy::Block> blocks(4);
  std::uint64_t finished = 0;
  const auto finish = [&](policy::Block*) { ++finished; };
  for (std::uint64_t round = 0; round < 1000; ++round) {
    for (std::uint64_t i = 0; i < blocks.size(); ++i) {
      blocks[i].pending_events = 1;
      pending.Add(device.RecordEvent(Stream{4 * round + i}), &blocks[i]);
    }
    EXPECT_EQ(pending.stream_count(), 4u);
    if (round % 4 == 0) {
      device.CompleteAllWork();
      pending.Poll(device, finish);
    } else if (round % 4 == 1) {
      EXPECT_EQ(pending.Synchronize(device, finish), absl::OkStatus());
    } else if (round % 4 == 2) {
      for (policy::Block& block : blocks) EXPECT_EQ(pending.SynchronizeBlock(device, &block, finish), absl::OkStatus());
    } else {
      for (int i = 0; i < 4; ++i) EXPECT_EQ(pending.SynchronizeOldest(device, finish), absl::OkStatus());
    }
    EXPECT_EQ(pending.size(), 0u);
    EXPECT_EQ(pending.stream_count(), 0u);
  }
  EXPECT_EQ(finished, 4000u);
}

// One side asks all streams each time, the other those with news: the same blocks finish in the same order, and the
// device is told of as many queries.
TEST(PendingFreesTest, StreamsWithoutNewsNeedNoVisit) {
  struct Side {
    device::SimDevice device{{.capacity_bytes = kMiB}};
    PendingFrees pending;
    std::vector<policy::Block> blocks = std::vector<policy::Block>(5000);
    std::vector<std::ptrdiff_t> finished;
  };
  Side all, news;
  Rng rng(11);
  for (std::size_t i = 0; i < all.blocks.size(); ++i) {
    const Stream stream{rng.Below(40)}, finishing{rng.Below(40)};
    const std::uint64_t dice = rng.Below(100);
    for (Side* side : {&all, &news}) {
      const auto finish = [side](policy::Block* block) { side->finished.push_back(block - side->blocks.data()); };
      side->blocks[i].pending_events = 2;
      side->pending.Add(side->device.RecordEvent(stream), &side->blocks[i]);
      side->pending.Add(side->device.RecordEvent(Stream{Handle(stream) / 2}), &side->blocks[i]);
      if (dice < 30) side->device.CompleteStream(finishing);
      if (dice == 30) side->device.CompleteAllWork();
      if (dice == 31) {
        EXPECT_EQ(side->pending.SynchronizeOldest(side->device, finish), absl::OkStatus());
      }
      if (side == &all) {
        side->pending.Poll(side->device, finish);
      } else {
        side->device.CountQueries(side->pending.PollNews(side->device, side->device.TakeNews(), finish));
      }
    }
  }
  EXPECT_EQ(news.finished, all.finished);
  EXPECT_GT(news.finished.size(), 4000u);
  EXPECT_EQ(news.device.calls().query_event, all.device.calls().query_event);
  EXPECT_LT(news.pending.queues_polled(), all.pending.queues_polled() / 4);
}

// A replay has a stream for each free that waits: requests beside them must not visit them all.
TEST(PendingFreesTest, RequestsOfAReplayVisitNoStreamThatStands) {
  for (const std::uint64_t count : {1000u, 2000u}) {
    device::SimDevice device({.capacity_bytes = 16 * kGiB});
    CachingAllocator allocator(
        &device, *policy::ParseConf("report_leaks:False", policy::Compat::kTorch210, policy::Keys::kAshlar));
    Reconstruction(allocator).PollNewsOf(device);
    for (std::uint64_t i = 0; i < count; ++i) {
      Block* block = *allocator.Allocate(kMiB, Stream{0}, PoolId{});
      allocator.RecordStream(block, Stream{i + 1});
      allocator.Free(block);
    }
    for (std::uint64_t i = 0; i < 10 * count; ++i) allocator.Free(*allocator.Allocate(5 * kMiB, Stream{0}, PoolId{}));
    for (std::uint64_t i = 0; i < count; ++i) {
      device.CompleteStream(Stream{i + 1});
      allocator.PollEvents();
    }
    EXPECT_EQ(allocator.pending_event_count(), 0u);
    EXPECT_LE(Inspection(allocator).path_costs().queues_polled, 2 * count);
  }
}

}  // namespace
}  // namespace ashlar::core
