// Settings that change while the allocator runs.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "tests/allocator/core/recorded_file.h"

namespace ashlar::core {
namespace {

TEST(ChangeSettingsTest, RequestsFromThenOnGoByThem) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, Options(""));
  Block* before = *allocator.Allocate(36 * kMiB, Stream{0});
  EXPECT_EQ(before->size_bytes, 36 * kMiB);
  ASSERT_EQ(allocator.ChangeSettings("roundup_power2_divisions:2"), absl::OkStatus());
  EXPECT_EQ((*allocator.Allocate(36 * kMiB, Stream{0}))->size_bytes, 48 * kMiB);
  EXPECT_EQ(before->size_bytes, 36 * kMiB);
  EXPECT_EQ(allocator.OptionsNow().conf, "roundup_power2_divisions:2");
  EXPECT_EQ(allocator.ChangeSettings("expandable_segments:True").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator.OptionsNow().conf, "roundup_power2_divisions:2") << "nothing has changed";
}

// What is oversize depends on the limit: what is there is counted again.
TEST(ChangeSettingsTest, WhatIsOversizeIsCountedAgain) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, Options(""));
  Block* large = *allocator.Allocate(50 * kMiB, Stream{0});
  ASSERT_TRUE(allocator.Allocate(5 * kMiB, Stream{0}).ok());
  for (const auto& [conf, count] : {std::pair("max_split_size_mb:20", 1), std::pair("max_split_size_mb:64", 0),
                                    std::pair("max_split_size_mb:32", 1)}) {
    ASSERT_EQ(allocator.ChangeSettings(conf), absl::OkStatus());
    EXPECT_EQ(allocator.stats().oversize_allocations.current, count) << conf;
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  }
  allocator.Free(large);
  EXPECT_EQ(allocator.stats().oversize_allocations.current, 0);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

// A free part of a segment that was split before the limit was set is as large as what is never split: it is no
// segment that could be returned.
TEST(ChangeSettingsTest, PartsOfSegmentsAreNotReturned) {
  device::SimDevice device({.capacity_bytes = 200 * kMiB});
  CachingAllocator allocator(&device, Options(""));
  Block* whole = *allocator.Allocate(120 * kMiB, Stream{0});
  allocator.Free(whole);
  Block* low = *allocator.Allocate(40 * kMiB, Stream{0});
  ASSERT_EQ(allocator.ChangeSettings("max_split_size_mb:21"), absl::OkStatus());
  EXPECT_FALSE(allocator.Allocate(150 * kMiB, Stream{0}).ok());
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  allocator.Free(low);
  EXPECT_TRUE(allocator.Allocate(150 * kMiB, Stream{0}).ok());
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

// A ring that has dropped the change says what stood when its first event came.
TEST(ChangeSettingsTest, ARingSaysWhatStands) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, Options(""));
  const std::unique_ptr<Recorder> ring = *Recorder::Ring(&allocator, {.ring_bytes = 2048, .chunk_bytes = 512});
  ASSERT_EQ(allocator.ChangeSettings("roundup_power2_divisions:1"), absl::OkStatus());
  for (int i = 0; i < 3000; ++i) allocator.Free(*allocator.Allocate((1 + i % 50) * kMiB, Stream{0}));
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(*ring->Bytes());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_GT(read->recording->events_before, 0u);
  bool is_told = false;
  for (const trace::Fact& fact : read->recording->facts) {
    const auto* const changed = std::get_if<trace::fact::SettingsChanged>(&fact.what);
    is_told |= changed != nullptr && changed->conf == "roundup_power2_divisions:1" && fact.event == 0;
  }
  EXPECT_TRUE(is_told);
  ExpectReplaysExactly(*read);
}

// Rounding changes between the requests of threads that the cache serves, and each is recorded on its side of it.
TEST(ChangeSettingsTest, BesideThreadsThatTheCacheServes) {
  device::SimDevice device({.capacity_bytes = 8 * kGiB});
  CachingAllocator allocator(&device, Options(""));
  const std::unique_ptr<Recorder> ring = *Recorder::Ring(&allocator);
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (std::uint64_t stream = 0; stream < 2; ++stream) {
    threads.emplace_back([&, stream] {
      for (std::uint64_t i = 0; i < 4000; ++i) {
        Block* block = *allocator.Allocate(1 + (i * 7919) % (3 * kMiB), Stream{stream});
        allocator.Free(block);
      }
      --running;
    });
  }
  for (int i = 0; running > 0; ++i) {
    ASSERT_EQ(allocator.ChangeSettings(i % 2 == 0 ? "roundup_power2_divisions:2" : "max_split_size_mb:20"),
              absl::OkStatus());
    EXPECT_LE(allocator.OptionsNow().max_split_size_bytes, policy::kUnlimited);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(*ring->Bytes());
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectReplaysExactly(*read);
}

}  // namespace
}  // namespace ashlar::core
