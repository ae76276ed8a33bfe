#include "allocator/core/inspect.h"

#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

// What one look sees is one moment, and the same as the public calls say.
TEST(InspectionTest, ALookIsOneMoment) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, *policy::ParseConf("expandable_segments:True", policy::Compat::kTorch210));
  allocator.SetMemoryLimit(kGiB);
  ASSERT_TRUE(allocator.Allocate(2 * kMiB, Stream{0}).ok());
  ASSERT_TRUE(allocator.Allocate(512, Stream{1}).ok());
  const Inspection inspection(allocator);
  std::vector<trace::SnapshotSegment> segments;
  inspection.WhileStill([&] {
    segments = inspection.SegmentsNow();
    EXPECT_EQ(inspection.ReservationsNow().size(), 2u);
    EXPECT_EQ(inspection.StartNow().segments.size(), 2u);
    EXPECT_EQ(inspection.LimitNow(), std::uint64_t{kGiB});
    EXPECT_TRUE(inspection.PoolsNow().empty());
    EXPECT_EQ(inspection.HeadNow(0).recording->limit_bytes, std::uint64_t{kGiB});
  });
  EXPECT_EQ(segments, allocator.Segments());
  EXPECT_EQ(inspection.heap().segments().size(), 2u);
  EXPECT_EQ(inspection.path_costs().arenas, 2u);
}

// A segment that is put together serves and is freed as one that was allocated.
TEST(ReconstructionTest, ARestoredSegmentServes) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  const std::uint64_t address = *device.AllocateSegment(20 * kMiB);
  const std::vector<policy::Block*> blocks = Reconstruction(allocator).RestoreSegment(
      {0, Stream{4}, {}}, false, false, address,
      {{8 * kMiB, 8 * kMiB, policy::BlockUse::kLive}, {12 * kMiB, 0, policy::BlockUse::kFree}});
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  const absl::StatusOr<Block*> block = allocator.Allocate(12 * kMiB, Stream{4});
  ASSERT_TRUE(block.ok());
  EXPECT_EQ((*block)->address, address + 8 * kMiB);
  allocator.Free(*block);
  allocator.Free(blocks[0]);
  allocator.EmptyCache();
  EXPECT_EQ(device.used_bytes(), 0u);
}

// A request that was searched for before finds nothing in the cache, though it is there.
TEST(ReconstructionTest, AMissedRequestIsNotSearchedFor) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  allocator.Free(*allocator.Allocate(2 * kMiB, Stream{0}));
  const absl::StatusOr<Block*> block = Reconstruction(allocator).AllocateMissed(2 * kMiB, Stream{0}, PoolId{});
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(device.calls().segment_alloc, 2u);
  allocator.Free(*block);
}

TEST(ReconstructionTest, ASearchMakesWhatIsFreeOlder) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, policy::Options{});
  Reconstruction reconstruction(allocator);
  reconstruction.CountSearch();
  reconstruction.CountSearch();
  EXPECT_EQ(Inspection(allocator).heap().default_pair().large.clock, 2u);
  EXPECT_EQ(Inspection(allocator).heap().default_pair().small.clock, 0u);
}

}  // namespace
}  // namespace ashlar::core
