#include "hollow/model/device_model.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/hollow/one_device.h"
#include "tests/hollow/ranks.h"

namespace ashlar::hollow {
namespace {

using test::kFirstAddress;
using test::OneDevice;

TEST(DeviceModelTest, AContextIsChargedOnce) {
  OneDevice machine(100 * kMiB);
  DeviceModel& device = machine.device();
  EXPECT_EQ(device.FreeBytes(), 100 * kMiB);
  EXPECT_EQ(device.UseContext(), Error::kNone);
  EXPECT_EQ(device.UseContext(), Error::kNone);
  EXPECT_EQ(device.UsedBytes(), 10 * kMiB);
  EXPECT_EQ(device.FreeBytes(), 90 * kMiB);
  OneDevice tiny(9 * kMiB);
  EXPECT_EQ(tiny.device().UseContext(), Error::kOutOfMemory);
  EXPECT_FALSE(tiny.device().has_context());
  EXPECT_EQ(tiny.device().out_of_memory_count(), 1U);
}

TEST(DeviceModelTest, SizesAreRoundedUpAndSmallOnesShareAPage) {
  OneDevice machine(16 * kMiB);
  DeviceModel& device = machine.device();
  std::uint64_t large = 0, small = 0, smaller = 0;
  ASSERT_EQ(device.Allocate(2 * kMiB + 1, &large), Error::kNone);
  EXPECT_EQ(large, kFirstAddress);
  EXPECT_EQ(device.UsedBytes(), 4 * kMiB);
  ASSERT_EQ(device.Allocate(1000, &small), Error::kNone);
  ASSERT_EQ(device.Allocate(1, &smaller), Error::kNone);
  EXPECT_EQ(small, kFirstAddress + 4 * kMiB);
  EXPECT_EQ(smaller, small + 1024);
  EXPECT_EQ(device.UsedBytes(), 6 * kMiB);
  EXPECT_EQ(device.Free(small), Error::kNone);
  EXPECT_EQ(device.UsedBytes(), 6 * kMiB);
  EXPECT_EQ(device.Free(smaller), Error::kNone);
  EXPECT_EQ(device.UsedBytes(), 4 * kMiB);
  EXPECT_EQ(device.Free(smaller), Error::kInvalidValue);
  EXPECT_EQ(device.Free(large), Error::kNone);
  EXPECT_EQ(device.UsedBytes(), 0U);
}

TEST(DeviceModelTest, ARefusedCallChangesNothing) {
  OneDevice machine(8 * kMiB);
  DeviceModel& device = machine.device();
  std::uint64_t first = 0;
  ASSERT_EQ(device.Allocate(6 * kMiB, &first), Error::kNone);
  std::uint64_t none = 7;
  EXPECT_EQ(device.Allocate(4 * kMiB, &none), Error::kOutOfMemory);
  EXPECT_EQ(device.Allocate(~std::uint64_t{0}, &none), Error::kOutOfMemory);
  EXPECT_EQ(none, 7U);
  EXPECT_EQ(device.UsedBytes(), 6 * kMiB);
  EXPECT_EQ(device.out_of_memory_count(), 2U);
  EXPECT_EQ(device.Allocate(2 * kMiB, &none), Error::kNone);
  EXPECT_EQ(device.Allocate(1, &none), Error::kOutOfMemory) << "no page for a small one";
  EXPECT_EQ(device.out_of_memory_count(), 3U);
  EXPECT_EQ(device.Charge(1), Error::kOutOfMemory);
}

TEST(DeviceModelTest, LessMemoryThanIsInUseLeavesNoneFree) {
  OneDevice machine(8 * kMiB);
  DeviceModel& device = machine.device();
  std::uint64_t address = 0;
  ASSERT_EQ(device.Allocate(6 * kMiB, &address), Error::kNone);
  device.SetTotal(4 * kMiB);
  EXPECT_EQ(device.FreeBytes(), 0U);
  EXPECT_EQ(device.total_bytes(), 4 * kMiB);
  EXPECT_EQ(device.Allocate(2 * kMiB, &address), Error::kOutOfMemory);
  device.SetTotal(10 * kMiB);
  EXPECT_EQ(device.Allocate(4 * kMiB, &address), Error::kNone);
}

TEST(DeviceModelTest, AContextTakesItsMemoryAlong) {
  OneDevice machine(100 * kMiB);
  DeviceModel& device = machine.device();
  std::uint64_t address = 0;
  ASSERT_EQ(device.UseContext(), Error::kNone);
  ASSERT_EQ(device.Allocate(6 * kMiB, &address), Error::kNone);
  ASSERT_EQ(device.Allocate(6, &address), Error::kNone);
  ASSERT_EQ(device.Charge(4 * kMiB), Error::kNone);
  EXPECT_EQ(device.UsedBytes(), 22 * kMiB);
  device.DropContext();
  EXPECT_FALSE(device.has_context());
  EXPECT_EQ(device.UsedBytes(), 0U);
  ASSERT_EQ(device.Allocate(6, &address), Error::kNone);
  EXPECT_EQ(address, kFirstAddress);
}

TEST(DeviceModelTest, AddressesDescendWhereAsked) {
  OneDevice machine(100 * kMiB, 1, device::AddressOrder::kDescending);
  std::uint64_t first = 0, second = 0;
  ASSERT_EQ(machine.device().Allocate(4 * kMiB, &first), Error::kNone);
  ASSERT_EQ(machine.device().Allocate(2 * kMiB, &second), Error::kNone);
  EXPECT_EQ(first, test::kFirstReservation - 4 * kMiB);
  EXPECT_EQ(second, first - 2 * kMiB);
}

TEST(DeviceModelTest, TheDriversOwnTakesAddressesAndNoMemory) {
  OneDevice machine(kGiB, 1, device::AddressOrder::kDriver);
  DeviceModel& device = machine.device();
  constexpr std::uint64_t kContext = test::kFirstReservation - 512 * kMiB;
  std::uint64_t first = 0, segment = 0;
  ASSERT_EQ(device.Allocate(2 * kMiB, &first), Error::kNone);
  EXPECT_EQ(first, kContext + 414 * kMiB);
  std::vector<std::uint64_t> streams;
  for (int i = 0; i < 12; ++i) streams.push_back(device.HoldForStream());
  const std::uint64_t cublas = device.HoldForCublas();
  ASSERT_EQ(device.Allocate(20 * kMiB, &segment), Error::kNone);
  EXPECT_EQ(segment, kContext + 66 * kMiB)
      << "twelve streams are below the context's region, cuBLAS's 2 and 64 MiB in it";
  device.ReturnHold(cublas);
  device.ReturnHold(cublas);  // none any more
  ASSERT_EQ(device.Allocate(20 * kMiB, &segment), Error::kNone);
  EXPECT_EQ(segment, kContext);
  device.ReturnHold(streams[5]);  // holds nothing
  device.ReturnHold(streams[4]);
  ASSERT_EQ(device.Allocate(2 * kMiB, &segment), Error::kNone);
  EXPECT_EQ(segment, kContext - 4 * kMiB);
  EXPECT_EQ(device.UsedBytes(), 44 * kMiB);
}

TEST(DeviceModelTest, OtherOrdersHaveNoDriver) {
  OneDevice machine(kGiB);
  std::uint64_t segment = 0;
  machine.device().ReturnHold(machine.device().HoldForCublas());
  machine.device().HoldForStream();
  ASSERT_EQ(machine.device().Allocate(2 * kMiB, &segment), Error::kNone);
  EXPECT_EQ(segment, kFirstAddress);
}

TEST(DeviceModelTest, WhatIsInUseBesideTheRunLeavesLess) {
  SharedMachine shared("", 1);
  FailurePlan failures;
  DeviceModel device({.total_bytes = 100 * kMiB,
                      .in_use_bytes = 60 * kMiB,
                      .base_address = test::kFirstAddress,
                      .span_bytes = test::kSpan},
                     shared, failures);
  EXPECT_EQ(device.total_bytes(), 100 * kMiB);
  EXPECT_EQ(device.FreeBytes(), 40 * kMiB);
  std::uint64_t address = 0;
  EXPECT_EQ(device.Allocate(42 * kMiB, &address), Error::kOutOfMemory);
  EXPECT_EQ(device.Allocate(40 * kMiB, &address), Error::kNone);
  EXPECT_EQ(device.UsedBytes(), 100 * kMiB);
}

TEST(DeviceModelTest, OtherProcessesLeaveLess) {
  const test::RunFolder folder;
  OneDevice machine(100 * kMiB, 1, device::AddressOrder::kAscending, folder.path());
  std::uint64_t address = 0;
  ASSERT_EQ(machine.device().Allocate(30 * kMiB, &address), Error::kNone);
  const auto codes = test::RunRanks(1, [&](int) {
    OneDevice other(100 * kMiB, 1, device::AddressOrder::kAscending, folder.path());
    std::uint64_t own = 0;
    EXPECT_EQ(other.device().FreeBytes(), 70 * kMiB);
    EXPECT_EQ(other.device().Allocate(72 * kMiB, &own), Error::kOutOfMemory);
    EXPECT_EQ(other.device().Allocate(70 * kMiB, &own), Error::kNone);
    EXPECT_EQ(other.device().UsedBytes(), 100 * kMiB);
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);  // it dies without a word
  });
  EXPECT_EQ(codes, std::vector<int>{0});
  EXPECT_EQ(machine.device().Allocate(70 * kMiB, &address), Error::kNone) << "what the dead one had is free again";
}

TEST(FailurePlanTest, TheNthCallFailsOnce) {
  OneDevice machine(100 * kMiB);
  DeviceModel& device = machine.device();
  std::uint64_t address = 0;
  machine.failures.fail_call = 3;
  EXPECT_EQ(device.UseContext(), Error::kNone) << "a context is no call of these";
  EXPECT_EQ(device.Allocate(2 * kMiB, &address), Error::kNone);
  EXPECT_EQ(device.Allocate(16, &address), Error::kNone) << "with a page of its own: still one call";
  EXPECT_EQ(device.Allocate(16, &address), Error::kOutOfMemory);
  EXPECT_EQ(device.Allocate(16, &address), Error::kNone);
  EXPECT_EQ(device.out_of_memory_count(), 1U);
  machine.failures.fail_call = 2;
  EXPECT_EQ(device.Charge(kMiB), Error::kNone);
  EXPECT_EQ(device.Charge(kMiB), Error::kOutOfMemory);
  EXPECT_EQ(device.Charge(kMiB), Error::kNone);
}

TEST(FailurePlanTest, TheNthRequestFailsWithItsRepeats) {
  OneDevice machine(100 * kMiB);
  DeviceModel& device = machine.device();
  std::uint64_t address = 0;
  const auto allocate = [&](std::uint64_t bytes) { return device.Allocate(bytes, &address); };
  machine.failures.fail_request = 2;
  EXPECT_EQ(allocate(2 * kMiB), Error::kNone);
  for (int time = 0; time < 3; ++time) EXPECT_EQ(allocate(4 * kMiB), Error::kOutOfMemory) << time;
  EXPECT_EQ(allocate(4 * kMiB), Error::kNone) << "two repeats, and no more";
  machine.failures.fail_request = 1;
  EXPECT_EQ(device.Charge(kMiB), Error::kOutOfMemory);
  EXPECT_EQ(device.Charge(2 * kMiB), Error::kNone) << "another size is another request";
  EXPECT_EQ(device.Charge(kMiB), Error::kNone) << "which ends the repeats";
  EXPECT_EQ(device.out_of_memory_count(), 4U);
}

TEST(FailurePlanTest, CallsFailWhileSoMuchIsInUse) {
  OneDevice machine(100 * kMiB);
  DeviceModel& device = machine.device();
  machine.failures.fail_after_bytes = 4 * kMiB;
  std::uint64_t first = 0, second = 0;
  EXPECT_EQ(device.Allocate(2 * kMiB, &first), Error::kNone);
  EXPECT_EQ(device.Allocate(20 * kMiB, &second), Error::kNone) << "before it, less was in use";
  EXPECT_EQ(device.Allocate(1, &first), Error::kOutOfMemory);
  EXPECT_EQ(device.Charge(1), Error::kOutOfMemory);
  EXPECT_EQ(device.Free(second), Error::kNone);
  EXPECT_EQ(device.Allocate(1, &second), Error::kNone);
}

}  // namespace
}  // namespace ashlar::hollow
