#include "analyzer/replay/recorded_device.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace ashlar::replay {
namespace {

using trace::Action;
using trace::Event;

// The ladder asks the device at most three times.
constexpr int kMostRefusals = 2;

bool IsGrowthEvent(const Event& event) {
  return event.action == Action::kSegmentAlloc || event.action == Action::kSegmentMap;
}

// What the device is asked for next, or refuses.
bool IsAnswer(const Event& event) {
  return IsGrowthEvent(event) || event.action == Action::kOom || event.action == Action::kAnnotate;
}

bool IsSame(const Event& a, const Event& b) {
  // A completed free is known by its block alone.
  return a.action == b.action && a.address == b.address &&
         (a.size_bytes == b.size_bytes || a.action == Action::kFreeCompleted);
}

device::SimDeviceOptions Options(std::optional<std::uint64_t> capacity_bytes,
                                 std::function<std::optional<std::uint64_t>(std::uint64_t)> recorded_address) {
  device::SimDeviceOptions options;
  options.capacity_bytes = capacity_bytes.value_or(std::uint64_t{1} << 62);  // the record says when memory ran out
  options.recorded_address = std::move(recorded_address);
  return options;
}

absl::Status OutOfMemory() { return absl::ResourceExhaustedError("out of memory, as recorded"); }

}  // namespace

Script GrowthOf(Script script) {
  Script out;
  for (const Event& answer : script) {
    if (IsGrowthEvent(answer) || answer.action == Action::kAnnotate) out.push_back(answer);
  }
  return out;
}

RecordedDevice::RecordedDevice(std::optional<std::uint64_t> total_bytes, std::optional<std::uint64_t> capacity_bytes)
    : sim_(Options(capacity_bytes, [this](std::uint64_t) { return std::exchange(next_address_, std::nullopt); })),
      total_bytes_(total_bytes) {}

void RecordedDevice::Begin(Script script, std::optional<std::uint64_t> oom_free_bytes) {
  script_ = std::move(script);
  oom_free_bytes_ = oom_free_bytes;
  refusals_ = 0;
  is_logged_ = gives_up_ = false;
}

void RecordedDevice::BeginLogged(Script script, std::optional<std::uint64_t> oom_free_bytes, bool gives_up) {
  Begin(std::move(script), oom_free_bytes);
  is_logged_ = true;
  gives_up_ = gives_up;
}

void RecordedDevice::SawRefusal() {
  if (script_.empty()) return;
  const auto it = std::find_if(script_.begin(), script_.end(), IsAnswer);
  if (it != script_.end() && it->action == Action::kOom) script_.erase(it);
}

void RecordedDevice::Saw(const Event& event) {
  if (script_.empty()) return;
  const auto growth = std::find_if(script_.begin(), script_.end(), IsAnswer);
  const auto it = std::find_if(script_.begin(), growth, [&](const Event& e) { return IsSame(e, event); });
  if (it != growth) script_.erase(it);
}

absl::Status RecordedDevice::Refusal() {
  if (!is_logged_) return IsOutOfMemory() ? OutOfMemory() : absl::OkStatus();
  while (!script_.empty() && !IsAnswer(script_.front())) script_.pop_front();
  if (!script_.empty()) return script_.front().action == Action::kOom ? OutOfMemory() : absl::OkStatus();
  if (gives_up_) return absl::UnknownError("the device failed, as recorded");
  return oom_free_bytes_.has_value() ? OutOfMemory() : absl::OkStatus();
}

bool RecordedDevice::IsOutOfMemory() {
  const bool is_release_next = !script_.empty() && !IsGrowthEvent(script_.front());
  if (is_release_next && (oom_free_bytes_.has_value() || refusals_ < kMostRefusals)) {
    ++refusals_;
    return true;
  }
  while (!script_.empty() && !IsGrowthEvent(script_.front())) script_.pop_front();
  return script_.empty() && oom_free_bytes_.has_value();
}

absl::StatusOr<std::uint64_t> RecordedDevice::AllocateSegment(std::uint64_t size_bytes) {
  if (absl::Status refused = Refusal(); !refused.ok()) return refused;
  if (!script_.empty() && script_.front().action == Action::kSegmentAlloc && script_.front().size_bytes == size_bytes) {
    next_address_ = script_.front().address;
    ++addresses_used_;
    script_.pop_front();
  }
  absl::StatusOr<std::uint64_t> address = sim_.AllocateSegment(size_bytes);
  if (!address.ok() || bases_.insert(*address).second) return address;
  // Segments and reservations have spaces of their own, so that recorded ones may be as close as they were.
  if (absl::Status status = sim_.FreeSegment(*address); !status.ok()) return status;
  return OutOfMemory();
}

// Where the record does not say more, a reservation begins where the first of its pages is mapped. One that has a
// segment in its place is of a device without virtual memory management.
absl::StatusOr<std::uint64_t> RecordedDevice::Reserve(std::uint64_t size_bytes) {
  if (absl::Status refused = Refusal(); !refused.ok()) return refused;
  if (is_logged_ && !script_.empty() && script_.front().action == Action::kSegmentAlloc) {
    return absl::UnimplementedError("no virtual memory management, as recorded");
  }
  if (!script_.empty() && script_.front().action == (is_logged_ ? Action::kAnnotate : Action::kSegmentMap)) {
    next_address_ = script_.front().address;
    ++addresses_used_;
    if (is_logged_) script_.pop_front();
  }
  absl::StatusOr<std::uint64_t> address = sim_.Reserve(size_bytes);
  if (!address.ok() || bases_.insert(*address).second) return address;
  if (absl::Status status = sim_.ReleaseReservation(*address); !status.ok()) return status;
  return OutOfMemory();
}

absl::Status RecordedDevice::Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  if (absl::Status refused = Refusal(); !refused.ok()) return refused;
  if (size_bytes > kMostMappedBytes || sim_.used_bytes() > kMostMappedBytes - size_bytes) return OutOfMemory();
  if (!script_.empty() && script_.front().action == Action::kSegmentMap) script_.pop_front();
  return sim_.Map(address, size_bytes, page_bytes);
}

device::MemoryInfo RecordedDevice::GetMemoryInfo() {
  device::MemoryInfo info = sim_.GetMemoryInfo();
  info.total_bytes = total_bytes_.value_or(info.total_bytes);
  if (oom_free_bytes_.has_value()) info.free_bytes = *oom_free_bytes_;
  return info;
}

}  // namespace ashlar::replay
