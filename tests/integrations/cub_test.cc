#include "ashlar/cub.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "tests/integrations/integration_contract.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;
const cudaStream_t kOther = reinterpret_cast<cudaStream_t>(std::uintptr_t{64});

// A number that says out of memory, as what the suite catches.
class NoMemory : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  const std::string text_ = ashlar_last_error();
};

struct CubIntegration {
  static constexpr bool kZeroBytesAreNull = false;
  explicit CubIntegration(SharedAllocator its) : allocator(its), cub(std::move(its)) {}
  void* Allocate(std::size_t bytes, std::size_t) {
    void* memory = nullptr;
    const cudaError_t error = cub.DeviceAllocate(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) throw NoMemory();
    EXPECT_EQ(error, cudaSuccess);
    return memory;
  }
  void Free(void* memory, std::size_t, std::size_t) { EXPECT_EQ(cub.DeviceFree(memory), cudaSuccess); }
  bool Equals(const CubIntegration& other) const { return allocator == other.allocator; }
  SharedAllocator allocator;
  CachingDeviceAllocator cub;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Cub, IntegrationContractTest, CubIntegration);

class CachingDeviceAllocatorTest : public testing::Test {
 protected:
  void* Allocate(std::size_t bytes, cudaStream_t stream = nullptr) {
    void* memory = nullptr;
    EXPECT_EQ(cub_.DeviceAllocate(&memory, bytes, stream), cudaSuccess);
    return memory;
  }

  SharedAllocator allocator_ = SharedAllocator::OpenSimulated(64 * kMiB);
  CachingDeviceAllocator cub_ = CachingDeviceAllocator(allocator_);
};

TEST_F(CachingDeviceAllocatorTest, AFreedBlockIsTheSameStreamsAtOnceAndNoOthers) {
  void* const first = Allocate(999);
  EXPECT_EQ(cub_.DeviceFree(first), cudaSuccess);
  EXPECT_NE(Allocate(999, kOther), first);
  EXPECT_EQ(Allocate(999), first);
}

TEST_F(CachingDeviceAllocatorTest, AFreeAboveTheLimitReturnsWhatIsWhole) {
  cub_.SetMaxCachedBytes(30 * kMiB);
  void* const small = Allocate(20 * kMiB);
  void* const large = Allocate(40 * kMiB);
  EXPECT_EQ(cub_.DeviceFree(small), cudaSuccess);
  EXPECT_EQ(cub_.CachedBytes(), 20 * kMiB);
  EXPECT_EQ(cub_.LiveBytes(), 40 * kMiB);
  EXPECT_EQ(cub_.DeviceFree(large), cudaSuccess);
  EXPECT_EQ(cub_.CachedBytes(), 0);
  EXPECT_EQ(allocator_.Statistics().reserved_bytes, 0);
}

TEST_F(CachingDeviceAllocatorTest, FreeAllCachedLeavesWhatLives) {
  void* const live = Allocate(20 * kMiB);
  EXPECT_EQ(cub_.DeviceFree(Allocate(30 * kMiB)), cudaSuccess);
  EXPECT_EQ(cub_.CachedBytes(), 30 * kMiB);
  EXPECT_EQ(cub_.FreeAllCached(), cudaSuccess);
  EXPECT_EQ(cub_.CachedBytes(), 0);
  EXPECT_EQ(cub_.LiveBytes(), 20 * kMiB);
  EXPECT_EQ(cub_.DeviceFree(live), cudaSuccess);
}

TEST_F(CachingDeviceAllocatorTest, AFullDeviceGivesTheCacheBackBeforeItRefuses) {
  EXPECT_EQ(cub_.DeviceFree(Allocate(40 * kMiB, kOther)), cudaSuccess);
  EXPECT_NE(Allocate(50 * kMiB), nullptr);
  void* memory = &memory;
  EXPECT_EQ(cub_.DeviceAllocate(&memory, 50 * kMiB), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("50.00 MiB requested"));
  EXPECT_NE(Allocate(10 * kMiB), nullptr);
}

TEST_F(CachingDeviceAllocatorTest, WhatIsWrongIsANumber) {
  void* memory = nullptr;
  EXPECT_EQ(cub_.DeviceAllocate(&memory, 100, cudaStreamPerThread), cudaErrorNotSupported);
  EXPECT_EQ(cub_.DeviceFree(&memory), cudaErrorInvalidValue);
  EXPECT_EQ(cub_.DeviceFree(nullptr), cudaSuccess);
}

TEST_F(CachingDeviceAllocatorTest, TheDestructorReturnsTheCacheUnlessTold) {
  void* memory = nullptr;
  {
    CachingDeviceAllocator cub(allocator_);
    EXPECT_EQ(cub.DeviceAllocate(&memory, 10 * kMiB), cudaSuccess);
    EXPECT_EQ(cub.DeviceFree(memory), cudaSuccess);
    EXPECT_GT(cub.CachedBytes(), 0);
  }
  EXPECT_EQ(allocator_.Statistics().reserved_bytes, 0);
}

TEST(CachingDeviceAllocatorMakersTest, AreCubs) {
  const CachingDeviceAllocator plain;
  const CachingDeviceAllocator quiet(true);
  const CachingDeviceAllocator talking(true, true);
  const CachingDeviceAllocator binned(8u, 3u, 7u, 6 * kMiB - 1, true);
  const CachingDeviceAllocator by_growth(2u);
  EXPECT_EQ(CachingDeviceAllocator::INVALID_BIN, ~0u);
  EXPECT_EQ(CachingDeviceAllocator::INVALID_SIZE, ~std::size_t{0});
}

}  // namespace
}  // namespace ashlar
