// Growth by mapping pages into expandable segments, and the way back.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"

namespace ashlar::core {

policy::Block* CachingAllocator::GrowExpandable(const policy::Plan& plan) {
  policy::Block* block = heap_.FindGrowth(plan);
  if (block == nullptr) block = NewReservation(plan);
  if (block == nullptr) return nullptr;
  if (block->state == policy::BlockState::kUnmapped) {
    block = MapBlock(block, std::min(block->size_bytes, plan.rounded_bytes));
  }
  while (block != nullptr && block->size_bytes < plan.rounded_bytes) {
    policy::Block* unmapped = block->next;
    if (unmapped == nullptr) return Fail(Growth::kOutOfMemory);  // the reservation is smaller than the request
    block = MapBlock(unmapped, std::min(plan.rounded_bytes - block->size_bytes, unmapped->size_bytes));
  }
  if (block != nullptr) heap_.TakeFree(block);
  return block;
}

// The block that holds the pages mapped, merged with its free neighbours; nullptr when the device has no memory.
policy::Block* CachingAllocator::MapBlock(policy::Block* unmapped, std::uint64_t wanted_bytes) {
  const policy::Segment& segment = *unmapped->segment;
  const policy::Lane& lane = *segment.lane;
  const std::uint64_t address = unmapped->address;
  const std::uint64_t size_bytes = RoundUp(wanted_bytes, segment.page_bytes);
  if (absl::Status status = device_->Map(address, size_bytes, segment.page_bytes); !status.ok()) {
    if (absl::IsResourceExhausted(status)) return Refused(size_bytes);
    device_error_ = status;
    return Fail(Growth::kDeviceError);
  }
  policy::Block* block = heap_.MarkMapped(unmapped, size_bytes);
  stats_.reserved_bytes.Add(lane.pool->is_small, static_cast<std::int64_t>(size_bytes));
  ++stats_.num_device_alloc;
  Emit(trace::Action::kSegmentMap, address, size_bytes, lane.stream, *lane.pool);
  return block;
}

// 9/8 of the device's memory, so that pages unmapped early can be mapped again at the end; whole pages.
std::uint64_t CachingAllocator::ReservationBytes(std::uint64_t page_bytes) const {
  std::uint64_t bytes = total_bytes_ + total_bytes_ / 8;
  const policy::ExpandableReserve& reserve = options().expandable_reserve;
  if (reserve.bytes.has_value()) bytes = std::min(bytes, *reserve.bytes);
  if (reserve.fraction_of_total.has_value()) {
    const double wanted = *reserve.fraction_of_total * static_cast<double>(total_bytes_);
    if (wanted < static_cast<double>(bytes)) bytes = static_cast<std::uint64_t>(wanted);
  }
  return RoundUp(std::max<std::uint64_t>(bytes, 1), page_bytes);
}

policy::Block* CachingAllocator::NewReservation(const policy::Plan& plan) {
  const std::uint64_t page_bytes = policy::PageBytes(plan.pool->is_small, options());
  const std::uint64_t size_bytes = ReservationBytes(page_bytes);
  const bool keeps_short_ones = options().compat == policy::Compat::kTorch26;
  absl::StatusOr<std::uint64_t> address = device_->Reserve(size_bytes);
  if (!address.ok()) {
    if (absl::IsResourceExhausted(address.status())) return Refused(size_bytes);
    device_error_ = address.status();
    return Fail(Growth::kDeviceError);
  }
  if (size_bytes < plan.rounded_bytes && !keeps_short_ones) {
    unreported_error_.Update(device_->ReleaseReservation(*address));
    return Fail(Growth::kOutOfMemory);
  }
  policy::Block* block = heap_.AddReservation(plan, *address, size_bytes, page_bytes);
  EmitFact(trace::FactKind::kReserved, *address);
  return block;
}

absl::Status CachingAllocator::UnmapBlock(policy::Block* block) {
  const policy::AddressRange range = policy::Heap::WholePages(block);
  if (range.size_bytes == 0) return absl::OkStatus();
  const policy::Segment& segment = *block->segment;
  const policy::Lane& lane = *segment.lane;
  if (absl::Status status = device_->SynchronizeStream(lane.stream); !status.ok()) return status;
  absl::Status status = device_->Unmap(range.address, range.size_bytes, segment.page_bytes);
  stats_.reserved_bytes.Subtract(lane.pool->is_small, static_cast<std::int64_t>(range.size_bytes));
  ++stats_.num_device_free;
  policy::Block* unmapped = heap_.MarkUnmapped(block, range);
  Emit(trace::Action::kSegmentUnmap, range.address, range.size_bytes, lane.stream, *lane.pool);
  if (!unmapped->IsSplit()) status.Update(ReleaseReservation(unmapped));
  return status;
}

absl::Status CachingAllocator::ReleaseReservation(policy::Block* unmapped) {
  policy::Lane& lane = *unmapped->segment->lane;
  const std::uint64_t begin = unmapped->address;
  const std::uint64_t end = unmapped->End();
  absl::Status status = device_->ReleaseReservation(begin);
  heap_.RemoveReservation(unmapped);
  ForgetIfEmpty(lane, begin, end);
  return status;
}

}  // namespace ashlar::core
