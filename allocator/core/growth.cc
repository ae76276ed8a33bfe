#include "allocator/core/growth.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"

namespace ashlar::core {

Growth DeviceGrowth::Grow(const policy::Plan& plan) {
  const std::uint64_t reserved_bytes = ledger_.heap().reserved_bytes();
  const std::uint64_t bytes = GrowthBytes(plan);
  if (limits_.AreExceeded(reserved_bytes, bytes)) return Refused(bytes);
  if (limits_.Reject(reserved_bytes, bytes)) return {.refusal = Refusal::kRejected};
  return ledger_.options().expandable_segments ? GrowExpandable(plan) : NewSegment(plan);
}

// What the limits are held against: PyTorch counts the segment that it would take without expandable segments.
std::uint64_t DeviceGrowth::GrowthBytes(const policy::Plan& plan) const {
  if (ledger_.options().policy == policy::Policy::kTorch) return plan.segment_bytes;
  return ledger_.heap().FindLeastGrowth(plan).map_bytes;
}

Growth DeviceGrowth::Refused(std::uint64_t bytes) {
  ledger_.Note(trace::fact::GrowthRefused{bytes});
  return {.refusal = Refusal::kOutOfMemory};
}

Growth DeviceGrowth::Failed(const absl::Status& status, std::uint64_t bytes) {
  if (absl::IsResourceExhausted(status)) return Refused(bytes);
  return {.refusal = Refusal::kDeviceError, .error = status};
}

Growth DeviceGrowth::NewSegment(const policy::Plan& plan) {
  const absl::StatusOr<std::uint64_t> address = device_.AllocateSegment(plan.segment_bytes);
  if (!address.ok()) return Failed(address.status(), plan.segment_bytes);
  return {.block = ledger_.AddSegment(plan, *address)};
}

Growth DeviceGrowth::GrowExpandable(const policy::Plan& plan) {
  Growth grown{.block = ledger_.heap().FindGrowth(plan)};
  if (grown.block == nullptr) grown = NewReservation(plan);
  if (grown.block == nullptr) return grown;
  if (grown.block->state == policy::BlockState::kUnmapped) {
    grown = Map(grown.block, std::min(grown.block->size_bytes, plan.rounded_bytes));
  }
  while (grown.block != nullptr && grown.block->size_bytes < plan.rounded_bytes) {
    policy::Block* unmapped = grown.block->next;
    if (unmapped == nullptr) return {.refusal = Refusal::kOutOfMemory};  // the reservation is smaller than the request
    grown = Map(unmapped, std::min(plan.rounded_bytes - grown.block->size_bytes, unmapped->size_bytes));
  }
  if (grown.block != nullptr) policy::Heap::TakeFree(grown.block);
  return grown;
}

// The block that holds the pages mapped, merged with its free neighbours. Other programs take memory too: what is
// refused in large pages is asked for in small ones.
Growth DeviceGrowth::Map(policy::Block* unmapped, std::uint64_t wanted_bytes) {
  const std::uint64_t reserved_bytes = ledger_.heap().reserved_bytes();
  const policy::GrowthNeed need{.wanted_bytes = wanted_bytes,
                                .room_bytes = unmapped->size_bytes,
                                .reserved_bytes = reserved_bytes,
                                .spare_bytes = limits_.SpareBytes(reserved_bytes),
                                .page_bytes = unmapped->segment->page_bytes,
                                .is_small = unmapped->is_small};
  const policy::GrowthSize least = policy::LeastGrowth(need);
  const policy::GrowthSize size = policy::GrowthOf(need, ledger_.options());
  Growth mapped = Map(unmapped, size);
  return mapped.refusal == Refusal::kOutOfMemory && size.page_bytes > least.page_bytes ? Map(unmapped, least) : mapped;
}

Growth DeviceGrowth::Map(policy::Block* unmapped, const policy::GrowthSize& size) {
  const absl::Status status = device_.Map(unmapped->address, size.size_bytes, size.page_bytes);
  if (!status.ok()) return Failed(status, size.size_bytes);
  return {.block = ledger_.MarkMapped(unmapped, size.size_bytes, size.page_bytes)};
}

// 9/8 of the device's memory, so that pages unmapped early can be mapped again at the end; whole pages.
std::uint64_t DeviceGrowth::ReservationBytes(std::uint64_t page_bytes) const {
  const std::uint64_t total_bytes = limits_.total_bytes();
  std::uint64_t bytes = total_bytes + total_bytes / 8;
  const policy::ExpandableReserve& reserve = ledger_.options().expandable_reserve;
  if (reserve.bytes.has_value()) bytes = std::min(bytes, *reserve.bytes);
  if (reserve.fraction_of_total.has_value()) {
    const double wanted = *reserve.fraction_of_total * static_cast<double>(total_bytes);
    if (wanted < static_cast<double>(bytes)) bytes = static_cast<std::uint64_t>(wanted);
  }
  return RoundUp(std::max<std::uint64_t>(bytes, 1), page_bytes);
}

Growth DeviceGrowth::NewReservation(const policy::Plan& plan) {
  const std::uint64_t page_bytes = policy::PageBytes(plan.pool->is_small, ledger_.options());
  const std::uint64_t size_bytes = ReservationBytes(page_bytes);
  const bool keeps_short_ones =
      ledger_.options().compat == policy::Compat::kTorch26 && ledger_.options().policy == policy::Policy::kTorch;
  const absl::StatusOr<std::uint64_t> address = device_.Reserve(size_bytes);
  if (!address.ok()) return Failed(address.status(), size_bytes);
  if (size_bytes < plan.rounded_bytes && !keeps_short_ones) {
    errors_.Note(device_.ReleaseReservation(*address));
    return {.refusal = Refusal::kOutOfMemory};
  }
  return {.block = ledger_.AddReservation(plan, *address, size_bytes, page_bytes)};
}

}  // namespace ashlar::core
