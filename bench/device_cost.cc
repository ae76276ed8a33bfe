// What each call to a device costs: medians, as a table for the simulated device's cost model
// (docs/library/devices.md).
//
//   device_cost --device cuda > costs.txt     the GPU 0; host and sim are for trying it out
//
// Remarks of the table have the price of pages by their size, which is what policy:ashlar chooses by.
//
// Every call's answer is checked: an address is aligned, apart from the others and given back; what was recorded is
// done after a synchronise; the memory that is free at the end is what was free at the start.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/host_device.h"
#include "allocator/device/sim_device.h"

namespace ashlar {
namespace {

constexpr int kRepeats = 40;
constexpr std::uint64_t kSegmentBytes = 20 * kMiB;
constexpr std::uint64_t kPageBytes = 2 * kMiB;
constexpr std::uint64_t kPages = 32;  // of one Map call
constexpr std::uint64_t kLargestPageBytes = 64 * kMiB;

int Wrong(const std::string& what) {
  std::fprintf(stderr, "device_cost: wrong answer: %s\n", what.c_str());
  return 1;
}

class Clock {
 public:
  // Nanoseconds of one call.
  template <typename Call>
  void Time(Call call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    const auto passed = std::chrono::steady_clock::now() - begin;
    ns_.push_back(static_cast<std::uint64_t>(std::chrono::nanoseconds(passed).count()));
  }
  std::uint64_t Median() {
    std::nth_element(ns_.begin(), ns_.begin() + static_cast<std::ptrdiff_t>(ns_.size() / 2), ns_.end());
    return ns_[ns_.size() / 2];
  }

 private:
  std::vector<std::uint64_t> ns_;
};

// Segments are held all at once: an allocator that asks for one has others.
int MeasureSegments(device::Device& device, device::CostModel& costs) {
  Clock alloc, free;
  std::vector<std::uint64_t> addresses;
  for (int i = 0; i < kRepeats; ++i) {
    absl::StatusOr<std::uint64_t> address;
    alloc.Time([&] { address = device.AllocateSegment(kSegmentBytes); });
    if (!address.ok()) return Wrong(std::string(address.status().message()));
    if (*address % 512 != 0) return Wrong("a segment is not aligned");
    addresses.push_back(*address);
  }
  std::vector<std::uint64_t> sorted = addresses;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] - sorted[i - 1] < kSegmentBytes) return Wrong("two segments overlap");
  }
  for (const std::uint64_t address : addresses) {
    absl::Status status;
    free.Time([&] { status = device.FreeSegment(address); });
    if (!status.ok()) return Wrong(std::string(status.message()));
  }
  costs.segment_alloc_ns = alloc.Median();
  costs.segment_free_ns = free.Median();
  return 0;
}

int MeasurePages(device::Device& device, device::CostModel& costs) {
  Clock reserve, map, unmap;
  for (int i = 0; i < kRepeats; ++i) {
    absl::StatusOr<std::uint64_t> address;
    reserve.Time([&] { address = device.Reserve(kPages * kPageBytes); });
    if (!address.ok()) return Wrong(std::string(address.status().message()));
    const std::uint64_t free_before = device.GetMemoryInfo().free_bytes;
    absl::Status status;
    map.Time([&] { status = device.Map(*address, kPages * kPageBytes, kPageBytes); });
    if (!status.ok()) return Wrong(std::string(status.message()));
    if (device.GetMemoryInfo().free_bytes + kPages * kPageBytes > free_before) return Wrong("mapping took no memory");
    unmap.Time([&] { status = device.Unmap(*address, kPages * kPageBytes, kPageBytes); });
    if (status.ok()) status = device.ReleaseReservation(*address);
    if (!status.ok()) return Wrong(std::string(status.message()));
  }
  costs.reserve_ns = reserve.Median();
  costs.map_page_ns = map.Median() / kPages;
  costs.unmap_page_ns = unmap.Median() / kPages;
  return 0;
}

// What mapping a page costs by its size: `lines` has a remark for each.
int MeasurePageSizes(device::Device& device, std::string& lines) {
  for (std::uint64_t page_bytes = kPageBytes; page_bytes <= kLargestPageBytes; page_bytes *= 2) {
    const std::uint64_t size_bytes = std::max(kPages / 4 * page_bytes, 4 * kPageBytes);
    const std::uint64_t pages = size_bytes / page_bytes;
    Clock map, unmap;
    for (int i = 0; i < kRepeats; ++i) {
      const absl::StatusOr<std::uint64_t> address = device.Reserve(size_bytes);
      if (!address.ok()) return Wrong(std::string(address.status().message()));
      absl::Status status;
      map.Time([&] { status = device.Map(*address, size_bytes, page_bytes); });
      if (!status.ok()) return Wrong(std::string(status.message()));
      unmap.Time([&] { status = device.Unmap(*address, size_bytes, page_bytes); });
      status.Update(device.ReleaseReservation(*address));
      if (!status.ok()) return Wrong(std::string(status.message()));
    }
    absl::StrAppend(&lines, "# a page of ", page_bytes / kMiB, " MiB: map ", map.Median() / pages, " ns, unmap ",
                    unmap.Median() / pages, " ns\n");
  }
  return 0;
}

int MeasureEvents(device::Device& device, device::CostModel& costs) {
  Clock record, query;
  for (int i = 0; i < kRepeats * 10; ++i) {
    device::DeviceEvent event;
    record.Time([&] { event = device.RecordEvent(Stream{0}); });
    query.Time([&] { (void)device.QueryEvent(event); });
    if (!device.SynchronizeEvent(event).ok() || !device.QueryEvent(event)) return Wrong("an event is not done");
  }
  costs.event_ns = (record.Median() + query.Median()) / 2;  // the model has one price for both
  return 0;
}

int Run(device::Device& device, const std::string& name) {
  // The first calls of a process pay for the context.
  const absl::StatusOr<std::uint64_t> first = device.AllocateSegment(kPageBytes);
  if (!first.ok() || !device.FreeSegment(*first).ok()) return Wrong("no memory to begin with");
  const std::uint64_t free_bytes = device.GetMemoryInfo().free_bytes;
  device::CostModel costs;
  if (MeasureSegments(device, costs) != 0 || MeasurePages(device, costs) != 0 || MeasureEvents(device, costs) != 0) {
    return 1;
  }
  std::string page_sizes;
  if (MeasurePageSizes(device, page_sizes) != 0) return 1;
  if (device.GetMemoryInfo().free_bytes != free_bytes) return Wrong("memory was not given back");
  const std::string text =
      absl::StrCat("# ", name, ": medians of ", kRepeats, " calls\n", page_sizes, device::PrintCosts(costs));
  const absl::StatusOr<device::CostModel> read = device::ReadCosts(text);
  if (!read.ok() || device::PrintCosts(*read) != device::PrintCosts(costs))
    return Wrong("the table does not read back");
  std::fputs(text.c_str(), stdout);
  return 0;
}

int Main(const std::string& which) {
  if (which == "cuda") {
    const auto device = device::CudaDevice::Open({.ordinal = 0});
    if (device.ok()) return Run(**device, "CUDA device 0");
    std::printf("skipped: %s\n", std::string(device.status().message()).c_str());
    return 0;
  }
  if (which == "host") {
    device::HostDevice device({.capacity_bytes = 2 * kGiB});
    return Run(device, "host memory");
  }
  if (which == "sim") {
    device::SimDevice device({.capacity_bytes = 2 * kGiB});
    return Run(device, "simulated device");
  }
  std::fprintf(stderr, "device_cost: --device %s: use cuda, host or sim\n", which.c_str());
  return 2;
}

}  // namespace
}  // namespace ashlar

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--device") return ashlar::Main(argv[2]);
  std::fprintf(stderr, "usage: device_cost --device cuda|host|sim\n");
  return 2;
}
