#include "allocator/device/address_space.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "allocator/base/check.h"

namespace ashlar::device {

std::optional<AddressOrder> AddressOrderNamed(std::string_view name) {
  if (name == "ascending") return AddressOrder::kAscending;
  if (name == "descending") return AddressOrder::kDescending;
  if (name == "driver") return AddressOrder::kDriver;
  return std::nullopt;
}

AddressSpace::AddressSpace(std::uint64_t begin, std::uint64_t end, AddressOrder order) : order_(order) {
  free_.emplace(begin, end);
}

void AddressSpace::TakeFrom(std::map<std::uint64_t, std::uint64_t>::iterator range, std::uint64_t address,
                            std::uint64_t size_bytes) {
  const std::uint64_t begin = range->first;
  const std::uint64_t end = range->second;
  free_.erase(range);
  if (begin < address) free_.emplace(begin, address);
  if (address + size_bytes < end) free_.emplace(address + size_bytes, end);
}

std::optional<std::uint64_t> AddressSpace::Take(std::uint64_t size_bytes, std::uint64_t lowest,
                                                std::uint64_t alignment_bytes) {
  const std::uint64_t mask = alignment_bytes - 1;
  if (order_ == AddressOrder::kAscending) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const std::uint64_t address = (std::max(it->first, lowest) + mask) & ~mask;
      if (it->second < address || it->second - address < size_bytes) continue;
      TakeFrom(it, address, size_bytes);
      return address;
    }
    return std::nullopt;
  }
  for (auto it = free_.end(); it != free_.begin();) {
    --it;
    if (it->second - it->first < size_bytes) continue;
    const std::uint64_t address = (it->second - size_bytes) & ~mask;
    if (address < lowest) break;
    if (address < it->first) continue;
    TakeFrom(it, address, size_bytes);
    return address;
  }
  return std::nullopt;
}

bool AddressSpace::TakeAt(std::uint64_t address, std::uint64_t size_bytes) {
  auto it = free_.upper_bound(address);
  if (it == free_.begin()) return false;
  --it;
  if (address < it->first || it->second < address || it->second - address < size_bytes) return false;
  TakeFrom(it, address, size_bytes);
  return true;
}

void AddressSpace::Give(std::uint64_t address, std::uint64_t size_bytes) {
  std::uint64_t begin = address;
  std::uint64_t end = address + size_bytes;
  auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    const auto prev = std::prev(next);
    ASHLAR_CHECK_LE(prev->second, begin);
    if (prev->second == begin) {
      begin = prev->first;
      free_.erase(prev);
    }
  }
  if (next != free_.end()) {
    ASHLAR_CHECK_LE(end, next->first);
    if (next->first == end) {
      end = next->second;
      free_.erase(next);
    }
  }
  free_.emplace(begin, end);
}

}  // namespace ashlar::device
