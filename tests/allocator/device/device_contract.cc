#include "tests/allocator/device/device_contract.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/device/device.h"
#include "gtest/gtest.h"

namespace ashlar::device {

TEST_P(DeviceContractTest, SegmentsAreApartAndAligned) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const std::uint64_t size_bytes : {page_, 3 * page_, page_, 2 * page_}) {
    const absl::StatusOr<std::uint64_t> address = device_.AllocateSegment(size_bytes);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_NE(*address, 0u);
    EXPECT_EQ(*address % 512, 0u);
    ranges.emplace_back(*address, *address + size_bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
  for (const auto& [begin, end] : ranges) EXPECT_TRUE(device_.FreeSegment(begin).ok());
}

TEST_P(DeviceContractTest, SegmentsAreChargedAndGivenBack) {
  const std::uint64_t before = FreeBytes();
  const absl::StatusOr<std::uint64_t> address = device_.AllocateSegment(4 * page_);
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_LE(FreeBytes() + 4 * page_, before);
  ASSERT_TRUE(device_.FreeSegment(*address).ok());
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_LE(FreeBytes(), TotalBytes());
}

TEST_P(DeviceContractTest, TooLargeASegmentIsOutOfMemoryAndCostsNothing) {
  const std::uint64_t before = FreeBytes();
  const absl::StatusOr<std::uint64_t> address = device_.AllocateSegment(TooManyBytes());
  EXPECT_TRUE(absl::IsResourceExhausted(address.status())) << address.status();
  EXPECT_EQ(FreeBytes(), before);
  const absl::StatusOr<std::uint64_t> next = device_.AllocateSegment(page_);
  ASSERT_TRUE(next.ok()) << "the device works on after out of memory: " << next.status();
  EXPECT_TRUE(device_.FreeSegment(*next).ok());
}

TEST_P(DeviceContractTest, ReservationsChargeNothing) {
  const std::uint64_t before = FreeBytes();
  const absl::StatusOr<std::uint64_t> first = device_.Reserve(2 * TooManyBytes());
  const absl::StatusOr<std::uint64_t> second = device_.Reserve(2 * TooManyBytes());
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_GE(std::max(*first, *second) - std::min(*first, *second), 2 * TooManyBytes());
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_TRUE(device_.ReleaseReservation(*first).ok());
  EXPECT_TRUE(device_.ReleaseReservation(*second).ok());
}

TEST_P(DeviceContractTest, PagesAreMappedAndUnmappedInAnyPieces) {
  const std::uint64_t before = FreeBytes();
  const absl::StatusOr<std::uint64_t> base = device_.Reserve(16 * page_);
  ASSERT_TRUE(base.ok()) << base.status();
  ASSERT_TRUE(device_.Map(*base, 2 * page_, page_).ok());
  ASSERT_TRUE(device_.Map(*base + 8 * page_, 3 * page_, page_).ok());
  ASSERT_TRUE(device_.Map(*base + 2 * page_, 6 * page_, page_).ok());
  EXPECT_EQ(FreeBytes() + 11 * page_, before);
  ASSERT_TRUE(device_.Unmap(*base + page_, 9 * page_, page_).ok()) << "across the pieces that were mapped";
  EXPECT_EQ(FreeBytes() + 2 * page_, before);
  ASSERT_TRUE(device_.Map(*base + 5 * page_, page_, page_).ok()) << "a page can be mapped again";
  ASSERT_TRUE(device_.Unmap(*base + 5 * page_, page_, page_).ok());
  ASSERT_TRUE(device_.Unmap(*base, page_, page_).ok());
  ASSERT_TRUE(device_.Unmap(*base + 10 * page_, page_, page_).ok());
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_TRUE(device_.ReleaseReservation(*base).ok());
}

TEST_P(DeviceContractTest, AFailedMapMapsNothing) {
  const std::uint64_t size_bytes = TooManyBytes();
  const absl::StatusOr<std::uint64_t> base = device_.Reserve(size_bytes);
  ASSERT_TRUE(base.ok()) << base.status();
  const std::uint64_t before = FreeBytes();
  EXPECT_TRUE(absl::IsResourceExhausted(device_.Map(*base, size_bytes, page_)));
  EXPECT_EQ(FreeBytes(), before);
  ASSERT_TRUE(device_.Map(*base, page_, page_).ok()) << "no page is left behind";
  EXPECT_TRUE(device_.Unmap(*base, page_, page_).ok());
  EXPECT_TRUE(device_.ReleaseReservation(*base).ok());
}

TEST_P(DeviceContractTest, EventsAreDoneWhenTheWorkIs) {
  const DeviceEvent first = device_.RecordEvent(tested_.streams[0]);
  const DeviceEvent second = device_.RecordEvent(tested_.streams[1]);
  tested_.finish_work();
  EXPECT_TRUE(device_.QueryEvent(first));
  EXPECT_TRUE(device_.QueryEvent(second));
}

TEST_P(DeviceContractTest, SynchronisingAnEventFinishesWhatWasBeforeItOnItsStream) {
  const DeviceEvent earlier = device_.RecordEvent(tested_.streams[0]);
  const DeviceEvent event = device_.RecordEvent(tested_.streams[0]);
  ASSERT_TRUE(device_.SynchronizeEvent(event).ok());
  EXPECT_TRUE(device_.QueryEvent(event));
  EXPECT_TRUE(device_.QueryEvent(earlier));
}

TEST_P(DeviceContractTest, SynchronisingAStreamFinishesItsEvents) {
  const DeviceEvent event = device_.RecordEvent(tested_.streams[1]);
  ASSERT_TRUE(device_.SynchronizeStream(tested_.streams[1]).ok());
  EXPECT_TRUE(device_.QueryEvent(event));
}

TEST_P(DeviceContractTest, EventsAreNotDoneBeforeTheWorkIs) {
  const auto waits = [this](const DeviceEvent& event) { return !tested_.work_waits || !device_.QueryEvent(event); };
  const DeviceEvent first = device_.RecordEvent(tested_.streams[0]);
  const DeviceEvent other = device_.RecordEvent(tested_.streams[1]);
  const DeviceEvent later = device_.RecordEvent(tested_.streams[0]);
  EXPECT_TRUE(waits(first));
  ASSERT_TRUE(device_.SynchronizeEvent(first).ok());
  EXPECT_TRUE(device_.QueryEvent(first));
  EXPECT_TRUE(waits(later)) << "an earlier event covers nothing after it";
  EXPECT_TRUE(waits(other)) << "another stream";
  ASSERT_TRUE(device_.SynchronizeStream(tested_.streams[1]).ok());
  EXPECT_TRUE(device_.QueryEvent(other));
  EXPECT_TRUE(waits(later));
  tested_.finish_work();
  EXPECT_TRUE(device_.QueryEvent(later));
  EXPECT_TRUE(waits(device_.RecordEvent(tested_.streams[0]))) << "recorded after the work was done";
  tested_.finish_work();
}

TEST_P(DeviceContractTest, AStreamWaitsForWhatAnotherWasGiven) {
  const DeviceEvent before = device_.RecordEvent(tested_.streams[0]);
  ASSERT_TRUE(device_.MakeStreamWait(tested_.streams[1], tested_.streams[0]).ok());
  const DeviceEvent behind = device_.RecordEvent(tested_.streams[1]);
  const DeviceEvent later = device_.RecordEvent(tested_.streams[0]);
  EXPECT_TRUE(!tested_.work_waits || !device_.QueryEvent(behind));
  ASSERT_TRUE(device_.SynchronizeEvent(behind).ok());
  EXPECT_TRUE(device_.QueryEvent(before)) << "what it waited for is done";
  EXPECT_TRUE(!tested_.work_waits || !device_.QueryEvent(later)) << "what came after the wait need not be";
  ASSERT_TRUE(device_.MakeStreamWait(tested_.streams[0], tested_.streams[1]).ok());
  ASSERT_TRUE(device_.SynchronizeStream(tested_.streams[0]).ok()) << "waits in both directions end";
  EXPECT_TRUE(device_.QueryEvent(later));
}

TEST_P(DeviceContractTest, MemoryIsToBeHadDuringACapture) {
  const std::uint64_t before = FreeBytes();
  device_.SetCapturing(true);
  const absl::StatusOr<std::uint64_t> segment = device_.AllocateSegment(page_);
  device_.SetCapturing(false);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_TRUE(device_.FreeSegment(*segment).ok());
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_EQ(device_.Lost(), absl::OkStatus());
}

TEST_P(DeviceContractTest, EventsStayDone) {
  std::vector<DeviceEvent> events;
  for (std::size_t round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < 10; ++i) events.push_back(device_.RecordEvent(tested_.streams[i % 2]));
    tested_.finish_work();
    for (const DeviceEvent& event : events) EXPECT_TRUE(device_.QueryEvent(event)) << "round " << round;
  }
  for (const DeviceEvent& event : events) EXPECT_TRUE(device_.SynchronizeEvent(event).ok());
}

TEST_P(DeviceContractTest, APageMustBeAMultipleOfTheGranularity) {
  const absl::StatusOr<std::uint64_t> base = device_.Reserve(2 * page_);
  ASSERT_TRUE(base.ok()) << base.status();
  const std::uint64_t before = FreeBytes();
  EXPECT_TRUE(absl::IsInvalidArgument(device_.Map(*base, 2 * (page_ + 512), page_ + 512)));
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_TRUE(device_.ReleaseReservation(*base).ok());
}

TEST_P(DeviceContractTest, LargePagesAreMappedAsWell) {
  const absl::StatusOr<std::uint64_t> base = device_.Reserve(8 * page_);
  ASSERT_TRUE(base.ok()) << base.status();
  const std::uint64_t before = FreeBytes();
  ASSERT_TRUE(device_.Map(*base + 4 * page_, 4 * page_, 4 * page_).ok());
  EXPECT_EQ(FreeBytes() + 4 * page_, before);
  ASSERT_TRUE(device_.Unmap(*base + 4 * page_, 4 * page_, 4 * page_).ok());
  ASSERT_TRUE(device_.Map(*base + 4 * page_, 4 * page_, page_).ok()) << "now in small ones";
  ASSERT_TRUE(device_.Unmap(*base + 4 * page_, 4 * page_, page_).ok());
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_TRUE(device_.ReleaseReservation(*base).ok());
}

TEST_P(DeviceContractTest, SegmentsAndPagesShareTheMemory) {
  const std::uint64_t before = FreeBytes();
  const absl::StatusOr<std::uint64_t> segment = device_.AllocateSegment(2 * page_);
  const absl::StatusOr<std::uint64_t> base = device_.Reserve(TooManyBytes());
  ASSERT_TRUE(segment.ok() && base.ok()) << segment.status() << base.status();
  const std::uint64_t too_many = RoundUp(FreeBytes() + 1, page_);
  EXPECT_TRUE(absl::IsResourceExhausted(device_.Map(*base, too_many, page_))) << "fits an empty device only";
  ASSERT_TRUE(device_.Map(*base, 3 * page_, page_).ok());
  EXPECT_LE(FreeBytes() + 5 * page_, before);
  ASSERT_TRUE(device_.FreeSegment(*segment).ok());
  ASSERT_TRUE(device_.Unmap(*base, 3 * page_, page_).ok());
  EXPECT_TRUE(device_.ReleaseReservation(*base).ok());
  EXPECT_EQ(FreeBytes(), before);
}

}  // namespace ashlar::device
