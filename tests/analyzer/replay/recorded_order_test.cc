// Whose order of addresses a record shows: of simulated devices, and of a real one.
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/device/sim_device.h"
#include "analyzer/replay/recorded_options.h"
#include "gtest/gtest.h"

namespace ashlar::replay {
namespace {

using device::AddressOrder;
using timeline::EventIndex;
using timeline::SegmentSpan;

// Segments that come and go on a device.
std::vector<SegmentSpan> SegmentsOn(AddressOrder order, std::uint64_t seed) {
  device::SimDeviceOptions options;
  options.capacity_bytes = 80 * kGiB;
  options.address_order = order;
  device::SimDevice device(options);
  Rng rng(seed);
  std::vector<SegmentSpan> out;
  std::vector<std::size_t> live;
  for (EventIndex event = 0; event < 300; ++event) {
    if (live.size() > 8 && rng.Below(3) == 0) {
      std::swap(live[rng.Below(live.size())], live.back());
      SegmentSpan& gone = out[live.back()];
      EXPECT_TRUE(device.FreeSegment(gone.extents[0].address).ok());
      gone.end_event = event;
      live.pop_back();
      continue;
    }
    const std::uint64_t size = 2 * kMiB * rng.Between(1, 40);
    const std::uint64_t address = *device.AllocateSegment(size);
    live.push_back(out.size());
    out.push_back({.extents = {{event, address, size}}});
  }
  return out;
}

TEST(RecordedOrderTest, SimulatedDevicesAreTold) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const AddressOrder order : {AddressOrder::kAscending, AddressOrder::kDescending, AddressOrder::kDriver}) {
      EXPECT_EQ(RecordedAddressOrder(SegmentsOn(order, seed)), order) << "seed " << seed;
    }
  }
}

TEST(RecordedOrderTest, ARecordThatBeginsInTheMiddleTellsToo) {
  for (const AddressOrder order : {AddressOrder::kAscending, AddressOrder::kDescending, AddressOrder::kDriver}) {
    std::vector<SegmentSpan> segments = SegmentsOn(order, 7);
    std::erase_if(segments, [](const SegmentSpan& segment) { return segment.end_event < 100; });
    for (SegmentSpan& segment : segments) {
      if (segment.BeginEvent() < 100) segment.extents[0].event = timeline::kBeforeWindow;
    }
    EXPECT_EQ(RecordedAddressOrder(segments), order);
  }
}

TEST(RecordedOrderTest, WithoutSegmentsThatTellItIsAscending) {
  EXPECT_EQ(RecordedAddressOrder({}), AddressOrder::kAscending);
  const std::vector<SegmentSpan> one = {{.extents = {{0, 64 * kMiB, 2 * kMiB}}}};
  EXPECT_EQ(RecordedAddressOrder(one), AddressOrder::kAscending);
}

// docs/measurements/h200_addresses.txt: each run as the driver placed it.
TEST(RecordedOrderTest, RealRunsAreTheDrivers) {
  std::ifstream in(ASHLAR_SOURCE_DIR "/docs/measurements/h200_addresses.txt");
  std::map<std::string, std::vector<SegmentSpan>> runs;
  std::vector<SegmentSpan>* run = nullptr;
  EventIndex event = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string what;
    std::string name;
    std::uint64_t size = 0;
    std::uint64_t address = 0;
    words >> what;
    if (what == "run") {
      words >> name;
      run = &runs[name];
    } else if (what != "#") {
      words >> size >> address;
      ++event;
      if (what == "-") {
        for (SegmentSpan& segment : *run) {
          if (segment.extents[0].address == address * kMiB) segment.end_event = event;
        }
      } else {
        const EventIndex begin = what == "had" ? timeline::kBeforeWindow : event;
        run->push_back({.extents = {{begin, address * kMiB, size * kMiB}}});
      }
    }
  }
  ASSERT_GE(runs.size(), 10u);
  int as_driver = 0;
  for (const auto& [name, segments] : runs)
    as_driver += RecordedAddressOrder(segments) == AddressOrder::kDriver ? 1 : 0;
  EXPECT_GE(as_driver, static_cast<int>(runs.size()) - 1);  // one lies in the context's first region alone
}

}  // namespace
}  // namespace ashlar::replay
