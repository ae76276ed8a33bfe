#include "ashlar/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "allocator/device/sim_device.h"

namespace ashlar {
namespace {

TEST(ErrorsTest, OutOfMemoryIsABadAllocWithTheReport) {
  device::SimDevice device({.capacity_bytes = 64 * kMiB});
  Allocator allocator(&device);
  allocator.Free(AllocateOrThrow(allocator, 300, Stream{0}));
  const std::string text(allocator.Allocate(kGiB, Stream{0}).status().message());
  EXPECT_THAT(text, testing::HasSubstr("\nverdict: capacity"));
  try {
    AllocateOrThrow(allocator, kGiB, Stream{0});
    FAIL() << "1 GiB of 64 MiB";
  } catch (const std::bad_alloc& error) {
    EXPECT_EQ(error.what(), text);
    EXPECT_NE(dynamic_cast<const OutOfMemoryError*>(&error), nullptr);
  }
}

TEST(ErrorsTest, ADeviceErrorIsNoBadAlloc) {
  device::SimDevice device({.capacity_bytes = 64 * kMiB});
  Allocator allocator(&device);
  device.FailCall(0, absl::InternalError("cudaErrorIllegalAddress"));
  try {
    AllocateOrThrow(allocator, 300, Stream{0});
    FAIL() << "the device failed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cudaErrorIllegalAddress"));
  }
}

}  // namespace
}  // namespace ashlar
