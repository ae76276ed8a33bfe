#include "allocator/device/sim_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kReservationOffset = std::uint64_t{1} << 44;
constexpr std::uint64_t kSpaceEnd = std::uint64_t{1} << 62;

absl::Status OutOfMemory(const char* call, std::uint64_t size_bytes, std::uint64_t free_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(call, "(", size_bytes, ") failed: ", free_bytes, " bytes are free on the simulated device"));
}

absl::Status CannotAdopt(const char* what, std::uint64_t address, std::uint64_t size_bytes) {
  return absl::InvalidArgumentError(absl::StrCat("no ", what, " of ", size_bytes, " bytes can stand at address ",
                                                 address, " of the simulated device"));
}

// Recorded addresses may lie anywhere; invented ones start at the base address plus `offset`.
std::uint64_t LowestAddress(const SimDeviceOptions& options, std::uint64_t offset) {
  return options.recorded_address ? 1 : options.base_address + offset;
}

}  // namespace

SimDevice::SimDevice(SimDeviceOptions options)
    : options_(std::move(options)),
      segments_space_(LowestAddress(options_, 0),
                      options_.recorded_address ? kSpaceEnd : options_.base_address + kReservationOffset,
                      options_.address_order),
      reservations_space_(LowestAddress(options_, kReservationOffset), kSpaceEnd, AddressOrder::kAscending) {}

absl::Status SimDevice::InjectedFailure() {
  if (refuses_memory_) return absl::ResourceExhaustedError("the simulated device was told to refuse memory");
  if (!fail_in_.has_value()) return absl::OkStatus();
  if (*fail_in_ > 0) {
    --*fail_in_;
    return absl::OkStatus();
  }
  fail_in_.reset();
  return fail_status_;
}

void SimDevice::FailCall(std::uint64_t n, absl::Status status) {
  fail_in_ = n;
  fail_status_ = std::move(status);
}

absl::StatusOr<std::uint64_t> SimDevice::Place(AddressSpace& space, std::uint64_t size_bytes, std::uint64_t lowest) {
  if (options_.recorded_address) {
    const std::optional<std::uint64_t> recorded = options_.recorded_address(size_bytes);
    if (recorded.has_value() && space.TakeAt(*recorded, size_bytes)) return *recorded;
  }
  const std::optional<std::uint64_t> address = space.Take(size_bytes, lowest);
  if (!address.has_value()) return absl::ResourceExhaustedError("the simulated device has no address range left");
  return *address;
}

absl::StatusOr<std::uint64_t> SimDevice::AllocateSegment(std::uint64_t size_bytes) {
  ++calls_.segment_alloc;
  cost_ns_ += options_.cost.segment_alloc_ns;
  if (absl::Status injected = InjectedFailure(); !injected.ok()) return injected;
  const std::uint64_t free_bytes = FreeBytes();
  if (size_bytes > free_bytes || RoundUp(size_bytes, options_.granularity_bytes) > free_bytes) {
    return OutOfMemory("AllocateSegment", size_bytes, free_bytes);
  }
  const std::uint64_t charged = RoundUp(size_bytes, options_.granularity_bytes);
  absl::StatusOr<std::uint64_t> address = Place(segments_space_, charged, options_.base_address);
  if (!address.ok()) return address;
  used_ += charged;
  segments_.emplace(*address, charged);
  return address;
}

absl::Status SimDevice::AdoptSegment(std::uint64_t address, std::uint64_t size_bytes) {
  if (!segments_space_.TakeAt(address, size_bytes)) return CannotAdopt("segment", address, size_bytes);
  used_ += size_bytes;
  segments_.emplace(address, size_bytes);
  return absl::OkStatus();
}

absl::Status SimDevice::AdoptReservation(std::uint64_t address, std::uint64_t size_bytes) {
  if (!reservations_space_.TakeAt(address, size_bytes)) return CannotAdopt("reservation", address, size_bytes);
  AddReservation(address, size_bytes);
  return absl::OkStatus();
}

absl::Status SimDevice::AdoptMapping(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return CannotAdopt("mapping", address, size_bytes);
  --it;
  const bool is_inside = address + size_bytes <= it->first + it->second.size_bytes;
  const bool is_on_grid = (address - it->first) % page_bytes == 0 && size_bytes % page_bytes == 0;
  if (!is_inside || !is_on_grid) return CannotAdopt("mapping", address, size_bytes);
  if (!it->second.unmapped.TakeAt(address, size_bytes)) return CannotAdopt("mapping", address, size_bytes);
  it->second.mapped_bytes += size_bytes;
  used_ += size_bytes;
  return absl::OkStatus();
}

absl::Status SimDevice::FreeSegment(std::uint64_t address) {
  ASHLAR_CHECK(!is_capturing_);
  ++calls_.segment_free;
  cost_ns_ += options_.cost.segment_free_ns;
  const auto it = segments_.find(address);
  ASHLAR_CHECK(it != segments_.end());
  used_ -= it->second;
  segments_space_.Give(address, it->second);
  segments_.erase(it);
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> SimDevice::Reserve(std::uint64_t size_bytes) {
  ++calls_.reserve;
  cost_ns_ += options_.cost.reserve_ns;
  if (absl::Status injected = InjectedFailure(); !injected.ok()) return injected;
  const std::uint64_t rounded = RoundUp(size_bytes, options_.granularity_bytes);
  absl::StatusOr<std::uint64_t> address =
      Place(reservations_space_, rounded, options_.base_address + kReservationOffset);
  if (address.ok()) AddReservation(*address, rounded);
  return address;
}

absl::Status SimDevice::ReleaseReservation(std::uint64_t address) {
  const auto it = reservations_.find(address);
  ASHLAR_CHECK(it != reservations_.end());
  ASHLAR_CHECK_EQ(it->second.mapped_bytes, std::uint64_t{0});
  reservations_space_.Give(address, it->second.size_bytes);
  reservations_.erase(it);
  return absl::OkStatus();
}

void SimDevice::AddReservation(std::uint64_t address, std::uint64_t size_bytes) {
  AddressSpace unmapped(address, address + size_bytes, AddressOrder::kAscending);
  reservations_.emplace(address, Reservation{size_bytes, 0, std::move(unmapped)});
}

SimDevice::Reservation* SimDevice::FindReservation(std::uint64_t address, std::uint64_t size_bytes) {
  auto it = reservations_.upper_bound(address);
  ASHLAR_CHECK(it != reservations_.begin());
  --it;
  ASHLAR_CHECK_LE(address + size_bytes, it->first + it->second.size_bytes);
  return &it->second;
}

absl::Status SimDevice::Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  if (absl::Status injected = InjectedFailure(); !injected.ok()) return injected;
  if (page_bytes % options_.granularity_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a page of ", page_bytes, " bytes is no multiple of the device's ",
                                                   options_.granularity_bytes, " byte granularity"));
  }
  Reservation* reservation = FindReservation(address, size_bytes);
  ASHLAR_CHECK_EQ(size_bytes % page_bytes, std::uint64_t{0});
  const std::uint64_t free_bytes = FreeBytes();
  if (size_bytes > free_bytes) return OutOfMemory("Map", size_bytes, free_bytes);
  ASHLAR_CHECK(reservation->unmapped.TakeAt(address, size_bytes));
  reservation->mapped_bytes += size_bytes;
  calls_.map_pages += size_bytes / page_bytes;
  cost_ns_ += options_.cost.map_page_ns * (size_bytes / page_bytes);
  used_ += size_bytes;
  return absl::OkStatus();
}

absl::Status SimDevice::Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  ASHLAR_CHECK(!is_capturing_);
  Reservation* reservation = FindReservation(address, size_bytes);
  ASHLAR_CHECK_LE(size_bytes, reservation->mapped_bytes);
  reservation->unmapped.Give(address, size_bytes);
  reservation->mapped_bytes -= size_bytes;
  calls_.unmap_pages += size_bytes / page_bytes;
  cost_ns_ += options_.cost.unmap_page_ns * (size_bytes / page_bytes);
  used_ -= size_bytes;
  return absl::OkStatus();
}

MemoryInfo SimDevice::GetMemoryInfo() { return {FreeBytes(), options_.capacity_bytes}; }

DeviceEvent SimDevice::RecordEvent(Stream stream) {
  ASHLAR_CHECK(!is_capturing_);
  ++calls_.record_event;
  cost_ns_ += options_.cost.event_ns;
  const DeviceEvent event = clock_.Record(stream);
  if (options_.events_complete_immediately) clock_.FinishEvent(event);
  return event;
}

bool SimDevice::QueryEvent(const DeviceEvent& event) {
  ASHLAR_CHECK(!is_capturing_);
  ++calls_.query_event;
  cost_ns_ += options_.cost.event_ns;
  return clock_.IsDone(event);
}

absl::Status SimDevice::SynchronizeEvent(const DeviceEvent& event) {
  ASHLAR_CHECK(!is_capturing_);
  ++calls_.synchronize;
  clock_.FinishEvent(event);
  return absl::OkStatus();
}

absl::Status SimDevice::SynchronizeStream(Stream stream) {
  ASHLAR_CHECK(!is_capturing_);
  ++calls_.synchronize;
  clock_.FinishStream(stream);
  return absl::OkStatus();
}

absl::Status SimDevice::MakeStreamWait(Stream stream, Stream awaited) {
  ASHLAR_CHECK(!is_capturing_);
  ++calls_.stream_wait;
  cost_ns_ += options_.cost.event_ns;
  if (!options_.events_complete_immediately) clock_.Wait(stream, awaited);
  return absl::OkStatus();
}

void SimDevice::CompleteAllWork() { clock_.FinishAll(); }

}  // namespace ashlar::device
