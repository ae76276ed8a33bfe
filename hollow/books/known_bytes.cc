#include "hollow/books/known_bytes.h"

#include <algorithm>
#include <iterator>

namespace ashlar::hollow {

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
