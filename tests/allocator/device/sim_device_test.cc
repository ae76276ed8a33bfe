// The simulated device: the contract of every device, and what it promises beyond: addresses, charges, strictness,
// failures on demand.
#include "allocator/device/sim_device.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/device/device_contract.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::uint64_t kReservations = kBase + (std::uint64_t{1} << 44);
constexpr std::uint64_t kPage = 2 * kMiB;

SimDeviceOptions Capacity(std::uint64_t capacity_bytes) {
  SimDeviceOptions options;
  options.capacity_bytes = capacity_bytes;
  return options;
}

TestedDevice SimDeviceTested(SimDeviceOptions options) {
  const bool is_immediate = options.events_complete_immediately;
  auto device = std::make_unique<SimDevice>(std::move(options));
  SimDevice* sim = device.get();
  return {.device = std::move(device),
          .page_bytes = kPage,
          .streams = {Stream{0}, Stream{7}},
          .finish_work = [sim] { sim->CompleteAllWork(); },
          .work_waits = !is_immediate};
}

TestedDevice MakeAscending() { return SimDeviceTested(Capacity(kGiB)); }
TestedDevice MakeDescending() {
  SimDeviceOptions options = Capacity(kGiB + 12345);
  options.address_order = AddressOrder::kDescending;
  return SimDeviceTested(options);
}
TestedDevice SimDeviceMakeImmediate() {
  SimDeviceOptions options = Capacity(256 * kMiB);
  options.events_complete_immediately = true;
  return SimDeviceTested(options);
}

INSTANTIATE_TEST_SUITE_P(Sim, DeviceContractTest,
                         testing::Values(DeviceMaker{"ascending", MakeAscending},
                                         DeviceMaker{"descending", MakeDescending},
                                         DeviceMaker{"immediate", SimDeviceMakeImmediate}));

TEST(SimDeviceTest, TheLowestAddressThatHasRoom) {
  SimDevice device(Capacity(kGiB));
  EXPECT_EQ(*device.AllocateSegment(4 * kMiB), kBase);
  EXPECT_EQ(*device.AllocateSegment(2 * kMiB), kBase + 4 * kMiB);
  EXPECT_EQ(*device.AllocateSegment(2 * kMiB), kBase + 6 * kMiB);
  ASSERT_TRUE(device.FreeSegment(kBase).ok());
  EXPECT_EQ(*device.AllocateSegment(6 * kMiB), kBase + 8 * kMiB) << "the gap of 4 MiB is too small";
  EXPECT_EQ(*device.AllocateSegment(2 * kMiB), kBase);
  EXPECT_EQ(*device.AllocateSegment(2 * kMiB), kBase + 2 * kMiB);
}

TEST(SimDeviceTest, DescendingTakesTheTopOfTheHighestRange) {
  SimDeviceOptions options = Capacity(kGiB);
  options.address_order = AddressOrder::kDescending;
  SimDevice device(options);
  EXPECT_EQ(*device.AllocateSegment(4 * kMiB), kReservations - 4 * kMiB);
  EXPECT_EQ(*device.AllocateSegment(2 * kMiB), kReservations - 6 * kMiB);
  ASSERT_TRUE(device.FreeSegment(kReservations - 4 * kMiB).ok());
  EXPECT_EQ(*device.AllocateSegment(2 * kMiB), kReservations - 2 * kMiB);
  EXPECT_EQ(*device.Reserve(2 * kMiB), kReservations) << "reservations always ascend";
}

TEST(SimDeviceTest, ReservationsHaveAnAreaOfTheirOwn) {
  SimDevice device(Capacity(8 * kMiB));
  EXPECT_EQ(*device.Reserve(3 * kMiB), kReservations);
  EXPECT_EQ(*device.Reserve(2 * kMiB), kReservations + 4 * kMiB) << "sizes round up to the granularity";
  ASSERT_TRUE(device.ReleaseReservation(kReservations).ok());
  EXPECT_EQ(*device.Reserve(2 * kMiB), kReservations);
  EXPECT_EQ(*device.AllocateSegment(2 * kMiB), kBase);
}

TEST(SimDeviceTest, RecordedAddressesComeFirst) {
  std::vector<std::uint64_t> recorded = {kBase - 64 * kMiB, kBase + 32 * kMiB, kBase + 33 * kMiB};
  SimDeviceOptions options = Capacity(kGiB);
  options.recorded_address = [&recorded](std::uint64_t size_bytes) -> std::optional<std::uint64_t> {
    EXPECT_EQ(size_bytes, 4 * kMiB);
    if (recorded.empty()) return std::nullopt;
    const std::uint64_t address = recorded.front();
    recorded.erase(recorded.begin());
    return address;
  };
  SimDevice device(options);
  EXPECT_EQ(*device.AllocateSegment(4 * kMiB), kBase - 64 * kMiB) << "below the base is allowed here";
  EXPECT_EQ(*device.AllocateSegment(4 * kMiB), kBase + 32 * kMiB);
  EXPECT_EQ(*device.AllocateSegment(4 * kMiB), kBase) << "taken in part: the rule decides";
  EXPECT_EQ(*device.AllocateSegment(4 * kMiB), kBase + 4 * kMiB) << "nothing recorded: the rule decides";
}

// What depends on the device's memory, as the size of a reservation, goes by all of it.
TEST(SimDeviceTest, WhatOthersHoldIsOfTheTotalAndNotFree) {
  SimDevice device({.capacity_bytes = 8 * kGiB, .outside_bytes = 2 * kGiB});
  EXPECT_EQ(device.GetMemoryInfo().total_bytes, 10 * kGiB);
  EXPECT_EQ(device.GetMemoryInfo().free_bytes, 8 * kGiB);
  EXPECT_TRUE(device.AllocateSegment(8 * kGiB).ok());
  EXPECT_FALSE(device.AllocateSegment(2 * kMiB).ok());
}

TEST(SimDeviceTest, ChargesRoundUpAndTheCapacityIsExact) {
  SimDevice device(Capacity(5 * kMiB));
  ASSERT_TRUE(device.AllocateSegment(1).ok());
  EXPECT_EQ(device.used_bytes(), 2 * kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(device.AllocateSegment(3 * kMiB).status())) << "3 MiB are free, 4 are charged";
  EXPECT_TRUE(device.AllocateSegment(2 * kMiB).ok());
  EXPECT_EQ(device.GetMemoryInfo().free_bytes, kMiB);
  EXPECT_EQ(device.GetMemoryInfo().total_bytes, 5 * kMiB);
  EXPECT_EQ(device.calls().segment_alloc, 3u) << "failed calls count";
  EXPECT_TRUE(absl::IsResourceExhausted(device.AllocateSegment(~std::uint64_t{0}).status()));
}

TEST(SimDeviceTest, PagesThatTheDeviceCannotMap) {
  SimDevice device(Capacity(kGiB));
  const std::uint64_t base = *device.Reserve(33 * kMiB);
  EXPECT_TRUE(absl::IsInvalidArgument(device.Map(base, 11 * kMiB, 11 * kMiB)));
  EXPECT_EQ(device.used_bytes(), 0u);
}

TEST(SimDeviceTest, EventsWaitForTheirStream) {
  SimDevice device(Capacity(kGiB));
  const DeviceEvent a = device.RecordEvent(Stream{1});
  const DeviceEvent b = device.RecordEvent(Stream{2});
  EXPECT_FALSE(device.QueryEvent(a));
  ASSERT_TRUE(device.SynchronizeEvent(b).ok());
  EXPECT_TRUE(device.QueryEvent(b));
  EXPECT_FALSE(device.QueryEvent(a)) << "another stream";
  const DeviceEvent later = device.RecordEvent(Stream{2});
  EXPECT_FALSE(device.QueryEvent(later));
  ASSERT_TRUE(device.SynchronizeEvent(b).ok());
  EXPECT_FALSE(device.QueryEvent(later)) << "an earlier event covers nothing after it";
  device.CompleteStream(Stream{1});
  EXPECT_TRUE(device.QueryEvent(a));
  EXPECT_FALSE(device.QueryEvent(later));
  device.CompleteAllWork();
  EXPECT_TRUE(device.QueryEvent(later));
  EXPECT_FALSE(device.QueryEvent(device.RecordEvent(Stream{1}))) << "recorded after the work was done";
}

TEST(SimDeviceTest, EventsMayCompleteAtOnce) {
  SimDeviceOptions options = Capacity(kGiB);
  options.events_complete_immediately = true;
  SimDevice device(options);
  EXPECT_TRUE(device.QueryEvent(device.RecordEvent(Stream{3})));
}

TEST(SimDeviceTest, FailsTheCallItWasToldTo) {
  SimDevice device(Capacity(kGiB));
  device.FailCall(2, absl::InternalError("broken"));
  const std::uint64_t segment = *device.AllocateSegment(kPage);
  const std::uint64_t base = *device.Reserve(4 * kPage);
  EXPECT_TRUE(absl::IsInternal(device.Map(base, kPage, kPage)));
  EXPECT_EQ(device.used_bytes(), kPage) << "the call that fails does nothing";
  EXPECT_TRUE(device.Map(base, kPage, kPage).ok()) << "only one call fails";
  EXPECT_TRUE(device.FreeSegment(segment).ok());
  device.FailCall(0, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(device.Reserve(kPage).status()));
}

TEST(SimDeviceTest, AdoptedSegmentsAreChargedWhereTheyLie) {
  SimDevice device(Capacity(kGiB));
  ASSERT_TRUE(device.AdoptSegment(kBase + kPage, kPage).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(device.AdoptSegment(kBase, 2 * kPage))) << "taken in part";
  EXPECT_EQ(device.used_bytes(), kPage);
  EXPECT_EQ(device.calls().segment_alloc, 0u);
  EXPECT_EQ(*device.AllocateSegment(2 * kPage), kBase + 2 * kPage);
  EXPECT_TRUE(device.FreeSegment(kBase + kPage).ok());
  EXPECT_EQ(*device.AllocateSegment(2 * kPage), kBase);
}

TEST(SimDeviceTest, AdoptedMappingsLieOnTheGridOfTheirReservation) {
  SimDevice device(Capacity(kGiB));
  ASSERT_TRUE(device.AdoptReservation(kReservations, 8 * kPage).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(device.AdoptReservation(kReservations + kPage, kPage))) << "taken";
  EXPECT_TRUE(absl::IsInvalidArgument(device.AdoptMapping(kReservations + kPage / 2, kPage, kPage)));
  EXPECT_TRUE(absl::IsInvalidArgument(device.AdoptMapping(kReservations + 7 * kPage, 2 * kPage, kPage)));
  EXPECT_EQ(device.used_bytes(), 0u);
  ASSERT_TRUE(device.AdoptMapping(kReservations + 2 * kPage, 2 * kPage, kPage).ok());
  EXPECT_EQ(device.used_bytes(), 2 * kPage);
  EXPECT_TRUE(device.Unmap(kReservations + 2 * kPage, 2 * kPage, kPage).ok());
  EXPECT_TRUE(device.ReleaseReservation(kReservations).ok());
}

TEST(SimDeviceTest, RefusesMemoryWhileToldTo) {
  SimDevice device(Capacity(kGiB));
  const std::uint64_t base = *device.Reserve(kPage);
  device.RefuseMemory(true);
  EXPECT_TRUE(absl::IsResourceExhausted(device.AllocateSegment(kPage).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(device.Map(base, kPage, kPage)));
  EXPECT_EQ(device.used_bytes(), 0u);
  device.RefuseMemory(false);
  EXPECT_TRUE(device.Map(base, kPage, kPage).ok());
}

TEST(SimDeviceTest, CountsCallsAndTheirCost) {
  SimDeviceOptions options = Capacity(kGiB);
  options.cost = {1, 10, 100, 1000, 10'000, 100'000};
  SimDevice device(options);
  const std::uint64_t segment = *device.AllocateSegment(kPage);
  ASSERT_TRUE(device.FreeSegment(segment).ok());
  const std::uint64_t base = *device.Reserve(4 * kPage);
  ASSERT_TRUE(device.Map(base, 3 * kPage, kPage).ok());
  ASSERT_TRUE(device.Unmap(base, 2 * kPage, kPage).ok());
  device.QueryEvent(device.RecordEvent(Stream{0}));
  EXPECT_EQ(device.cost_ns(), 1u + 10 + 3 * 100 + 2 * 1000 + 10'000 + 2 * 100'000);
  EXPECT_EQ(device.calls().map_pages, 3u);
  EXPECT_EQ(device.calls().unmap_pages, 2u);
  EXPECT_EQ(device.calls().MemoryCalls(), 7u);
  EXPECT_EQ(device.calls().record_event + device.calls().query_event, 2u);
}

TEST(SimDeviceDeathTest, FreesOnlyWhatIsAllocated) {
  SimDevice device(Capacity(kGiB));
  const std::uint64_t segment = *device.AllocateSegment(2 * kPage);
  EXPECT_DEATH(device.FreeSegment(segment + kPage).IgnoreError(), "sim_device");
  ASSERT_TRUE(device.FreeSegment(segment).ok());
  EXPECT_DEATH(device.FreeSegment(segment).IgnoreError(), "sim_device");
}

TEST(SimDeviceDeathTest, MapsInsideReservationsAndOnce) {
  SimDevice device(Capacity(kGiB));
  const std::uint64_t base = *device.Reserve(2 * kPage);
  EXPECT_DEATH(device.Map(base + kPage, 2 * kPage, kPage).IgnoreError(), "sim_device");
  EXPECT_DEATH(device.Map(base, kPage / 2, kPage).IgnoreError(), "sim_device");
  ASSERT_TRUE(device.Map(base, kPage, kPage).ok());
  EXPECT_DEATH(device.Map(base, 2 * kPage, kPage).IgnoreError(), "sim_device");
}

TEST(SimDeviceDeathTest, UnmapsOnlyWhatIsMapped) {
  SimDevice device(Capacity(kGiB));
  const std::uint64_t base = *device.Reserve(2 * kPage);
  ASSERT_TRUE(device.Map(base, kPage, kPage).ok());
  EXPECT_DEATH(device.Unmap(base, 2 * kPage, kPage).IgnoreError(), "sim_device");
  EXPECT_DEATH(device.ReleaseReservation(base).IgnoreError(), "sim_device") << "memory is behind it";
  EXPECT_DEATH(device.ReleaseReservation(base + kPage).IgnoreError(), "sim_device");
}

TEST(CostTableTest, ReadsWhatItPrints) {
  CostModel costs;
  costs.segment_alloc_ns = 1;
  costs.event_ns = 18446744073709551615u;
  const absl::StatusOr<CostModel> read = ReadCosts(absl::StrCat("# a GPU\n", PrintCosts(costs)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PrintCosts(*read), PrintCosts(costs));
}

TEST(CostTableTest, WhatIsNotNamedKeepsItsDefault) {
  const absl::StatusOr<CostModel> read = ReadCosts("\n  map_page_ns\t7  # measured\n\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->map_page_ns, 7u);
  EXPECT_EQ(read->segment_alloc_ns, CostModel{}.segment_alloc_ns);
}

TEST(CostTableTest, BadLinesAreNamed) {
  for (const char* text : {"event_ns 1\nevent_ns 2\n", "event_ns 1\nlaunch_ns 2\n", "event_ns 1\nreserve_ns -2\n",
                           "event_ns 1\nreserve_ns\n", "event_ns 1\nreserve_ns 2 ns\n"}) {
    const absl::Status status = ReadCosts(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_EQ(status.message().substr(0, 8), "line 2: ") << status;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCosts("# skipped: no GPU\n").status()));
}

}  // namespace
}  // namespace ashlar::device
