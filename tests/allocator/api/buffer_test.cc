#include "ashlar/buffer.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ashlar/devices.h"

namespace ashlar {
namespace {

class BufferTest : public testing::Test {
 protected:
  Buffer Take(std::uint64_t bytes) {
    absl::StatusOr<Buffer> buffer = Buffer::Make(allocator_, bytes, Stream{3});
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    return *std::move(buffer);
  }
  std::int64_t Live() { return allocator_.stats().allocation.all().current; }

  std::unique_ptr<Device> device_ = MakeSimulatedDevice({.capacity_bytes = kGiB});
  Allocator allocator_{device_.get()};
};

TEST_F(BufferTest, ItsEndFreesTheBlock) {
  {
    const Buffer buffer = Take(1000);
    EXPECT_TRUE(buffer);
    EXPECT_EQ(buffer.size_bytes(), 1000u);
    EXPECT_EQ(buffer.stream(), Stream{3});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()), buffer.address());
    EXPECT_EQ(Live(), 1);
  }
  EXPECT_EQ(Live(), 0);
}

TEST_F(BufferTest, AMovedOneIsFreedOnce) {
  Buffer first = Take(1000);
  const std::uint64_t address = first.address();
  Buffer second = std::move(first);
  EXPECT_FALSE(first);
  EXPECT_EQ(second.address(), address);
  Buffer third = Take(2000);
  third = std::move(second);
  EXPECT_EQ(Live(), 1);
  EXPECT_EQ(third.address(), address);
  EXPECT_EQ(third.size_bytes(), 1000u);
  Buffer& self = third;
  third = std::move(self);
  EXPECT_EQ(third.address(), address);
  EXPECT_EQ(Live(), 1);
}

TEST_F(BufferTest, AContainerOfThemIsFreed) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 100; ++i) buffers.push_back(Take(1000));
  EXPECT_EQ(Live(), 100);
  buffers.erase(buffers.begin(), buffers.begin() + 50);
  EXPECT_EQ(Live(), 50);
  buffers.clear();
  EXPECT_EQ(Live(), 0);
}

TEST_F(BufferTest, ReleaseHandsTheBlockOver) {
  Buffer buffer = Take(1000);
  const Block block = buffer.Release();
  EXPECT_FALSE(buffer);
  EXPECT_EQ(buffer.size_bytes(), 0u);
  buffer.Reset();
  EXPECT_EQ(Live(), 1);
  allocator_.Free(block);
  EXPECT_EQ(Live(), 0);
}

TEST_F(BufferTest, AnEmptyOneIsNothing) {
  Buffer none;
  none.RecordStream(Stream{7});
  none.Reset();
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_FALSE(Take(0));
  EXPECT_EQ(Live(), 0);
}

TEST_F(BufferTest, ItIsReleasedInTheOrderOfTheRecordedStreams) {
  std::uint64_t address = 0;
  {
    Buffer buffer = Take(20 * kMiB);
    address = buffer.address();
    buffer.RecordStream(Stream{7});
  }
  EXPECT_NE(Take(20 * kMiB).address(), address);
  ASSERT_TRUE(device_->SynchronizeStream(Stream{7}).ok());
  allocator_.EmptyCache();
  EXPECT_EQ(Take(20 * kMiB).address(), address);
}

TEST_F(BufferTest, ItsErrorIsTheAllocators) {
  EXPECT_TRUE(absl::IsResourceExhausted(Buffer::Make(allocator_, 2 * kGiB, Stream{0}).status()));
}

}  // namespace
}  // namespace ashlar
