#include "allocator/policy/registered_ranges.h"

#include <algorithm>
#include <iterator>

namespace ashlar::policy {

bool RegisteredRanges::Remove(std::uint64_t address) {
  const auto behind = sizes_.upper_bound(address);
  if (behind == sizes_.begin() || std::prev(behind)->first != address) return false;
  sizes_.erase(std::prev(behind));
  ++removed_;
  return true;
}

bool RegisteredRanges::Touches(const AddressRange& range) const {
  return std::any_of(sizes_.begin(), sizes_.lower_bound(range.End()),
                     [&](const auto& one) { return one.first + one.second > range.address; });
}

std::vector<PageRun> RegisteredRanges::PagesBeside(const std::vector<PageRun>& runs) const {
  std::vector<PageRun> out;
  for (const PageRun& run : runs) {
    if (!Touches(run.range)) {
      out.push_back(run);
      continue;
    }
    bool follows = false;  // whether the page before is the last of `out`
    for (std::uint64_t at = run.range.address; at < run.range.End(); at += run.page_bytes) {
      const bool is_beside = !Touches({at, run.page_bytes});
      if (is_beside && follows) out.back().range.size_bytes += run.page_bytes;
      if (is_beside && !follows) out.push_back({{at, run.page_bytes}, run.page_bytes});
      follows = is_beside;
    }
  }
  return out;
}

std::vector<AddressRange> RegisteredRanges::All() const {
  std::vector<AddressRange> out;
  for (const auto& [address, size_bytes] : sizes_) out.push_back({address, size_bytes});
  return out;
}

}  // namespace ashlar::policy
