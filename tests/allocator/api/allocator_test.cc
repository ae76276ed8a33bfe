// The handles of include/ashlar over a simulated device: what a caller sees of each call.
#include "ashlar/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "ashlar/devices.h"
#include "ashlar/pool.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class ApiTest : public testing::Test {
 protected:
  Block Take(std::uint64_t bytes, Stream stream = Stream{0}, PoolId pool = {}) {
    const absl::StatusOr<Block> block = allocator_.Allocate(bytes, stream, pool);
    EXPECT_TRUE(block.ok()) << block.status();
    return block.value_or(Block());
  }
  std::int64_t Reserved() { return allocator_.stats().reserved_bytes.all().current; }

  std::unique_ptr<Device> device_ = MakeSimulatedDevice({.capacity_bytes = kGiB});
  Allocator allocator_{device_.get()};
};

TEST_F(ApiTest, ABlockSaysWhereItIsAndHowLarge) {
  const Block block = Take(1000);
  EXPECT_TRUE(block);
  EXPECT_EQ(block.size_bytes(), 1024u);
  EXPECT_EQ(block.requested_bytes(), 1000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()), block.address());
  EXPECT_EQ(block.address() % 512, 0u);
  allocator_.Free(block);
  EXPECT_TRUE(allocator_.Validate().ok());
}

TEST_F(ApiTest, NoBlockIsNothing) {
  const Block none = Take(0);
  EXPECT_FALSE(none);
  EXPECT_EQ(none, Block());
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.size_bytes(), 0u);
  EXPECT_EQ(none.requested_bytes(), 0u);
  allocator_.Free(none);
  allocator_.RecordStream(none, Stream{7});
  EXPECT_EQ(allocator_.stats().allocation.all().allocated, 0);
}

TEST_F(ApiTest, AFreedBlockIsReusedInItsStream) {
  const Block first = Take(3 * kMiB);
  allocator_.Free(first);
  EXPECT_EQ(Take(3 * kMiB).address(), first.address());
}

TEST_F(ApiTest, ARecordedStreamKeepsTheBlockUntilItsWorkIsDone) {
  const Block first = Take(20 * kMiB);
  allocator_.RecordStream(first, Stream{7});
  allocator_.Free(first);
  const Block second = Take(20 * kMiB);
  EXPECT_NE(second.address(), first.address());
  ASSERT_TRUE(device_->SynchronizeStream(Stream{7}).ok());
  allocator_.PollEvents();
  EXPECT_EQ(Take(20 * kMiB).address(), first.address());
}

TEST_F(ApiTest, AddressesAreBlocksAsWell) {
  const absl::StatusOr<std::uint64_t> address = allocator_.AllocateAddress(2 * kMiB, Stream{3});
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(allocator_.FreeAddress(*address));
  EXPECT_FALSE(allocator_.FreeAddress(*address));
  EXPECT_FALSE(allocator_.FreeAddress(12345));
}

TEST_F(ApiTest, OutOfMemorySaysWhereEveryByteIs) {
  Take(900 * kMiB);
  const absl::Status status = allocator_.Allocate(200 * kMiB, Stream{0}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("200.00 MiB requested"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\nverdict: capacity"));
}

TEST_F(ApiTest, EmptyCacheReturnsWhatIsFree) {
  allocator_.Free(Take(300 * kMiB));
  EXPECT_EQ(Reserved(), static_cast<std::int64_t>(300 * kMiB));
  allocator_.EmptyCache();
  EXPECT_EQ(Reserved(), 0);
  EXPECT_EQ(device_->GetMemoryInfo().free_bytes, kGiB);
  EXPECT_TRUE(allocator_.TakeDeviceError().ok());
}

TEST_F(ApiTest, CollectGarbageReturnsLargeSegments) {
  allocator_.Free(Take(300 * kMiB));
  allocator_.CollectGarbage(kMiB);
  EXPECT_EQ(Reserved(), 0);
}

TEST_F(ApiTest, LimitsHold) {
  EXPECT_EQ(allocator_.device_total_bytes(), kGiB);
  EXPECT_EQ(allocator_.limit_bytes(), std::nullopt);
  EXPECT_FALSE(allocator_.SetMemoryFraction(2).ok());
  ASSERT_TRUE(allocator_.SetMemoryFraction(0.5).ok());
  EXPECT_EQ(allocator_.limit_bytes(), kGiB / 2);
  allocator_.SetMemoryLimit(100 * kMiB);
  EXPECT_EQ(allocator_.limit_bytes(), 100 * kMiB);
  EXPECT_FALSE(allocator_.Allocate(200 * kMiB, Stream{0}).ok());
}

TEST_F(ApiTest, ASoftLimitIsTold) {
  std::vector<SoftLimitCrossing> told;
  allocator_.SetSoftLimit(100 * kMiB, [&](const SoftLimitCrossing& crossing) { told.push_back(crossing); });
  Take(300 * kMiB);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].limit_bytes, 100 * kMiB);
  EXPECT_EQ(told[0].reserved_bytes, 0u);
  EXPECT_EQ(told[0].wanted_bytes, 300 * kMiB);
  allocator_.SetSoftLimitCallback({});
  allocator_.EmptyCache();
  Take(300 * kMiB);
  EXPECT_THAT(told, SizeIs(1));
}

TEST_F(ApiTest, ACallbackMayFreeMemory) {
  const Block held = Take(900 * kMiB);
  int calls = 0;
  allocator_.AddFreeMemoryCallback([&] {
    if (calls++ == 0) allocator_.Free(held);
    return calls == 1;
  });
  EXPECT_EQ(Take(900 * kMiB).address(), held.address());
  EXPECT_EQ(calls, 1);
}

TEST_F(ApiTest, ACallbackThatWasRemovedIsNotCalled) {
  const Block held = Take(900 * kMiB);
  int first = 0;
  int second = 0;
  const std::uint64_t number = allocator_.AddFreeMemoryCallback([&] { return ++first == 0; });
  EXPECT_NE(allocator_.AddFreeMemoryCallback([&] { return ++second == 0; }), number);
  EXPECT_FALSE(allocator_.Allocate(900 * kMiB, Stream{0}).ok());
  EXPECT_TRUE(allocator_.RemoveFreeMemoryCallback(number));
  EXPECT_FALSE(allocator_.RemoveFreeMemoryCallback(number)) << "it is gone";
  EXPECT_FALSE(allocator_.RemoveFreeMemoryCallback(0));
  EXPECT_FALSE(allocator_.Allocate(900 * kMiB, Stream{0}).ok());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  allocator_.Free(held);
}

TEST_F(ApiTest, ARouteNeedsAFilter) {
  const PoolId pool = allocator_.CreatePool();
  const absl::Status status = allocator_.BeginPool(pool, nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_FALSE(allocator_.EndPool(pool).ok()) << "none began";
  Take(kMiB);
}

TEST_F(ApiTest, APoolKeepsItsMemoryApart) {
  const Block plain = Take(20 * kMiB);
  allocator_.Free(plain);
  Block block;
  {
    Pool pool(allocator_);
    EXPECT_EQ(&pool.allocator(), &allocator_);
    {
      const PoolScope scope(pool);
      EXPECT_EQ(allocator_.PoolUseCount(pool.id()), 2u);
      block = Take(20 * kMiB);
    }
    EXPECT_NE(block.address(), plain.address());
    EXPECT_EQ(Take(20 * kMiB).address(), plain.address());
    EXPECT_FALSE(allocator_.EmptyPool(pool.id()).ok());
    allocator_.Free(block);
  }
  EXPECT_EQ(Reserved(), static_cast<std::int64_t>(20 * kMiB));
}

// The innermost of nested scopes counts, and only for the thread that opened it.
TEST_F(ApiTest, APoolIsAHandleAndAScopeAThreads) {
  const auto pool_of = [&](const Block& block) {
    for (const SegmentInfo& segment : allocator_.Segments()) {
      if (block.address() - segment.address < segment.size_bytes) return segment.pool;
    }
    return PoolId{~0ull, ~0ull};
  };
  Block block;
  {
    const Pool outer(allocator_);
    const Pool pool(allocator_, {.no_split = true});
    {
      const PoolScope around(outer);
      const PoolScope scope(pool);
      block = Take(5 * kMiB);
      EXPECT_EQ(pool_of(block), pool.id());
      EXPECT_EQ(block.size_bytes(), 20 * kMiB) << "a whole segment";
      std::thread([&] { EXPECT_EQ(pool_of(Take(1)), PoolId{}); }).join();
      allocator_.Free(Take(kMiB));
    }
    EXPECT_EQ(pool_of(Take(1)), PoolId{});
    EXPECT_EQ(Reserved(), static_cast<std::int64_t>(24 * kMiB));
  }
  EXPECT_EQ(Reserved(), static_cast<std::int64_t>(22 * kMiB)) << "what was free in the pool went with the handle";
  allocator_.Free(block);
  allocator_.EmptyCache();
  EXPECT_EQ(Reserved(), static_cast<std::int64_t>(2 * kMiB)) << "the default pool's two blocks are left";
  EXPECT_EQ(allocator_.Validate(), absl::OkStatus());
}

TEST_F(ApiTest, ACaptureWaitsForNothing) {
  const PoolId pool = allocator_.CreatePool({.no_split = true});
  const auto all = [](Stream) { return true; };
  ASSERT_TRUE(allocator_.BeginPool(pool, all, RouteKind::kCapture).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator_.BeginPool(pool, all)));
  allocator_.Free(Take(20 * kMiB));
  ASSERT_TRUE(allocator_.EndPool(pool).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator_.EndPool(pool)));
  allocator_.RetainPool(pool);
  for (int user = 0; user < 3; ++user) allocator_.ReleasePool(pool);
  EXPECT_TRUE(allocator_.EmptyPool(pool).ok());
  EXPECT_EQ(Reserved(), 0);
}

TEST_F(ApiTest, SegmentsAreTiledByTheirBlocks) {
  const Block live = Take(5 * kMiB, Stream{4});
  const Block freed = Take(3 * kMiB, Stream{4});
  const Block pending = Take(6 * kMiB, Stream{4});
  allocator_.Free(freed);
  allocator_.RecordStream(pending, Stream{9});
  allocator_.Free(pending);
  const std::vector<SegmentInfo> segments = allocator_.Segments();
  ASSERT_THAT(segments, SizeIs(1));
  EXPECT_EQ(segments[0].stream, Stream{4});
  EXPECT_EQ(segments[0].size_bytes, 20 * kMiB);
  EXPECT_FALSE(segments[0].is_small_pool);
  ASSERT_THAT(segments[0].blocks, SizeIs(4));
  const std::vector<BlockState> states = {BlockState::kLive, BlockState::kFree, BlockState::kPending,
                                          BlockState::kFree};
  std::uint64_t at = segments[0].address;
  for (std::size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(segments[0].blocks[i].state, states[i]);
    EXPECT_EQ(segments[0].blocks[i].address, at);
    at += segments[0].blocks[i].size_bytes;
  }
  EXPECT_EQ(at, segments[0].address + segments[0].size_bytes);
  EXPECT_EQ(segments[0].blocks[0].address, live.address());
  EXPECT_EQ(segments[0].blocks[0].requested_bytes, 5 * kMiB);
  EXPECT_EQ(segments[0].blocks[1].requested_bytes, 0u);
}

TEST_F(ApiTest, StatisticsHavePyTorchsNames) {
  Take(1000);
  const auto values = TorchStatistics(allocator_.stats(), allocator_.options());
  EXPECT_THAT(values, SizeIs(123));
  EXPECT_THAT(values, testing::Contains(testing::Pair("requested_bytes.all.current", 1000)));
  EXPECT_THAT(OpenMetrics({{{.device = "0", .stats = allocator_.stats()}}}),
              HasSubstr("ashlar_requested_bytes{device=\"0\",pool=\"small\"} 1000\n"));
}

TEST_F(ApiTest, SettingsThatAreWrongAreNamed) {
  EXPECT_THAT(std::string(Options::Parse("max_split_mb:5").status().message()), HasSubstr("max_split_mb"));
  EXPECT_EQ(Options::Parse("memory_limit_mb:100")->memory_limit_bytes, 100 * kMiB);
  EXPECT_FALSE(Options::Parse("memory_limit_mb:100", Compat::kTorch26, Keys::kTorch).ok());
}

TEST(FaceDevicesTest, HostMemoryIsWritten) {
  const std::unique_ptr<Device> host = MakeHostDevice({.capacity_bytes = 64 * kMiB});
  Allocator allocator(host.get());
  const absl::StatusOr<Block> block = allocator.Allocate(3 * kMiB, Stream{0});
  ASSERT_TRUE(block.ok());
  std::memset(block->data(), 7, 3 * kMiB);
  EXPECT_EQ(static_cast<const char*>(block->data())[3 * kMiB - 1], 7);
  allocator.Free(*block);
}

TEST(ApiDeathTest, ABlockThatIsFreedTwiceIsOneLine) {
  EXPECT_DEATH(
      {
        const std::unique_ptr<Device> device = MakeSimulatedDevice({});
        Allocator allocator(device.get());
        const Block block = *allocator.Allocate(1000, Stream{0});
        allocator.Free(block);
        allocator.Free(block);
      },
      "Free");
}

TEST(ApiDeathTest, ACallbackThatIsNoFunctionIsOneLine) {
  const std::unique_ptr<Device> device = MakeSimulatedDevice({});
  Allocator allocator(device.get());
  EXPECT_DEATH(allocator.AddFreeMemoryCallback(nullptr),
               "^ashlar: AddFreeMemoryCallback: there is no function[^\n]*\n$");
}

TEST(ApiDeathTest, ASecondScopeOfAPoolSaysWhatIsWrong) {
  const std::unique_ptr<Device> device = MakeSimulatedDevice({});
  Allocator allocator(device.get());
  const Pool pool(allocator);
  const PoolScope scope(pool);
  EXPECT_DEATH(const PoolScope again(pool), "^ashlar: PoolScope: [^\n]* has a route already[^\n]*\n$");
}

TEST(ApiDeathTest, AnAllocatorThatIsGoneIsOneLine) {
  const std::unique_ptr<Device> device = MakeSimulatedDevice({});
  std::optional<Allocator> allocator(std::in_place, device.get());
  Allocator* const gone = &*allocator;
  const Block block = *gone->Allocate(1000, Stream{0});
  gone->Free(block);
  allocator.reset();
  EXPECT_DEATH(gone->Free(block), "^ashlar: [^\n]*called after its destructor[^\n]*\n$");
  EXPECT_DEATH((void)gone->Allocate(1000, Stream{0}), "^ashlar: [^\n]*called after its destructor[^\n]*\n$");
  EXPECT_DEATH((void)gone->stats(), "^ashlar: [^\n]*called after its destructor[^\n]*\n$");
}

TEST(DevicesTest, OptionsThatCannotBeAreAStatus) {
  for (std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{3} * kMiB}) {
    for (const absl::Status& status : {OpenHostDevice({.granularity_bytes = bytes}).status(),
                                       OpenSimulatedDevice({.granularity_bytes = bytes}).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("granularity_bytes: "));
    }
  }
  EXPECT_EQ(OpenHostDevice({.granularity_bytes = 1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpenSimulatedDevice({.base_address = 4096}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(OpenHostDevice({}).ok());
  EXPECT_TRUE(OpenSimulatedDevice({}).ok());
  EXPECT_DEATH(MakeHostDevice({.granularity_bytes = 0}), "granularity_bytes: 0 is no power of two");
}

}  // namespace
}  // namespace ashlar
