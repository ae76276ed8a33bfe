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
#include "tests/device/device_contract.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kPage = 2 * kMiB;

HostDeviceOptions Capacity(std::uint64_t capacity_bytes) {
  HostDeviceOptions options;
  options.capacity_bytes = capacity_bytes;
  return options;
}

TestedDevice Tested(HostDeviceOptions options, std::uint64_t page_bytes) {
  auto device = std::make_unique<HostDevice>(options);
  HostDevice* host = device.get();
  const bool waits = !options.events_complete_immediately;
  return {.device = std::move(device),
          .page_bytes = page_bytes,
          .streams = {Stream{0}, Stream{7}},
          .finish_work = [host] { host->CompleteAllWork(); },
          .work_waits = waits};
}

TestedDevice MakeHost() { return Tested(Capacity(kGiB + 12345), kPage); }
TestedDevice MakeControlled() {
  HostDeviceOptions options = Capacity(256 * kMiB);
  options.events_complete_immediately = false;
  return Tested(options, kPage);
}
TestedDevice MakeFineGrained() {
  HostDeviceOptions options = Capacity(64 * 64 * kKiB);
  options.granularity_bytes = 64 * kKiB;
  return Tested(options, 64 * kKiB);
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
  HostDevice device(Capacity(64 * kMiB));
  const std::uint64_t first = *device.AllocateSegment(3 * kMiB);
  const std::uint64_t second = *device.AllocateSegment(kPage);
  EXPECT_EQ(first % kPage, 0u);
  EXPECT_TRUE(IsAll(first, 3 * kMiB, 0)) << "fresh memory is zero";
  std::memset(Memory(first), 1, 3 * kMiB);
  std::memset(Memory(second), 2, kPage);
  EXPECT_TRUE(IsAll(first, 3 * kMiB, 1));
  EXPECT_TRUE(IsAll(second, kPage, 2));
  EXPECT_EQ(device.used_bytes(), 6 * kMiB);
  ASSERT_TRUE(device.FreeSegment(first).ok());
  EXPECT_EQ(KernelMappedBytes(first, 3 * kMiB), 0u) << "given back to the kernel";
  EXPECT_TRUE(IsAll(second, kPage, 2));
}

TEST(HostDeviceTest, PagesAreMemoryAndComeBackEmpty) {
  HostDevice device(Capacity(64 * kMiB));
  const std::uint64_t base = *device.Reserve(kGiB);
  ASSERT_TRUE(device.Map(base + 4 * kPage, 2 * kPage, kPage).ok());
  std::memset(Memory(base + 4 * kPage), 7, 2 * kPage);
  ASSERT_TRUE(device.Map(base + 3 * kPage, kPage, kPage).ok());
  std::memset(Memory(base + 3 * kPage), 8, kPage);
  EXPECT_TRUE(IsAll(base + 4 * kPage, 2 * kPage, 7));
  ASSERT_TRUE(device.Unmap(base + 4 * kPage, kPage, kPage).ok());
  EXPECT_TRUE(IsAll(base + 3 * kPage, kPage, 8) && IsAll(base + 5 * kPage, kPage, 7)) << "the neighbours stay";
  ASSERT_TRUE(device.Map(base + 4 * kPage, kPage, kPage).ok());
  EXPECT_TRUE(IsAll(base + 4 * kPage, kPage, 0)) << "the old memory went back to the kernel";
}

TEST(HostDeviceTest, DestructionReturnsEverything) {
  std::uint64_t segment = 0;
  std::uint64_t base = 0;
  {
    HostDevice device(Capacity(64 * kMiB));
    segment = *device.AllocateSegment(kPage);
    base = *device.Reserve(16 * kPage);
    ASSERT_TRUE(device.Map(base, 2 * kPage, kPage).ok());
    EXPECT_EQ(KernelMappedBytes(segment, kPage), kPage);
    EXPECT_EQ(KernelMappedBytes(base, 16 * kPage), 16 * kPage);
  }
  EXPECT_EQ(KernelMappedBytes(segment, kPage), 0u);
  EXPECT_EQ(KernelMappedBytes(base, 16 * kPage), 0u);
}

TEST(HostDeviceTest, AddressSpaceIsNoMemory) {
  HostDevice device(Capacity(64 * kMiB));
  EXPECT_TRUE(absl::IsUnavailable(device.Reserve(std::uint64_t{1} << 50).status())) << "more than a process has";
  EXPECT_TRUE(absl::IsUnavailable(device.Reserve(~std::uint64_t{0}).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(device.AllocateSegment(~std::uint64_t{0}).status()));
  EXPECT_TRUE(device.AllocateSegment(kPage).ok());
}

TEST(HostDeviceTest, EventsMayWait) {
  HostDevice immediate(Capacity(kPage));
  EXPECT_TRUE(immediate.QueryEvent(immediate.RecordEvent(Stream{3})));
  HostDeviceOptions options = Capacity(kPage);
  options.events_complete_immediately = false;
  HostDevice waiting(options);
  EXPECT_FALSE(waiting.QueryEvent(waiting.RecordEvent(Stream{3})));
}

TEST(HostDeviceDeathTest, ReservedAndUnmappedMemoryCannotBeTouched) {
  HostDevice device(Capacity(64 * kMiB));
  const std::uint64_t base = *device.Reserve(4 * kPage);
  ASSERT_TRUE(device.Map(base, kPage, kPage).ok());
  *Memory(base) = 1;
  EXPECT_DEATH(*Memory(base + kPage) = 1, "");
  ASSERT_TRUE(device.Unmap(base, kPage, kPage).ok());
  EXPECT_DEATH(*Memory(base) = 1, "");
}

TEST(HostDeviceDeathTest, Misuse) {
  HostDevice device(Capacity(64 * kMiB));
  const std::uint64_t segment = *device.AllocateSegment(2 * kPage);
  EXPECT_DEATH(device.FreeSegment(segment + kPage).IgnoreError(), "host_device");
  ASSERT_TRUE(device.FreeSegment(segment).ok());
  EXPECT_DEATH(device.FreeSegment(segment).IgnoreError(), "host_device");
  const std::uint64_t base = *device.Reserve(2 * kPage);
  ASSERT_TRUE(device.Map(base, kPage, kPage).ok());
  EXPECT_DEATH(device.Map(base, 2 * kPage, kPage).IgnoreError(), "host_device");
  EXPECT_DEATH(device.Map(base + kPage, 2 * kPage, kPage).IgnoreError(), "host_device");
  EXPECT_DEATH(device.Unmap(base, 2 * kPage, kPage).IgnoreError(), "address_space");
  EXPECT_DEATH(device.ReleaseReservation(base).IgnoreError(), "host_device");
}

}  // namespace
}  // namespace ashlar::device
