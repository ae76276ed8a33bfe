#include "hollow/model/allocations.h"

#include <algorithm>
#include <iterator>

#include "hollow/model/calling_library.h"

namespace ashlar::hollow {

void Allocations::Add(Allocation allocation) {
  allocation.id = next_id_++;
  if (allocation.is_on_host()) {
    pinned_bytes_ += allocation.size_bytes;
    pinned_peak_bytes_ = std::max(pinned_peak_bytes_, pinned_bytes_);
  } else if (allocation.is_counted()) {
    allocation.library = CallingLibrary();
    OfLibraries& of = libraries_[allocation.device];
    of.now[allocation.library] += allocation.size_bytes;
    of.bytes += allocation.size_bytes;
    of.peak_bytes = std::max(of.peak_bytes, of.bytes);
  }
  by_address_.insert_or_assign(allocation.address, allocation);
}

const Allocation* Allocations::At(std::uint64_t address) const {
  const auto it = by_address_.find(address);
  return it == by_address_.end() ? nullptr : &it->second;
}

const Allocation* Allocations::Holding(std::uint64_t address) const {
  auto it = by_address_.upper_bound(address);
  if (it == by_address_.begin()) return nullptr;
  --it;
  return address - it->first < std::max<std::uint64_t>(it->second.size_bytes, 1) ? &it->second : nullptr;
}

void Allocations::Remove(std::uint64_t address) {
  const auto it = by_address_.find(address);
  if (it == by_address_.end()) return;
  const Allocation& allocation = it->second;
  if (allocation.is_on_host()) {
    pinned_bytes_ -= allocation.size_bytes;
  } else if (allocation.is_counted()) {
    OfLibraries& of = libraries_[allocation.device];
    of.LeavePeak();
    of.now[allocation.library] -= allocation.size_bytes;
    of.bytes -= allocation.size_bytes;
  }
  by_address_.erase(it);
}

void Allocations::RemoveOfDevice(int device) {
  std::erase_if(by_address_,
                [&](const auto& entry) { return entry.second.device == device && !entry.second.is_on_host(); });
  OfLibraries& of = libraries_[device];
  of.LeavePeak();
  of.now.clear();
  of.bytes = 0;
}

Allocations::LibraryBytes Allocations::PeakByLibrary(int device) const {
  const auto found = libraries_.find(device);
  if (found == libraries_.end()) return {};
  const OfLibraries& of = found->second;
  LibraryBytes out = of.bytes == of.peak_bytes ? of.now : of.at_peak;
  std::erase_if(out, [](const auto& one) { return one.second == 0; });
  return out;
}

std::map<std::string_view, Allocations::Held> Allocations::ByLibrary(int device) const {
  std::map<std::string_view, Held> out;
  for (const auto& [address, allocation] : by_address_) {
    if (allocation.device != device || !allocation.is_counted()) continue;
    Held& of = out[allocation.library];
    of.bytes += allocation.size_bytes;
    of.blocks += 1;
  }
  return out;
}

void KnownBytes::Know(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return;
  std::uint64_t begin = address;
  std::uint64_t end = address + bytes;
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second >= begin) --it;
  while (it != ranges_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = ranges_.erase(it);
  }
  ranges_.emplace_hint(it, begin, end);
}

void KnownBytes::Forget(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || ranges_.empty()) return;
  const std::uint64_t end = address + bytes;
  auto it = ranges_.upper_bound(address);
  if (it != ranges_.begin() && std::prev(it)->second > address) --it;
  while (it != ranges_.end() && it->first < end) {
    const auto [range_begin, range_end] = *it;
    it = ranges_.erase(it);
    if (range_begin < address) ranges_.emplace(range_begin, address);
    if (end < range_end) ranges_.emplace(end, range_end);
  }
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> KnownBytes::RangesIn(std::uint64_t address,
                                                                          std::uint64_t bytes) const {
  const std::uint64_t end = address + bytes;
  auto it = ranges_.upper_bound(address);
  if (it != ranges_.begin() && std::prev(it)->second > address) --it;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  for (; it != ranges_.end() && it->first < end; ++it) {
    const std::uint64_t begin = std::max(address, it->first);
    out.emplace_back(begin, std::min(end, it->second) - begin);
  }
  return out;
}

std::uint64_t KnownBytes::CountKnown(std::uint64_t address, std::uint64_t bytes) const {
  std::uint64_t count = 0;
  for (const auto& [begin, size_bytes] : RangesIn(address, bytes)) count += size_bytes;
  return count;
}

void KnownBytes::Carry(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> carried = RangesIn(from, bytes);
  Forget(to, bytes);
  for (const auto& [begin, size_bytes] : carried) Know(begin - from + to, size_bytes);
}

}  // namespace ashlar::hollow
