#include "hollow/model/pools.h"

#include <algorithm>
#include <optional>

namespace ashlar::hollow {
namespace {

constexpr std::uint64_t kChunk = 32 * kMiB;
constexpr std::uint64_t kAlignment = 512;

constexpr std::uint64_t DownTo(std::uint64_t value, std::uint64_t step) { return value / step * step; }
constexpr std::uint64_t UpTo(std::uint64_t value, std::uint64_t step) { return DownTo(value + step - 1, step); }

}  // namespace

bool PoolModel::Reserve() {
  if (range_.has_value()) return true;
  const std::uint64_t bytes = 4 * UpTo(device_.total_bytes(), kChunk);
  const device::PlacedMemory placed = device_.addresses().Reserve(bytes, kChunk);
  if (placed.verdict != device::MemoryVerdict::kDone) return false;
  const std::uint64_t end = placed.address + bytes;
  range_ = Range{placed.address, end, device::AddressSpace(placed.address, end, device::AddressOrder::kAscending)};
  return range_->free.TakeAt(placed.address, bytes);
}

std::uint64_t PoolModel::MissingChunks(std::uint64_t address, std::uint64_t size_bytes) const {
  std::uint64_t missing = 0;
  for (std::uint64_t chunk = DownTo(address, kChunk); chunk < address + size_bytes; chunk += kChunk) {
    missing += chunks_.contains(chunk) ? 0 : 1;
  }
  return missing;
}

std::optional<std::uint64_t> PoolModel::CheapestPlace(std::uint64_t size_bytes) const {
  std::optional<std::uint64_t> best;
  std::uint64_t least = 0;
  const auto look_at = [&](std::uint64_t address, std::uint64_t end) {
    if (end - address < size_bytes) return;
    const std::uint64_t missing = MissingChunks(address, size_bytes);
    if (best.has_value() && missing >= least) return;
    best = address;
    least = missing;
  };
  // Between two blocks: where the first ends, and where a chunk with memory begins.
  std::uint64_t begin = range_->begin;
  const auto look_between = [&](std::uint64_t end) {
    look_at(begin, end);
    for (auto it = chunks_.lower_bound(begin); it != chunks_.end() && it->first < end; ++it) look_at(it->first, end);
  };
  for (const auto& [address, block_bytes] : blocks_) {
    if (address - begin >= size_bytes) look_between(address);
    begin = address + block_bytes;
  }
  look_between(range_->end);
  return best;
}

Error PoolModel::Grow(std::uint64_t size_bytes) {
  const std::optional<std::uint64_t> place = CheapestPlace(size_bytes);
  if (!place.has_value()) return Error::kOutOfMemory;
  const std::uint64_t bytes = MissingChunks(*place, size_bytes) * kChunk;
  if (max_bytes_ > 0 && (bytes > max_bytes_ || use.reserved > max_bytes_ - bytes)) return Error::kOutOfMemory;
  const Error error = device_.Unasked([&] { return device_.Charge(bytes); });
  if (error != Error::kNone) return error;
  for (std::uint64_t chunk = DownTo(*place, kChunk); chunk < *place + size_bytes; chunk += kChunk) {
    if (chunks_.emplace(chunk, 0).second) range_->free.Give(chunk, kChunk);
  }
  use.reserved += bytes;
  use.reserved_high = std::max(use.reserved_high, use.reserved);
  return Error::kNone;
}

void PoolModel::CountInChunks(std::uint64_t address, std::uint64_t size_bytes, bool is_taken) {
  const std::uint64_t end = address + size_bytes;
  for (std::uint64_t chunk = DownTo(address, kChunk); chunk < end; chunk += kChunk) {
    const std::uint64_t inside = std::min(end, chunk + kChunk) - std::max(address, chunk);
    std::uint64_t& used = chunks_[chunk];
    used = is_taken ? used + inside : used - inside;
  }
}

Error PoolModel::Allocate(std::uint64_t size_bytes, Allocations& allocations, std::uint64_t* address) {
  if (size_bytes > std::uint64_t{1} << 60) return device_.Answer(Error::kOutOfMemory);
  if (const Error error = device_.Ask(size_bytes); error != Error::kNone) return error;
  if (!Reserve()) return device_.Answer(Error::kOutOfMemory);
  const std::uint64_t rounded = UpTo(std::max<std::uint64_t>(size_bytes, 1), kAlignment);
  std::optional<std::uint64_t> taken = range_->free.Take(rounded);
  if (!taken.has_value()) {
    Error error = Grow(rounded);
    if (error == Error::kOutOfMemory) {
      TrimTo(0);
      error = Reserve() ? Grow(rounded) : error;
    }
    if (error != Error::kNone) return device_.Answer(error);
    taken = range_->free.Take(rounded);
  }
  CountInChunks(*taken, rounded, true);
  blocks_.emplace(*taken, rounded);
  use.used += size_bytes;
  use.used_high = std::max(use.used_high, use.used);
  allocations.Add({*taken, size_bytes, MemoryKind::kPool, ordinal_, 0, id_});
  *address = *taken;
  return Error::kNone;
}

void PoolModel::Free(std::uint64_t address, Allocations& allocations) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return;
  range_->free.Give(address, block->second);
  CountInChunks(address, block->second, false);
  blocks_.erase(block);
  use.used -= allocations.At(address)->size_bytes;
  allocations.Remove(address);
}

void PoolModel::TrimTo(std::uint64_t keep_bytes) {
  for (auto it = chunks_.begin(); it != chunks_.end() && use.reserved > keep_bytes;) {
    if (it->second > 0) {
      ++it;
      continue;
    }
    range_->free.TakeAt(it->first, kChunk);
    device_.Discharge(kChunk);
    use.reserved -= kChunk;
    it = chunks_.erase(it);
  }
  if (!chunks_.empty() || !range_.has_value()) return;
  device_.addresses().ReleaseReservation(range_->begin);
  range_.reset();
}

}  // namespace ashlar::hollow
