// The device of host memory: the contract of every device, and that its memory is memory.
#include "allocator/device/host_device.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/allocator/device/device_contract.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kHostDevicePage = 2 * kMiB;

HostDeviceOptions HostDeviceCapacity(std::uint64_t capacity_bytes) {
  HostDeviceOptions options;
  options.capacity_bytes = capacity_bytes;
  return options;
}

TestedDevice HostDeviceTested(HostDeviceOptions options, std::uint64_t page_bytes) {
  auto device = std::make_unique<HostDevice>(options);
  HostDevice* host = device.get();
  const bool waits = !options.events_complete_immediately;
  return {.device = std::move(device),
          .page_bytes = page_bytes,
          .streams = {Stream{0}, Stream{7}},
          .finish_work = [host] { host->CompleteAllWork(); },
          .work_waits = waits};
}

TestedDevice MakeHost() { return HostDeviceTested(HostDeviceCapacity(kGiB + 12345), kHostDevicePage); }
TestedDevice MakeControlled() {
  HostDeviceOptions options = HostDeviceCapacity(256 * kMiB);
  options.events_complete_immediately = false;
  return HostDeviceTested(options, kHostDevicePage);
}
TestedDevice MakeFineGrained() {
  HostDeviceOptions options = HostDeviceCapacity(64 * 64 * kKiB);
  options.granularity_bytes = 64 * kKiB;
  return HostDeviceTested(options, 64 * kKiB);
}

INSTANTIATE_TEST_SUITE_P(Host, DeviceContractTest,
                         testing::Values(DeviceMaker{"immediate", MakeHost}, DeviceMaker{"controlled", MakeControlled},
                                         DeviceMaker{"fine_grained", MakeFineGrained}));

char* Memory(std::uint64_t address) { return reinterpret_cast<char*>(static_cast<std::uintptr_t>(address)); }

bool IsAll(std::uint64_t address, std::uint64_t size_bytes, char value) {
  const char* begin = Memory(address);
  return std::all_of(begin, begin + size_bytes, [value](char at) { return at == value; });
}

// How many bytes of the process' address space lie in [address, address + size_bytes), by the kernel's own list.
std::uint64_t KernelMappedBytes(std::uint64_t address, std::uint64_t size_bytes) {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t mapped = 0;
  for (std::string line; std::getline(maps, line);) {
    std::size_t dash = 0;
    const std::uint64_t begin = std::stoull(line, &dash, 16);
    const std::uint64_t end = std::stoull(line.substr(dash + 1), nullptr, 16);
    const std::uint64_t low = std::max(begin, address);
    const std::uint64_t high = std::min(end, address + size_bytes);
    if (low < high) mapped += high - low;
  }
  return mapped;
}

TEST(HostDeviceTest, SegmentsAreMemory) {
  HostDevice device(HostDeviceCapacity(64 * kMiB));
  const std::uint64_t first = *device.AllocateSegment(3 * kMiB);
  const std::uint64_t second = *device.AllocateSegment(kHostDevicePage);
  EXPECT_EQ(first % kHostDevicePage, 0u);
  EXPECT_TRUE(IsAll(first, 3 * kMiB, 0)) << "fresh memory is zero";
  std::memset(Memory(first), 1, 3 * kMiB);
  std::memset(Memory(second), 2, kHostDevicePage);
  EXPECT_TRUE(IsAll(first, 3 * kMiB, 1));
  EXPECT_TRUE(IsAll(second, kHostDevicePage, 2));
  EXPECT_EQ(device.used_bytes(), 6 * kMiB);
  ASSERT_TRUE(device.FreeSegment(first).ok());
  EXPECT_EQ(KernelMappedBytes(first, 3 * kMiB), 0u) << "given back to the kernel";
  EXPECT_TRUE(IsAll(second, kHostDevicePage, 2));
}

TEST(HostDeviceTest, PagesAreMemoryAndComeBackEmpty) {
  HostDevice device(HostDeviceCapacity(64 * kMiB));
  const std::uint64_t base = *device.Reserve(kGiB);
  ASSERT_TRUE(device.Map(base + 4 * kHostDevicePage, 2 * kHostDevicePage, kHostDevicePage).ok());
  std::memset(Memory(base + 4 * kHostDevicePage), 7, 2 * kHostDevicePage);
  ASSERT_TRUE(device.Map(base + 3 * kHostDevicePage, kHostDevicePage, kHostDevicePage).ok());
  std::memset(Memory(base + 3 * kHostDevicePage), 8, kHostDevicePage);
  EXPECT_TRUE(IsAll(base + 4 * kHostDevicePage, 2 * kHostDevicePage, 7));
  ASSERT_TRUE(device.Unmap(base + 4 * kHostDevicePage, kHostDevicePage, kHostDevicePage).ok());
  EXPECT_TRUE(IsAll(base + 3 * kHostDevicePage, kHostDevicePage, 8) &&
              IsAll(base + 5 * kHostDevicePage, kHostDevicePage, 7))
      << "the neighbours stay";
  ASSERT_TRUE(device.Map(base + 4 * kHostDevicePage, kHostDevicePage, kHostDevicePage).ok());
  EXPECT_TRUE(IsAll(base + 4 * kHostDevicePage, kHostDevicePage, 0)) << "the old memory went back to the kernel";
}

TEST(HostDeviceTest, DestructionReturnsEverything) {
  std::uint64_t segment = 0;
  std::uint64_t base = 0;
  {
    HostDevice device(HostDeviceCapacity(64 * kMiB));
    segment = *device.AllocateSegment(kHostDevicePage);
    base = *device.Reserve(16 * kHostDevicePage);
    ASSERT_TRUE(device.Map(base, 2 * kHostDevicePage, kHostDevicePage).ok());
    EXPECT_EQ(KernelMappedBytes(segment, kHostDevicePage), kHostDevicePage);
    EXPECT_EQ(KernelMappedBytes(base, 16 * kHostDevicePage), 16 * kHostDevicePage);
  }
  EXPECT_EQ(KernelMappedBytes(segment, kHostDevicePage), 0u);
  EXPECT_EQ(KernelMappedBytes(base, 16 * kHostDevicePage), 0u);
}

TEST(HostDeviceTest, AddressSpaceIsNoMemory) {
  HostDevice device(HostDeviceCapacity(64 * kMiB));
  EXPECT_TRUE(absl::IsUnavailable(device.Reserve(std::uint64_t{1} << 50).status())) << "more than a process has";
  EXPECT_TRUE(absl::IsUnavailable(device.Reserve(~std::uint64_t{0}).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(device.AllocateSegment(~std::uint64_t{0}).status()));
  EXPECT_TRUE(device.AllocateSegment(kHostDevicePage).ok());
}

TEST(HostDeviceTest, EventsMayWait) {
  HostDevice immediate(HostDeviceCapacity(kHostDevicePage));
  EXPECT_TRUE(immediate.QueryEvent(immediate.RecordEvent(Stream{3})));
  HostDeviceOptions options = HostDeviceCapacity(kHostDevicePage);
  options.events_complete_immediately = false;
  HostDevice waiting(options);
  EXPECT_FALSE(waiting.QueryEvent(waiting.RecordEvent(Stream{3})));
}

TEST(HostDeviceDeathTest, ReservedAndUnmappedMemoryCannotBeTouched) {
  HostDevice device(HostDeviceCapacity(64 * kMiB));
  const std::uint64_t base = *device.Reserve(4 * kHostDevicePage);
  ASSERT_TRUE(device.Map(base, kHostDevicePage, kHostDevicePage).ok());
  *Memory(base) = 1;
  EXPECT_DEATH(*Memory(base + kHostDevicePage) = 1, "");
  ASSERT_TRUE(device.Unmap(base, kHostDevicePage, kHostDevicePage).ok());
  EXPECT_DEATH(*Memory(base) = 1, "");
}

TEST(HostDeviceDeathTest, Misuse) {
  HostDevice device(HostDeviceCapacity(64 * kMiB));
  const std::uint64_t segment = *device.AllocateSegment(2 * kHostDevicePage);
  EXPECT_DEATH(device.FreeSegment(segment + kHostDevicePage).IgnoreError(), "host_device");
  ASSERT_TRUE(device.FreeSegment(segment).ok());
  EXPECT_DEATH(device.FreeSegment(segment).IgnoreError(), "host_device");
  const std::uint64_t base = *device.Reserve(2 * kHostDevicePage);
  ASSERT_TRUE(device.Map(base, kHostDevicePage, kHostDevicePage).ok());
  EXPECT_DEATH(device.Map(base, 2 * kHostDevicePage, kHostDevicePage).IgnoreError(), "host_device");
  EXPECT_DEATH(device.Map(base + kHostDevicePage, 2 * kHostDevicePage, kHostDevicePage).IgnoreError(), "host_device");
  EXPECT_DEATH(device.Unmap(base, 2 * kHostDevicePage, kHostDevicePage).IgnoreError(), "address_space");
  EXPECT_DEATH(device.ReleaseReservation(base).IgnoreError(), "host_device");
}

}  // namespace
}  // namespace ashlar::device
