#include "allocator/core/pending_frees.h"

#include <cstdint>
#include <vector>

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

}  // namespace
}  // namespace ashlar::core
