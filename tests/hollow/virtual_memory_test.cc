#include "hollow/model/virtual_memory.h"

#include <gtest/gtest.h>

#include "tests/hollow/one_device.h"

namespace ashlar::hollow {
namespace {

using test::kFirstReservation;
using test::OneDevice;

constexpr std::uint64_t kVmPage = 2 * kMiB;

class VirtualMemoryTest : public testing::Test {
 protected:
  std::uint64_t Create(std::uint64_t pages, int device = 0) {
    std::uint64_t handle = 0;
    EXPECT_EQ(memory_.Create(device, pages * kVmPage, &handle), Error::kNone);
    return handle;
  }
  std::uint64_t Reserve(std::uint64_t pages, int device = 0) {
    std::uint64_t address = 0;
    EXPECT_EQ(memory_.Reserve(device, pages * kVmPage, 0, &address), Error::kNone);
    return address;
  }
  std::uint64_t used(int device = 0) { return machine_.all[device]->UsedBytes(); }

  OneDevice machine_{32 * kMiB, 2};
  VirtualMemory& memory_ = machine_.memory;
};

TEST_F(VirtualMemoryTest, SizesArePages) {
  std::uint64_t out = 0;
  EXPECT_EQ(memory_.Create(0, 0, &out), Error::kInvalidValue);
  EXPECT_EQ(memory_.Create(0, kVmPage + 1, &out), Error::kInvalidValue);
  EXPECT_EQ(memory_.Reserve(0, 0, 0, &out), Error::kInvalidValue);
  EXPECT_EQ(memory_.Reserve(0, kVmPage, 3 * kVmPage, &out), Error::kInvalidValue) << "no power of two";
  EXPECT_EQ(memory_.Reserve(0, kVmPage, 0, &out), Error::kNone);
  EXPECT_EQ(out, kFirstReservation);
  EXPECT_EQ(memory_.Reserve(0, kVmPage, 16 * kVmPage, &out), Error::kNone);
  EXPECT_EQ(out % (16 * kVmPage), 0U);
  EXPECT_EQ(memory_.Reserve(0, std::uint64_t{1} << 50, 0, &out), Error::kOutOfMemory);
}

// The two orders in which a handle is released and unmapped; memory is back after both, not after one.
TEST_F(VirtualMemoryTest, MemoryIsBackWhenReleasedAndUnmapped) {
  for (const bool released_first : {true, false}) {
    const std::uint64_t handle = Create(2);
    const std::uint64_t address = Reserve(2);
    EXPECT_EQ(used(), 2 * kVmPage);
    ASSERT_EQ(memory_.Map(address, 2 * kVmPage, 0, handle), Error::kNone);
    EXPECT_EQ(released_first ? memory_.Release(handle) : memory_.Unmap(address, 2 * kVmPage), Error::kNone);
    EXPECT_EQ(used(), 2 * kVmPage);
    EXPECT_EQ(released_first ? memory_.Unmap(address, 2 * kVmPage) : memory_.Release(handle), Error::kNone);
    EXPECT_EQ(used(), 0U);
    EXPECT_EQ(memory_.Release(handle), Error::kInvalidValue);
    EXPECT_EQ(memory_.FreeReservation(address, 2 * kVmPage), Error::kNone);
  }
}

TEST_F(VirtualMemoryTest, AHandleIsMappedAsOftenAsOneLikes) {
  const std::uint64_t handle = Create(2);
  const std::uint64_t address = Reserve(4);
  EXPECT_EQ(memory_.Map(address, kVmPage, kVmPage, handle), Error::kNone);
  EXPECT_EQ(memory_.Map(address + kVmPage, 2 * kVmPage, 0, handle), Error::kNone);
  EXPECT_EQ(used(), 2 * kVmPage) << "it is charged once";
  EXPECT_EQ(memory_.Map(address, kVmPage, 0, handle), Error::kInvalidValue) << "something is mapped there";
  EXPECT_EQ(memory_.Map(address + 3 * kVmPage, 2 * kVmPage, 0, handle), Error::kInvalidValue) << "beyond the end";
  EXPECT_EQ(memory_.Map(address + 3 * kVmPage, kVmPage, 2 * kVmPage, handle), Error::kInvalidValue);
  EXPECT_EQ(memory_.Map(address + 3 * kVmPage, kVmPage, 0, handle + 1), Error::kInvalidValue);
  EXPECT_EQ(memory_.FreeReservation(address, 4 * kVmPage), Error::kInvalidValue) << "memory lies in it";
  EXPECT_EQ(memory_.Release(handle), Error::kNone);
  EXPECT_EQ(memory_.Map(address + 3 * kVmPage, kVmPage, 0, handle), Error::kInvalidValue) << "released";
  EXPECT_EQ(memory_.Unmap(address, kVmPage), Error::kNone);
  EXPECT_EQ(used(), 2 * kVmPage);
  EXPECT_EQ(memory_.Unmap(address + kVmPage, 2 * kVmPage), Error::kNone);
  EXPECT_EQ(used(), 0U);
}

TEST_F(VirtualMemoryTest, UnmapAndAccessTakeWholeMappings) {
  const std::uint64_t first = Create(2), second = Create(1);
  const std::uint64_t address = Reserve(8);
  ASSERT_EQ(memory_.Map(address, 2 * kVmPage, 0, first), Error::kNone);
  ASSERT_EQ(memory_.Map(address + 2 * kVmPage, kVmPage, 0, second), Error::kNone);
  EXPECT_EQ(memory_.Unmap(address, kVmPage), Error::kInvalidValue) << "half of one";
  EXPECT_EQ(memory_.Unmap(address, 0), Error::kInvalidValue);
  EXPECT_EQ(memory_.Unmap(address + kVmPage, 2 * kVmPage), Error::kInvalidValue);
  EXPECT_EQ(memory_.Unmap(1, kVmPage), Error::kInvalidValue) << "nobody's";
  EXPECT_EQ(memory_.Unmap(address + 4 * kVmPage, kVmPage), Error::kNone) << "nothing is mapped there";
  int flags = 9;
  EXPECT_EQ(memory_.GetAccess(address + 5, 0, &flags), Error::kNone);
  EXPECT_EQ(flags, 0);
  EXPECT_EQ(memory_.SetAccess(address, 3 * kVmPage, 1, 3), Error::kNone);
  EXPECT_EQ(memory_.GetAccess(address + 2 * kVmPage, 1, &flags), Error::kNone);
  EXPECT_EQ(flags, 3);
  EXPECT_EQ(memory_.SetAccess(address, kVmPage, 1, 3), Error::kInvalidValue);
  EXPECT_EQ(memory_.GetAccess(address + 3 * kVmPage, 1, &flags), Error::kInvalidValue);
  EXPECT_EQ(memory_.Unmap(address, 4 * kVmPage), Error::kNone) << "with what is not mapped behind them";
  EXPECT_EQ(memory_.GetAccess(address, 1, &flags), Error::kInvalidValue);
  EXPECT_EQ(memory_.Unmap(address, 3 * kVmPage), Error::kNone) << "two mappings at once";
  EXPECT_EQ(used(), 3 * kVmPage) << "the handles are held";
}

TEST_F(VirtualMemoryTest, WhatIsMappedIsAnAllocationOfTheHandlesDevice) {
  const std::uint64_t handle = Create(1, 1);
  EXPECT_EQ(used(0), 0U);
  EXPECT_EQ(used(1), kVmPage);
  const std::uint64_t address = Reserve(1, 0);
  ASSERT_EQ(memory_.Map(address, kVmPage, 0, handle), Error::kNone);
  const Allocation* mapped = machine_.allocations.Holding(address + 7);
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(mapped->kind, MemoryKind::kMapped);
  EXPECT_EQ(mapped->device, 1);
  EXPECT_EQ(mapped->part, handle);
  std::uint64_t retained = 0;
  EXPECT_EQ(memory_.Retain(address + 7, &retained), Error::kNone);
  EXPECT_EQ(retained, handle);
  EXPECT_EQ(memory_.Retain(address + kVmPage, &retained), Error::kInvalidValue);
  ASSERT_EQ(memory_.Unmap(address, kVmPage), Error::kNone);
  EXPECT_EQ(machine_.allocations.Holding(address), nullptr);
  EXPECT_EQ(memory_.Release(handle), Error::kNone);
  EXPECT_EQ(used(1), kVmPage) << "it was retained";
  EXPECT_EQ(memory_.Release(handle), Error::kNone);
  EXPECT_EQ(used(1), 0U);
}

TEST_F(VirtualMemoryTest, ImportedAndHostMemoryIsNotChargedHere) {
  const std::uint64_t imported = memory_.Import(0, 4 * kVmPage);
  VirtualMemory::HandleInfo info;
  EXPECT_EQ(memory_.Describe(imported, &info), Error::kNone);
  EXPECT_EQ(info.size_bytes, 4 * kVmPage);
  std::uint64_t host = 0;
  EXPECT_EQ(memory_.Create(kHostMemory, 100 * kVmPage, &host), Error::kNone);
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(memory_.Release(imported), Error::kNone);
  EXPECT_EQ(memory_.Release(host), Error::kNone);
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(memory_.Describe(host, &info), Error::kInvalidValue);
}

TEST_F(VirtualMemoryTest, ADeviceThatIsResetLeavesTheOthersRight) {
  const std::uint64_t own = Create(1, 0), other = Create(1, 1);
  const std::uint64_t here = Reserve(2, 0), there = Reserve(2, 1);
  ASSERT_EQ(memory_.Map(here, kVmPage, 0, other), Error::kNone);
  ASSERT_EQ(memory_.Map(there, kVmPage, 0, own), Error::kNone);
  memory_.DropDevice(0);
  machine_.device().DropContext();
  EXPECT_EQ(used(0), 0U);
  EXPECT_EQ(used(1), kVmPage);
  EXPECT_EQ(memory_.Release(own), Error::kInvalidValue);
  EXPECT_EQ(memory_.FreeReservation(here, 2 * kVmPage), Error::kInvalidValue);
  EXPECT_EQ(memory_.Map(there, kVmPage, 0, other), Error::kNone) << "nothing is mapped there any more";
  EXPECT_EQ(memory_.Unmap(there, kVmPage), Error::kNone);
  EXPECT_EQ(memory_.FreeReservation(there, 2 * kVmPage), Error::kNone);
  EXPECT_EQ(memory_.Release(other), Error::kNone);
  EXPECT_EQ(used(1), 0U) << "its mapping among the reset device's addresses is gone";
}

}  // namespace
}  // namespace ashlar::hollow
