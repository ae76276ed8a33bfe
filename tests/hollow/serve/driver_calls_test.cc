// The driver's calls in the serving library, linked before a fake driver that is stricter than the real one: which
// calls reach it, what becomes of its errors, and that contexts are left as they were found.
#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "gtest/gtest.h"
#include "tests/fake_cuda/fake_cuda.h"

extern "C" {
int cuMemAlloc_v2(void** pointer, std::size_t bytes);
int cuMemFree_v2(void* pointer);
int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes);
int cuDevicePrimaryCtxRetain(void** context, int device);
}

namespace ashlar {
namespace {

using device::FakeCuda;

constexpr int kFirstDeviceId = 0xd0;  // of the fake: no ordinal

// One for the whole program: the allocator of the process is never closed.
FakeCuda& World() {
  static FakeCuda& world = *new FakeCuda({.device_count = 2});
  return world;
}

class DriverCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    World();
    for (const int device : {0, 1}) {
      void* context = nullptr;
      ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, kFirstDeviceId + device), 0);
    }
    World().MakeCurrent(FakeCuda::ContextOf(0));
  }
  static void* Grab(std::size_t bytes) {
    void* out = nullptr;
    EXPECT_EQ(cuMemAlloc_v2(&out, bytes), 0);
    return out;
  }
};

TEST_F(DriverCallsTest, OnlyTheFirstRequestReachesTheDriver) {
  ASSERT_EQ(cuMemFree_v2(Grab(3 * kMiB)), 0);
  const std::uint64_t allocations = World().calls_of("cuMemAlloc"), waits = World().calls_of("cuCtxSynchronize");
  for (int turn = 0; turn < 10; ++turn) ASSERT_EQ(cuMemFree_v2(Grab(3 * kMiB)), 0);
  EXPECT_EQ(World().calls_of("cuMemAlloc"), allocations);
  EXPECT_EQ(World().calls_of("cuMemFree"), 0u);
  EXPECT_EQ(World().calls_of("cuCtxSynchronize"), waits + 10) << "each free waits for the device";
}

TEST_F(DriverCallsTest, WhereTheWaitFailsTheBlockIsKept) {
  void* block = Grab(3 * kMiB);
  World().FailWork(0, 700);  // what a kernel left: an illegal address
  EXPECT_EQ(cuMemFree_v2(block), 700);
  EXPECT_EQ(World().failed_call(), "cuCtxSynchronize");
  World().StopFailing();
  void* other = Grab(3 * kMiB);
  EXPECT_NE(other, block) << "it is live";
  EXPECT_EQ(cuMemFree_v2(block), 0);
  EXPECT_EQ(cuMemFree_v2(other), 0);
}

TEST_F(DriverCallsTest, WhatDoesNotFitGetsTheDriversError) {
  void* pointer = nullptr;
  EXPECT_EQ(cuMemAlloc_v2(&pointer, 2 * kGiB), 2);
  void* large = Grab(900 * kMiB);  // the cache goes back for it
  EXPECT_EQ(cuMemFree_v2(large), 0);
}

TEST_F(DriverCallsTest, WhatIsCachedCountsAsFree) {
  std::size_t before = 0, meanwhile = 0, after = 0, total = 0;
  ASSERT_EQ(cuMemFree_v2(Grab(40 * kMiB)), 0);
  EXPECT_EQ(cuMemGetInfo_v2(&before, &total), 0);
  EXPECT_EQ(total, kGiB);
  void* block = Grab(40 * kMiB);
  EXPECT_EQ(cuMemGetInfo_v2(&meanwhile, &total), 0);
  EXPECT_EQ(before - meanwhile, 40 * kMiB);
  EXPECT_EQ(cuMemFree_v2(block), 0);
  EXPECT_EQ(cuMemGetInfo_v2(&after, &total), 0);
  EXPECT_EQ(after, before);
  EXPECT_EQ(after, kGiB);
}

TEST_F(DriverCallsTest, EachContextHasItsDevice) {
  World().MakeCurrent(FakeCuda::ContextOf(1));
  void* second = Grab(3 * kMiB);
  EXPECT_GE(World().used_bytes(1), 3 * kMiB);
  World().MakeCurrent(FakeCuda::ContextOf(0));
  const std::uint64_t waits = World().calls_of("cuCtxSynchronize");
  EXPECT_EQ(cuMemFree_v2(second), 0);
  EXPECT_EQ(World().calls_of("cuCtxSynchronize"), waits + 1);
  EXPECT_EQ(World().current(), FakeCuda::ContextOf(0)) << "as it was";
  World().MakeCurrent(FakeCuda::ContextOf(1));
  EXPECT_EQ(Grab(3 * kMiB), second);
  EXPECT_EQ(cuMemFree_v2(second), 0);
}

}  // namespace
}  // namespace ashlar
