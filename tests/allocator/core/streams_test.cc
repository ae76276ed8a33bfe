// What is kept of streams: nothing once their last segment is gone; and the short form of the stress over streams.
#include <malloc.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/streams_stress.h"

namespace ashlar::core {
namespace {

device::SimDeviceOptions DeviceOf(std::uint64_t capacity_bytes) {
  device::SimDeviceOptions options;
  options.capacity_bytes = capacity_bytes;
  return options;
}

Inspection::PathCosts CostsOf(const CachingAllocator& allocator) { return Inspection(allocator).path_costs(); }

// 40 streams fit; the ladder gives back what the streams before them left.
TEST(StreamsTest, StreamsThatAreGoneLeaveNothing) {
  device::SimDevice device(DeviceOf(80 * kMiB));
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  for (std::uint64_t stream = 1; stream <= 20'000; ++stream) {
    Block* block = *allocator.Allocate(4096, Stream{stream});
    allocator.RecordStream(block, Stream{1'000'000 + stream});
    allocator.Free(block);
    device.CompleteAllWork();
    ASSERT_LE(CostsOf(allocator).arenas, 41u);
  }
  allocator.EmptyCache();
  EXPECT_EQ(CostsOf(allocator).arenas, 0u);
  EXPECT_EQ(allocator.stats().reserved_bytes.all().current, 0);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  EXPECT_TRUE(Inspection(allocator).heap().default_pair().small.lanes.empty());
}

// The bytes that the C library has given out, after streams that came, were used by another, and went.
TEST(StreamsTest, MemoryIsFlatOverStreams) {
  device::SimDevice device(DeviceOf(80 * kMiB));
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  std::uint64_t next = 1;
  const auto use = [&](int count) {
    for (int i = 0; i < count; ++i, ++next) {
      const std::uint64_t address = *allocator.AllocateAddress(3 * kMiB, Stream{next});
      Block* block = *allocator.Allocate(4096, Stream{next});
      allocator.RecordStream(block, Stream{1'000'000 + next});
      allocator.Free(block);
      EXPECT_TRUE(allocator.FreeAddress(address));
      device.CompleteStream(Stream{1'000'000 + next});
    }
    allocator.EmptyCache();
    return static_cast<std::int64_t>(mallinfo2().uordblks);
  };
  const std::int64_t before = use(1'000);
  const std::int64_t after = use(20'000);
  EXPECT_LE(after - before, 64 * 1024);
}

TEST(StreamsTest, ExpandableStreamsThatAreGoneLeaveNothing) {
  device::SimDevice device(DeviceOf(80 * kMiB));
  CachingAllocator allocator(&device, *policy::ParseConf("expandable_segments:True", policy::Compat::kTorch210));
  for (std::uint64_t stream = 1; stream <= 200; ++stream) {
    const std::uint64_t address = *allocator.AllocateAddress(4096, Stream{stream});
    EXPECT_TRUE(allocator.FreeAddress(address));
  }
  allocator.EmptyCache();
  EXPECT_EQ(CostsOf(allocator).arenas, 0u);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

// What an exclusive section costs is a matter of threads: 1,000 streams take no more locks than one.
TEST(StreamsTest, ASectionLocksThreadCachesNotStreams) {
  for (const std::uint64_t streams : {1, 1000}) {
    device::SimDevice device(DeviceOf(8 * kGiB));
    CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
    for (std::uint64_t stream = 1; stream <= streams; ++stream) {
      ASSERT_TRUE(allocator.Allocate(4096, Stream{stream}).ok());
    }
    const std::uint64_t before = CostsOf(allocator).thread_cache_locks;
    EXPECT_EQ(CostsOf(allocator).thread_cache_locks - before, 1u) << streams;
  }
}

// Replacing blocks on many streams needs no exclusive section once their memory is there: no peak is passed.
TEST(StreamsTest, SteadyWorkOnManyStreamsStaysOutOfTheSection) {
  device::SimDevice device(DeviceOf(8 * kGiB));
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  std::vector<Block*> blocks(256);
  const auto replace_all = [&](std::uint64_t shift) {
    for (std::uint64_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] != nullptr) allocator.Free(blocks[i]);
      blocks[i] = *allocator.Allocate(4096, Stream{(i + shift) % 64});
    }
  };
  for (std::uint64_t shift = 0; shift < 64; ++shift) replace_all(shift);
  const std::uint64_t before = CostsOf(allocator).sections;
  for (std::uint64_t shift = 0; shift < 64; ++shift) replace_all(shift);
  EXPECT_EQ(CostsOf(allocator).sections - before, 1u);
  EXPECT_EQ(allocator.stats().allocation.all().peak, 256);
}

// Streams that one thread made and another uses move to its thread cache; their blocks are found wherever they are
// named.
TEST(StreamsTest, StreamsMoveToTheThreadThatUsesThem) {
  device::SimDevice device(DeviceOf(8 * kGiB));
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  std::vector<std::uint64_t> old;
  for (std::uint64_t stream = 0; stream < 8; ++stream) old.push_back(*allocator.AllocateAddress(4096, Stream{stream}));
  std::thread([&] {
    for (std::uint64_t stream = 0; stream < 8; ++stream) {
      for (int i = 0; i < 40; ++i) EXPECT_TRUE(allocator.FreeAddress(*allocator.AllocateAddress(8192, Stream{stream})));
    }
    const std::uint64_t before = CostsOf(allocator).sections;
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(allocator.FreeAddress(*allocator.AllocateAddress(8192, Stream{7})));
    EXPECT_EQ(CostsOf(allocator).sections - before, 1u);
  }).join();
  for (const std::uint64_t address : old) EXPECT_TRUE(allocator.FreeAddress(address));
  for (const std::uint64_t address : old) EXPECT_FALSE(allocator.FreeAddress(address));
  EXPECT_EQ(allocator.stats().allocation.all().current, 0);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

// Two threads that take turns on the same streams, half of which each used first: blocks that one thread's thread cache
// frees and the other's allocates would need an exclusive section for each, as no more blocks are live than ever were.
TEST(StreamsTest, StreamsThatThreadsShareStayOutOfTheSection) {
  device::SimDevice device(DeviceOf(8 * kGiB));
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  std::vector<std::uint64_t> addresses(128);
  const auto replace = [&](std::uint64_t parity, std::uint64_t shift) {
    for (std::uint64_t i = parity; i < addresses.size(); i += 2) {
      if (addresses[i] != 0) {
        EXPECT_TRUE(allocator.FreeAddress(addresses[i]));
      }
      addresses[i] = *allocator.AllocateAddress(4096, Stream{(i + shift) % 64});
    }
  };
  const auto take_turns = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t shift = begin; shift < end; ++shift) {
      replace(0, shift);
      std::thread(replace, 1, shift).join();
    }
  };
  take_turns(0, 64);
  const std::uint64_t before = CostsOf(allocator).sections;
  take_turns(64, 96);
  EXPECT_LE(CostsOf(allocator).sections - before, 1u + 8u) << "of 4,096 requests and as many frees";
  EXPECT_EQ(allocator.stats().allocation.all().peak, 128);
  for (const std::uint64_t address : addresses) EXPECT_TRUE(allocator.FreeAddress(address));
  EXPECT_EQ(allocator.stats().allocation.all().current, 0);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

// What was handed out by address before its stream moved is freed by either thread without an exclusive section, but
// for the few times that a share of the room below a peak is used up.
TEST(StreamsTest, AddressesMoveWithTheirStream) {
  device::SimDevice device(DeviceOf(8 * kGiB));
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  std::vector<std::uint64_t> old(400);
  const auto allocate_all = [&] {
    for (std::uint64_t& address : old) address = *allocator.AllocateAddress(4096, Stream{1});
  };
  const auto sections_of_freeing = [&](std::size_t begin, std::size_t end) {
    const std::uint64_t before = CostsOf(allocator).sections;
    for (std::size_t i = begin; i < end; ++i) EXPECT_TRUE(allocator.FreeAddress(old[i]));
    return CostsOf(allocator).sections - before;
  };
  allocate_all();
  sections_of_freeing(0, 400);
  allocate_all();
  std::thread([&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(allocator.FreeAddress(*allocator.AllocateAddress(8192, Stream{1})));
    EXPECT_LE(sections_of_freeing(0, 200), 20u);
  }).join();
  EXPECT_LE(sections_of_freeing(200, 400), 20u);
  EXPECT_EQ(allocator.stats().allocation.all().current, 0);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

// A thread that has ended leaves its thread cache to the next one.
TEST(StreamsTest, ThreadCachesAreAsManyAsThreadsAtOnce) {
  device::SimDevice device(DeviceOf(8 * kGiB));
  CachingAllocator allocator(
      &device, *policy::ParseConf("report_leaks:False", policy::Compat::kTorch210, policy::Keys::kAshlar));
  ASSERT_TRUE(allocator.Allocate(4096, Stream{51}).ok());  // this thread's thread cache
  for (std::uint64_t stream = 1; stream <= 50; ++stream) {
    std::thread([&] { EXPECT_TRUE(allocator.Allocate(4096, Stream{stream}).ok()); }).join();
  }
  const std::uint64_t before = CostsOf(allocator).thread_cache_locks;
  EXPECT_EQ(CostsOf(allocator).thread_cache_locks - before, 2u);
}

TEST(StreamsTest, StressInShort) {
  for (const std::uint64_t streams : {1, 50, 5000}) {
    const StreamsStressResult result = RunStreamsStress({8, 2000, streams, 8 * kGiB});
    EXPECT_EQ(result.wrong, "") << streams << " streams";
    EXPECT_GT(result.allocations, 1000u);
  }
}

}  // namespace
}  // namespace ashlar::core
