#include "hollow/model/device_model.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

namespace ashlar::hollow {
namespace {

constexpr std::uint64_t kAlignment = 512;

}  // namespace

std::optional<std::uint64_t> SmallBlocks::Take(std::uint64_t size_bytes) {
  const std::uint64_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (auto& [page_address, page] : pages_) {
    if (page.free_bytes < rounded) continue;
    const std::optional<std::uint64_t> address = page.free.Take(rounded);
    if (!address.has_value()) continue;
    page.free_bytes -= rounded;
    blocks_.emplace(*address, rounded);
    return address;
  }
  return std::nullopt;
}

void SmallBlocks::AddPage(std::uint64_t address) {
  const device::AddressSpace all(address, address + page_bytes_, device::AddressOrder::kAscending);
  pages_.emplace(address, Page{all, page_bytes_});
}

std::optional<std::uint64_t> SmallBlocks::Give(std::uint64_t address) {
  const auto block = blocks_.find(address);
  const auto page = std::prev(pages_.upper_bound(address));
  page->second.free.Give(address, block->second);
  page->second.free_bytes += block->second;
  blocks_.erase(block);
  if (page->second.free_bytes != page_bytes_) return std::nullopt;
  const std::uint64_t page_address = page->first;
  pages_.erase(page);
  return page_address;
}

namespace {

using device::MemoryVerdict;

constexpr std::uint64_t kGranularity = 2 * kMiB;
constexpr int kMostRepeats = 2;

device::DeviceMemoryOptions MemoryOptions(const DeviceSetup& setup) {
  device::DeviceMemoryOptions out;
  out.capacity_bytes = setup.total_bytes;
  out.granularity_bytes = kGranularity;
  out.base_address = setup.base_address;
  out.reservations_offset = setup.span_bytes / 8;
  out.end_address = setup.base_address + setup.span_bytes;
  out.address_order = setup.address_order;
  return out;
}

}  // namespace

// An allocator that is refused returns its cache and asks again, PyTorch's up to twice.
bool FailurePlan::RequestFailsNow(std::uint64_t asked_bytes) {
  if (fail_request > 0 && --fail_request == 0) {
    refused_bytes = asked_bytes;
    repeats_left = kMostRepeats;
    return true;
  }
  const bool is_repeat = repeats_left > 0 && asked_bytes == refused_bytes;
  repeats_left = is_repeat ? repeats_left - 1 : 0;
  return is_repeat;
}

bool FailurePlan::FailsNow(std::uint64_t used_bytes, std::uint64_t asked_bytes) {
  if (fail_call > 0 && --fail_call == 0) return true;
  if (RequestFailsNow(asked_bytes)) return true;
  return fail_after_bytes > 0 && used_bytes >= fail_after_bytes;
}

DeviceModel::DeviceModel(const DeviceSetup& setup, SharedMachine& shared, FailurePlan& failures)
    : setup_(setup), shared_(shared), failures_(failures), memory_(MemoryOptions(setup)), small_(kGranularity) {}

template <typename Take>
Error DeviceModel::Obtain(std::uint64_t size_bytes, Take take) {
  const SharedMachine::Lock lock(shared_);
  std::uint64_t others = UsedByOthers();
  if (failures_.FailsNow(others + memory_.used_bytes(), size_bytes)) return Answer(Error::kOutOfMemory);
  memory_.SetCapacity(setup_.total_bytes - std::min(others, setup_.total_bytes));
  MemoryVerdict verdict = take();
  if (verdict == MemoryVerdict::kOutOfMemory && others > 0) {
    shared_.ForgetDead();
    others = UsedByOthers();
    memory_.SetCapacity(setup_.total_bytes - std::min(others, setup_.total_bytes));
    verdict = take();
  }
  if (verdict != MemoryVerdict::kDone) return Answer(Error::kOutOfMemory);
  shared_.SetMine(setup_.ordinal, memory_.used_bytes());
  return Error::kNone;
}

void DeviceModel::Publish() {
  const SharedMachine::Lock lock(shared_);
  shared_.SetMine(setup_.ordinal, memory_.used_bytes());
}

Error DeviceModel::UseContext() {
  if (has_context_) return Error::kNone;
  // A context is not what a test of out-of-memory handling means.
  const Error error =
      Unasked([&] { return Obtain(setup_.context_bytes, [&] { return memory_.Charge(setup_.context_bytes); }); });
  has_context_ = error == Error::kNone;
  return Answer(error);
}

void DeviceModel::DropContext() {
  memory_ = device::DeviceMemory(MemoryOptions(setup_));
  small_ = SmallBlocks(kGranularity);
  held_.clear();
  streams_made_ = 0;
  has_context_ = false;
  Publish();
}

Error DeviceModel::AllocateSegment(std::uint64_t size_bytes, std::uint64_t* address) {
  return Obtain(size_bytes, [&] {
    const device::PlacedMemory placed = memory_.AllocateSegment(size_bytes);
    if (placed.verdict == MemoryVerdict::kDone) *address = placed.address;
    return placed.verdict;
  });
}

void DeviceModel::FreeSegment(std::uint64_t address) {
  memory_.FreeSegment(address);
  Publish();
}

void DeviceModel::Hold(std::uint64_t size_bytes) {
  const std::optional<std::uint64_t> address = memory_.HoldAddresses(size_bytes);
  if (address.has_value()) held_.emplace(last_hold_, Held{*address, size_bytes});
}

std::uint64_t DeviceModel::HoldForStream() {
  ++last_hold_;
  if (streams_made_++ % kStreamsOfHold == 0) Hold(kStreamsHold);
  return last_hold_;
}

std::uint64_t DeviceModel::HoldForCublas() {
  ++last_hold_;
  for (const std::uint64_t size_bytes : kCublasHolds) Hold(size_bytes);
  return last_hold_;
}

void DeviceModel::ReturnHold(std::uint64_t hold) {
  const auto [first, last] = held_.equal_range(hold);
  for (auto it = first; it != last; ++it) memory_.ReturnAddresses(it->second.address, it->second.size_bytes);
  held_.erase(first, last);
}

Error DeviceModel::Ask(std::uint64_t size_bytes) {
  return Answer(failures_.FailsNow(UsedBytes(), size_bytes) ? Error::kOutOfMemory : Error::kNone);
}

Error DeviceModel::Allocate(std::uint64_t size_bytes, std::uint64_t* address) {
  if (size_bytes >= kGranularity) return AllocateSegment(size_bytes, address);
  if (const Error error = Ask(size_bytes); error != Error::kNone) return error;
  std::optional<std::uint64_t> block = small_.Take(size_bytes);
  if (!block.has_value()) {
    std::uint64_t page = 0;
    const Error error = Unasked([&] { return AllocateSegment(kGranularity, &page); });
    if (error != Error::kNone) return Answer(error);
    small_.AddPage(page);
    block = small_.Take(size_bytes);
  }
  *address = *block;
  return Error::kNone;
}

Error DeviceModel::Free(std::uint64_t address) {
  if (small_.Has(address)) {
    if (const std::optional<std::uint64_t> page = small_.Give(address); page.has_value()) FreeSegment(*page);
    return Error::kNone;
  }
  if (memory_.FreeSegment(address) != MemoryVerdict::kDone) return Error::kInvalidValue;
  Publish();
  return Error::kNone;
}

Error DeviceModel::Charge(std::uint64_t size_bytes) {
  return Obtain(size_bytes, [&] { return memory_.Charge(size_bytes); });
}

void DeviceModel::Discharge(std::uint64_t size_bytes) {
  memory_.Discharge(size_bytes);
  Publish();
}

std::uint64_t DeviceModel::UsedBytes() {
  const SharedMachine::Lock lock(shared_);
  return UsedByOthers() + memory_.used_bytes();
}

std::uint64_t DeviceModel::FreeBytes() {
  const std::uint64_t used = UsedBytes();
  return used > setup_.total_bytes ? 0 : setup_.total_bytes - used;
}

Error DeviceLimits::Get(int limit, std::size_t* value) const {
  if (limit < 0 || limit >= static_cast<int>(values_.size())) return Error::kInvalidValue;
  *value = values_[static_cast<std::size_t>(limit)];
  return Error::kNone;
}

Error DeviceLimits::Set(int limit, std::size_t value, std::uint64_t resident_threads, DeviceModel& device) {
  if (limit < 0 || limit >= static_cast<int>(values_.size())) return Error::kInvalidValue;
  if (limit == kStack) {
    const std::uint64_t more = value <= kDefaults[kStack] ? 0 : value - kDefaults[kStack];
    if (resident_threads > 0 && more > std::numeric_limits<std::uint64_t>::max() / resident_threads) {
      return Error::kOutOfMemory;
    }
    const std::uint64_t bytes = more * resident_threads;
    if (bytes > charged_bytes_) {
      const Error error = device.Unasked([&] { return device.Charge(bytes - charged_bytes_); });
      if (error != Error::kNone) return error;
    } else if (bytes < charged_bytes_) {
      device.Discharge(charged_bytes_ - bytes);
    }
    charged_bytes_ = bytes;
  }
  values_[static_cast<std::size_t>(limit)] = value;
  return Error::kNone;
}

}  // namespace ashlar::hollow
