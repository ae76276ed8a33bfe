// Private pools: which requests go to them, who keeps their memory, and what a graph capture forbids. The simulated
// device aborts on every call that would break a capture.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::core {
namespace {

constexpr PoolId kGraph{1, 0};

StreamFilter Only(Stream wanted) {
  return [wanted](Stream stream) { return stream == wanted; };
}

device::SimDeviceOptions PoolsCapacity(std::uint64_t bytes) {
  device::SimDeviceOptions options;
  options.capacity_bytes = bytes;
  return options;
}

PoolId PoolOf(const Block* block) { return block->segment->lane->pool->id; }

TEST(PoolsTest, RequestsOfAStreamAreRouted) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  allocator.Free(*allocator.Allocate(kMiB, Stream{3}));  // something to hit
  ASSERT_TRUE(allocator.BeginPool(kGraph, Only(Stream{3})).ok());
  Block* routed = *allocator.Allocate(kMiB, Stream{3});
  EXPECT_EQ(PoolOf(routed), kGraph) << "though the cache would have served it";
  EXPECT_EQ(PoolOf(*allocator.Allocate(kMiB, Stream{4})), PoolId{});
  EXPECT_EQ(PoolOf(*allocator.Allocate(kMiB, Stream{3}, PoolId{0, 9})), (PoolId{0, 9})) << "named pools stay";
  ASSERT_TRUE(allocator.EndPool(kGraph).ok());
  EXPECT_EQ(PoolOf(*allocator.Allocate(kMiB, Stream{3})), PoolId{});
  allocator.Free(routed);
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

TEST(PoolsTest, TheYoungestRouteCountsAndAPoolHasOne) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  const PoolId inner{2, 0};
  ASSERT_TRUE(allocator.BeginPool(kGraph, Only(Stream{3})).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator.BeginPool(kGraph, Only(Stream{4}))));
  ASSERT_TRUE(allocator.BeginPool(inner, Only(Stream{3})).ok());
  EXPECT_EQ(PoolOf(*allocator.Allocate(1, Stream{3})), inner);
  ASSERT_TRUE(allocator.EndPool(inner).ok());
  EXPECT_EQ(PoolOf(*allocator.Allocate(1, Stream{3})), kGraph);
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator.EndPool(inner)));
  EXPECT_TRUE(absl::IsInvalidArgument(allocator.BeginPool({}, Only(Stream{3}))));
  ASSERT_TRUE(allocator.EndPool(kGraph).ok());
}

TEST(PoolsTest, MemoryStaysWhileThePoolHasUsers) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  const PoolId pool = allocator.CreatePool();
  EXPECT_EQ(allocator.PoolUseCount(pool), 1u);
  ASSERT_TRUE(allocator.BeginPool(pool, Only(Stream{0})).ok());
  allocator.Free(*allocator.Allocate(20 * kMiB, Stream{0}));
  ASSERT_TRUE(allocator.EndPool(pool).ok());
  EXPECT_EQ(allocator.PoolUseCount(pool), 2u) << "the graph holds its addresses";
  allocator.EmptyCache();
  EXPECT_EQ(device.used_bytes(), 20 * kMiB);
  allocator.ReleasePool(pool);
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator.EmptyPool(pool)));
  allocator.RetainPool(pool);
  allocator.ReleasePool(pool);
  allocator.ReleasePool(pool);
  EXPECT_EQ(allocator.PoolUseCount(pool), 0u);
  EXPECT_TRUE(allocator.EmptyPool(pool).ok());
  EXPECT_EQ(device.used_bytes(), 0u);
  EXPECT_TRUE(allocator.EmptyPool(pool).ok()) << "there is none any more";
  EXPECT_NE(allocator.CreatePool(), pool);
}

// Everything that would synchronise without a capture: pending frees, a full device, a limit with garbage collection,
// oversize blocks to release, and the calls that return memory.
TEST(PoolsTest, ACaptureNeverSynchronises) {
  for (const char* conf : {"", "expandable_segments:True", "policy:ashlar", "max_split_size_mb:21",
                           "garbage_collection_threshold:0.2,memory_limit_mb:60",
                           "search_after_sync:True,borrow_across_streams:True", "sync_just_enough:True"}) {
    SCOPED_TRACE(conf);
    device::SimDevice device(PoolsCapacity(64 * kMiB));
    CachingAllocator allocator(&device, *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
    Block* pending = *allocator.Allocate(22 * kMiB, Stream{0});
    allocator.RecordStream(pending, Stream{7});
    allocator.Free(pending);
    allocator.Free(*allocator.Allocate(2 * kMiB, Stream{5}));
    const device::DeviceCalls before = device.calls();

    ASSERT_TRUE(allocator.BeginPool(kGraph, Only(Stream{0}), RouteKind::kCapture).ok());
    Block* captured = *allocator.Allocate(kMiB, Stream{0});
    allocator.RecordStream(captured, Stream{7});
    allocator.Free(captured);
    EXPECT_NE(*allocator.Allocate(kMiB, Stream{0}), captured) << "it waits until the capture is over";
    const absl::Status refused = allocator.Allocate(40 * kMiB, Stream{0}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_NE(refused.message().find("a graph is being captured"), absl::string_view::npos) << refused;
    allocator.PollEvents();
    allocator.EmptyCache();
    EXPECT_TRUE(absl::IsFailedPrecondition(allocator.TakeDeviceError()));
    allocator.CollectGarbage(kMiB);
    EXPECT_TRUE(absl::IsFailedPrecondition(allocator.TakeDeviceError()));
    EXPECT_TRUE(absl::IsFailedPrecondition(allocator.EmptyPool(kGraph)));
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
    EXPECT_EQ(device.calls().record_event, before.record_event);
    EXPECT_EQ(device.calls().synchronize, before.synchronize);
    ASSERT_TRUE(allocator.EndPool(kGraph).ok());

    EXPECT_EQ(device.calls().record_event, before.record_event + 1) << "the deferred free begins to wait";
    EXPECT_TRUE(allocator.Allocate(40 * kMiB, Stream{0}).ok()) << "now the ladder may wait and return";
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  }
}

TEST(PoolsTest, FreesWaitUntilTheLastCaptureEnds) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  Block* block = *allocator.Allocate(kMiB, Stream{0});
  allocator.RecordStream(block, Stream{7});
  ASSERT_TRUE(allocator.BeginPool({1, 0}, Only(Stream{1}), RouteKind::kCapture).ok());
  ASSERT_TRUE(allocator.BeginPool({2, 0}, Only(Stream{2}), RouteKind::kCapture).ok());
  allocator.Free(block);
  ASSERT_TRUE(allocator.EndPool({1, 0}).ok());
  EXPECT_EQ(allocator.pending_event_count(), 0u);
  EXPECT_EQ(allocator.stats().active.all().current, 1) << "pending all the same";
  ASSERT_TRUE(allocator.EndPool({2, 0}).ok());
  EXPECT_EQ(allocator.pending_event_count(), 1u);
  device.CompleteAllWork();
  allocator.PollEvents();
  EXPECT_EQ(allocator.stats().active.all().current, 0);
}

// A bank of addresses that are the device's own nowhere.
class BankMemory final : public PoolMemory {
 public:
  struct Log {
    std::vector<std::uint64_t> given = {};
    std::vector<std::uint64_t> taken = {};
    bool is_empty = false;
    bool is_gone = false;
  };
  // The log outlives the allocator, which lets go of its pools' memory at its end.
  explicit BankMemory(Log& log) : log_(log) {}
  ~BankMemory() override { log_.is_gone = true; }

  std::uint64_t Allocate(std::uint64_t size_bytes) override {
    if (log_.is_empty) return 0;
    log_.given.push_back(next_);
    return std::exchange(next_, next_ + size_bytes);
  }
  void Free(std::uint64_t address) override { log_.taken.push_back(address); }

 private:
  Log& log_;
  std::uint64_t next_ = std::uint64_t{1} << 46;
};

TEST(PoolsTest, APoolMayHaveMemoryOfItsOwn) {
  for (const char* conf : {"", "expandable_segments:True", "policy:ashlar", "max_split_size_mb:21"}) {
    SCOPED_TRACE(conf);
    device::SimDevice device({});
    BankMemory::Log log;
    CachingAllocator allocator(&device, *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
    const PoolId pool{0, 5};
    ASSERT_EQ(allocator.SetPoolMemory(pool, std::make_shared<BankMemory>(log)), absl::OkStatus());
    EXPECT_EQ(allocator.PoolUseCount(pool), 1u);
    Block* block = *allocator.Allocate(30 * kMiB, Stream{0}, pool);
    Block* small = *allocator.Allocate(100, Stream{0}, pool);
    EXPECT_FALSE(block->is_expandable);
    EXPECT_EQ(log.given, (std::vector<std::uint64_t>{block->address, small->address}));
    EXPECT_EQ(device.used_bytes(), 0u);
    EXPECT_EQ(allocator.stats().reserved_bytes.all().current, static_cast<std::int64_t>(32 * kMiB));
    allocator.Free(block);
    EXPECT_EQ(*allocator.Allocate(30 * kMiB, Stream{0}, pool), block) << "it is cached";
    allocator.Free(block);
    EXPECT_NE((*allocator.Allocate(30 * kMiB, Stream{0}))->address, log.given[0]) << "others have the device's";
    allocator.ReleasePool(pool);
    allocator.EmptyCache();
    EXPECT_EQ(log.taken, (std::vector<std::uint64_t>{log.given[0]}));
    EXPECT_FALSE(log.is_gone) << "a block lives";
    allocator.Free(small);
    allocator.EmptyCache();
    EXPECT_EQ(log.taken, log.given);
    EXPECT_TRUE(log.is_gone);
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  }
}

TEST(PoolsTest, MemoryOfItsOwnMayRunOut) {
  device::SimDevice device({});
  BankMemory::Log log{.is_empty = true};
  CachingAllocator allocator(&device, policy::Options{});
  ASSERT_EQ(allocator.SetPoolMemory(kGraph, std::make_shared<BankMemory>(log)), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(allocator.Allocate(kMiB, Stream{0}, kGraph).status()));
  EXPECT_TRUE(allocator.Allocate(kMiB, Stream{0}).ok());
  log.is_empty = false;
  EXPECT_TRUE(allocator.Allocate(kMiB, Stream{0}, kGraph).ok());
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
}

TEST(PoolsTest, MemoryComesFromOnePlace) {
  device::SimDevice device({});
  BankMemory::Log log;
  CachingAllocator allocator(&device, policy::Options{});
  const auto set = [&](PoolId pool) { return allocator.SetPoolMemory(pool, std::make_shared<BankMemory>(log)).code(); };
  EXPECT_EQ(set({}), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(allocator.TagPool({0, 1}, "tagged").ok());
  EXPECT_EQ(set({0, 1}), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(allocator.Allocate(1, Stream{0}, {0, 2}).ok());
  EXPECT_EQ(set({0, 2}), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(set({0, 3}), absl::StatusCode::kOk);
  EXPECT_EQ(set({0, 3}), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator.TagPool({0, 3}, "late")));
}

// The same over CUDA's calls: memory is obtained in relaxed capture mode, and leftovers wait.
TEST(PoolsTest, CudaCallsBreakNoCapture) {
  device::FakeCuda cuda({.capacity_bytes = 64 * kMiB});
  const std::unique_ptr<device::CudaDevice> device = *device::CudaDevice::Open({.ordinal = 0});
  cuda.MakeCurrent(cuda.ContextOf(0));
  CachingAllocator allocator(device.get(), policy::Options{});
  allocator.Free(*allocator.Allocate(20 * kMiB, Stream{5}));
  cuda.FailWork(0, 999);
  allocator.EmptyCache();
  ASSERT_EQ(cuda.failed_call(), "cuMemFree");
  ASSERT_TRUE(allocator.BeginPool(kGraph, Only(Stream{0}), RouteKind::kCapture).ok());
  cuda.SetCapturing(true);
  Block* block = *allocator.Allocate(20 * kMiB, Stream{0});
  allocator.RecordStream(block, Stream{5});
  allocator.Free(block);
  EXPECT_TRUE(absl::IsResourceExhausted(allocator.Allocate(40 * kMiB, Stream{0}).status()));
  EXPECT_EQ(device->unreturned_bytes(), 20 * kMiB);
  cuda.SetCapturing(false);
  ASSERT_TRUE(allocator.EndPool(kGraph).ok());
  EXPECT_TRUE(allocator.Allocate(40 * kMiB, Stream{0}).ok());
  EXPECT_EQ(device->unreturned_bytes(), 0u);
}

}  // namespace
}  // namespace ashlar::core
