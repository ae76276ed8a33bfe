// A simulated device: capacity, granularity, a documented address rule, events that complete when told to, a failure
// on demand, call counts and a cost model. It is stricter than hardware: freeing what is not allocated, unmapping
// what is not mapped and releasing a reservation with memory behind it abort with the call's name.
//
//   AllocateSegment, Reserve   as device_memory.h says, reservations at or above `base_address` + 2^44
//   Map                        charges the mapped bytes or fails with nothing mapped
//   SetCapturing               until it ends, calls that return memory, wait or name an event abort
//   QueryEvent                 true if recorded before the last CompleteAllWork, or covered by a synchronise or
//                              CompleteStream, or `events_complete_immediately`
//
// Example:  SimDevice device({.capacity_bytes = 16 * kGiB});
#ifndef ASHLAR_ALLOCATOR_DEVICE_SIM_DEVICE_H_
#define ASHLAR_ALLOCATOR_DEVICE_SIM_DEVICE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/device/address_space.h"
#include "allocator/device/device.h"
#include "allocator/device/device_memory.h"
#include "allocator/device/stream_clock.h"

namespace ashlar::device {

// Nanoseconds a call is taken to cost. The defaults are for ranking settings, not a forecast. cudaMalloc, cudaFree:
// 100,000 random calls took 6,649 ms (rapidsai/rmm issue 284). Mapping: 256 handles of 2 MiB in 20 ms, 477 in 40 ms
// (antgroup/glake issue 22); unmapping is taken to cost the same. An event call: 300 ns (order of magnitude).
struct CostModel {
  std::uint64_t segment_alloc_ns = 66'000;
  std::uint64_t segment_free_ns = 66'000;
  std::uint64_t map_page_ns = 80'000;
  std::uint64_t unmap_page_ns = 80'000;
  std::uint64_t reserve_ns = 10'000;
  std::uint64_t event_ns = 300;
};

struct SimDeviceOptions {
  std::uint64_t capacity_bytes = std::uint64_t{80} * kGiB;
  std::uint64_t outside_bytes = 0;  // that the device has besides, and others hold: the CUDA context
  std::uint64_t granularity_bytes = 2 * kMiB;
  std::uint64_t base_address = 0x7f0000000000;
  AddressOrder address_order = AddressOrder::kAscending;
  bool events_complete_immediately = false;
  CostModel cost = {};
  // Where the next segment or reservation goes, for replays of recorded addresses; nothing = the rule above.
  std::function<std::optional<std::uint64_t>(std::uint64_t size_bytes)> recorded_address = {};
};

struct DeviceCalls {
  std::uint64_t segment_alloc = 0;  // failed ones too
  std::uint64_t segment_free = 0;
  std::uint64_t map_pages = 0;
  std::uint64_t unmap_pages = 0;
  std::uint64_t reserve = 0;
  std::uint64_t record_event = 0;
  std::uint64_t query_event = 0;
  std::uint64_t synchronize = 0;
  std::uint64_t stream_wait = 0;
  // Calls that obtain or return memory.
  std::uint64_t MemoryCalls() const { return segment_alloc + segment_free + map_pages + unmap_pages; }
};

class SimDevice final : public Device {
 public:
  explicit SimDevice(SimDeviceOptions options);

  absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) override;
  absl::Status FreeSegment(std::uint64_t address) override;
  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) override;
  absl::Status ReleaseReservation(std::uint64_t address) override;
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override;
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override;
  MemoryInfo GetMemoryInfo() override;
  DeviceEvent RecordEvent(Stream stream) override;
  bool QueryEvent(const DeviceEvent& event) override;
  absl::Status SynchronizeEvent(const DeviceEvent& event) override;
  absl::Status SynchronizeStream(Stream stream) override;
  absl::Status MakeStreamWait(Stream stream, Stream awaited) override;
  // There are no contents: nothing is copied, and the host's side is not touched.
  absl::Status CopyToHost(void*, std::uint64_t, std::uint64_t, Stream) override { return absl::OkStatus(); }
  absl::Status CopyToDevice(std::uint64_t, const void*, std::uint64_t, Stream) override { return absl::OkStatus(); }
  void SetCapturing(bool is_capturing) override { is_capturing_ = is_capturing; }

  // All work recorded so far, on every stream, is done.
  void CompleteAllWork();
  // All work recorded so far on one stream is done.
  void CompleteStream(Stream stream) { SynchronizeStream(stream).IgnoreError(); }
  // Which streams finished work since this was asked last. The others' events need not be queried: an owner that leaves
  // that out counts what it would have cost.
  StreamNews TakeNews() { return clock_.TakeNews(); }
  void CountQueries(std::uint64_t count);
  // A segment that exists before the replay begins: charged and taken at its recorded address. InvalidArgument when
  // the range is outside the address space or taken.
  absl::Status AdoptSegment(std::uint64_t address, std::uint64_t size_bytes);
  // The same for a reservation, then for each mapped range of it, which must lie on the reservation's page grid.
  absl::Status AdoptReservation(std::uint64_t address, std::uint64_t size_bytes);
  absl::Status AdoptMapping(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes);
  // While set, every call that obtains memory answers out of memory.
  void RefuseMemory(bool refuse) { refuses_memory_ = refuse; }
  // The call number `n` from now (0 = the next) of the calls that obtain memory or address space fails with `status`.
  void FailCall(std::uint64_t n, absl::Status status);

  const DeviceCalls& calls() const { return calls_; }
  std::uint64_t cost_ns() const { return cost_ns_; }
  std::uint64_t used_bytes() const { return memory_.used_bytes(); }

 private:
  absl::Status InjectedFailure();

  SimDeviceOptions options_;
  DeviceMemory memory_;
  StreamClock clock_;
  std::uint64_t cost_ns_ = 0;
  DeviceCalls calls_;
  bool refuses_memory_ = false;
  bool is_capturing_ = false;
  std::optional<std::uint64_t> fail_in_;
  absl::Status fail_status_;
};

// The simulated device's cost model as text, so that costs measured on one machine rank settings on another:
//
//   # NVIDIA H100: medians of 40 calls
//   segment_alloc_ns 61234
//   segment_free_ns 48111
//   ...
//
// A line is a key and nanoseconds; what # begins is a remark. What is not named keeps its default. InvalidArgument with
// the line's number: an unknown key, a key that stands twice, no number; or without any cost at all.

absl::StatusOr<CostModel> ReadCosts(absl::string_view text);
std::string PrintCosts(const CostModel& costs);

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_SIM_DEVICE_H_
