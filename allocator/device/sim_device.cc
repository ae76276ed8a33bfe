#include "allocator/device/sim_device.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/check.h"

namespace ashlar::device {
namespace {

absl::Status OutOfMemory(const char* call, std::uint64_t size_bytes, std::uint64_t free_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(call, "(", size_bytes, ") failed: ", free_bytes, " bytes are free on the simulated device"));
}

absl::Status CannotAdopt(const char* what, std::uint64_t address, std::uint64_t size_bytes) {
  return absl::InvalidArgumentError(absl::StrCat("no ", what, " of ", size_bytes, " bytes can stand at address ",
                                                 address, " of the simulated device"));
}

absl::Status NoAddresses() { return absl::ResourceExhaustedError("the simulated device has no address range left"); }

DeviceMemoryOptions MemoryOptions(const SimDeviceOptions& options) {
  DeviceMemoryOptions out;
  out.capacity_bytes = options.capacity_bytes;
  out.granularity_bytes = options.granularity_bytes;
  out.base_address = options.base_address;
  out.address_order = options.address_order;
  out.recorded_address = options.recorded_address;
  return out;
}

}  // namespace

SimDevice::SimDevice(SimDeviceOptions options) : options_(std::move(options)), memory_(MemoryOptions(options_)) {}

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

absl::StatusOr<std::uint64_t> SimDevice::AllocateSegment(std::uint64_t size_bytes) {
  ++calls_.segment_alloc;
  cost_ns_ += options_.cost.segment_alloc_ns;
  if (absl::Status injected = InjectedFailure(); !injected.ok()) return injected;
  const std::uint64_t free_bytes = memory_.FreeBytes();
  const PlacedMemory placed = memory_.AllocateSegment(size_bytes);
  if (placed.verdict == MemoryVerdict::kOutOfMemory) return OutOfMemory("AllocateSegment", size_bytes, free_bytes);
  if (placed.verdict != MemoryVerdict::kDone) return NoAddresses();
  return placed.address;
}

absl::Status SimDevice::AdoptSegment(std::uint64_t address, std::uint64_t size_bytes) {
  const MemoryVerdict verdict = memory_.AdoptSegment(address, size_bytes);
  return verdict == MemoryVerdict::kDone ? absl::OkStatus() : CannotAdopt("segment", address, size_bytes);
}

absl::Status SimDevice::AdoptReservation(std::uint64_t address, std::uint64_t size_bytes) {
  const MemoryVerdict verdict = memory_.AdoptReservation(address, size_bytes);
  return verdict == MemoryVerdict::kDone ? absl::OkStatus() : CannotAdopt("reservation", address, size_bytes);
}

absl::Status SimDevice::AdoptMapping(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  const MemoryVerdict verdict = memory_.AdoptPages(address, size_bytes, page_bytes);
  return verdict == MemoryVerdict::kDone ? absl::OkStatus() : CannotAdopt("mapping", address, size_bytes);
}

absl::Status SimDevice::FreeSegment(std::uint64_t address) {
  ASHLAR_CHECK(!is_capturing_);
  ++calls_.segment_free;
  cost_ns_ += options_.cost.segment_free_ns;
  ASHLAR_CHECK(memory_.FreeSegment(address) == MemoryVerdict::kDone);
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> SimDevice::Reserve(std::uint64_t size_bytes) {
  ++calls_.reserve;
  cost_ns_ += options_.cost.reserve_ns;
  if (absl::Status injected = InjectedFailure(); !injected.ok()) return injected;
  const PlacedMemory placed = memory_.Reserve(size_bytes);
  if (placed.verdict != MemoryVerdict::kDone) return NoAddresses();
  return placed.address;
}

absl::Status SimDevice::ReleaseReservation(std::uint64_t address) {
  ASHLAR_CHECK(memory_.ReleaseReservation(address) == MemoryVerdict::kDone);
  return absl::OkStatus();
}

absl::Status SimDevice::Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  if (absl::Status injected = InjectedFailure(); !injected.ok()) return injected;
  if (page_bytes % options_.granularity_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a page of ", page_bytes, " bytes is no multiple of the device's ",
                                                   options_.granularity_bytes, " byte granularity"));
  }
  ASHLAR_CHECK_EQ(size_bytes % page_bytes, std::uint64_t{0});
  const std::uint64_t free_bytes = memory_.FreeBytes();
  if (memory_.Charge(size_bytes) != MemoryVerdict::kDone) return OutOfMemory("Map", size_bytes, free_bytes);
  ASHLAR_CHECK(memory_.TakePages(address, size_bytes) == MemoryVerdict::kDone);
  calls_.map_pages += size_bytes / page_bytes;
  cost_ns_ += options_.cost.map_page_ns * (size_bytes / page_bytes);
  return absl::OkStatus();
}

absl::Status SimDevice::Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  ASHLAR_CHECK(!is_capturing_);
  ASHLAR_CHECK(memory_.GivePages(address, size_bytes) == MemoryVerdict::kDone);
  memory_.Discharge(size_bytes);
  calls_.unmap_pages += size_bytes / page_bytes;
  cost_ns_ += options_.cost.unmap_page_ns * (size_bytes / page_bytes);
  return absl::OkStatus();
}

MemoryInfo SimDevice::GetMemoryInfo() {
  return {memory_.FreeBytes(), options_.capacity_bytes + options_.outside_bytes};
}

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

void SimDevice::CountQueries(std::uint64_t count) {
  calls_.query_event += count;
  cost_ns_ += count * options_.cost.event_ns;
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

namespace {

struct Key {
  absl::string_view name;
  std::uint64_t CostModel::*ns;
};
constexpr Key kKeys[] = {
    {"segment_alloc_ns", &CostModel::segment_alloc_ns},
    {"segment_free_ns", &CostModel::segment_free_ns},
    {"map_page_ns", &CostModel::map_page_ns},
    {"unmap_page_ns", &CostModel::unmap_page_ns},
    {"reserve_ns", &CostModel::reserve_ns},
    {"event_ns", &CostModel::event_ns},
};

absl::Status Bad(std::size_t line, absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": '", text, "': ", what));
}

}  // namespace

absl::StatusOr<CostModel> ReadCosts(absl::string_view text) {
  CostModel out;
  std::set<absl::string_view> seen;
  std::size_t number = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    std::uint64_t ns = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[1], &ns)) {
      return Bad(number, line, "write a key and nanoseconds, such as segment_alloc_ns 66000");
    }
    if (!seen.insert(words[0]).second) return Bad(number, line, "the key stands twice; leave one");
    const Key* found = nullptr;
    for (const Key& key : kKeys) found = key.name == words[0] ? &key : found;
    if (found == nullptr) return Bad(number, line, "no such key; device_cost prints all there are");
    out.*found->ns = ns;
  }
  if (seen.empty()) return absl::InvalidArgumentError("there is no cost in it; device_cost prints such a table");
  return out;
}

std::string PrintCosts(const CostModel& costs) {
  std::string out;
  for (const Key& key : kKeys) absl::StrAppend(&out, key.name, " ", costs.*key.ns, "\n");
  return out;
}

}  // namespace ashlar::device
