#include "analyzer/replay/recorded_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "allocator/device/driver_addresses.h"

namespace ashlar::replay {
namespace {

using timeline::EventIndex;

constexpr std::size_t kMostSegments = 1000;

// The segments at a time, in the range that any of them has been in.
class Places {
 public:
  void Add(std::uint64_t address, std::uint64_t size_bytes) {
    live_[address] = address + size_bytes;
    lowest_ = std::min(lowest_, address);
    highest_ = std::max(highest_, address + size_bytes);
  }
  void Remove(std::uint64_t address) { live_.erase(address); }
  bool IsEmpty() const { return live_.empty(); }

  std::uint64_t LowestFit(std::uint64_t size_bytes) const {
    std::uint64_t at = lowest_;
    for (const auto& [begin, end] : live_) {
      if (begin >= at && begin - at >= size_bytes) break;
      at = std::max(at, end);
    }
    return at;
  }
  std::uint64_t HighestFit(std::uint64_t size_bytes) const {
    std::uint64_t top = highest_;
    for (auto it = live_.rbegin(); it != live_.rend(); ++it) {
      if (top >= it->second && top - it->second >= size_bytes) break;
      top = std::min(top, it->first);
    }
    return top - size_bytes;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> live_;  // begin -> end
  std::uint64_t lowest_ = UINT64_MAX;
  std::uint64_t highest_ = 0;
};

// The same segments on a device of its own, from the first on.
class DriverPlaces {
 public:
  // Whether the driver's rule puts the segment where it was, as seen from the first.
  bool Add(std::uint64_t address, std::uint64_t size_bytes) {
    const std::uint64_t rounded = (size_bytes + kGranularityBytes - 1) / kGranularityBytes * kGranularityBytes;
    const std::optional<std::uint64_t> taken = addresses_.Take(rounded);
    if (!taken.has_value()) return false;
    live_[address] = {*taken, rounded};
    if (!offset_.has_value()) offset_ = address - *taken;
    return address - *taken == *offset_;
  }
  void Remove(std::uint64_t address) {
    const auto at = live_.find(address);
    if (at == live_.end()) return;
    addresses_.Give(at->second.first, at->second.second);
    live_.erase(at);
  }

 private:
  static constexpr std::uint64_t kGranularityBytes = std::uint64_t{2} << 20;

  device::DriverAddresses addresses_{std::uint64_t{1} << 40, std::uint64_t{1} << 46};
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> live_;  // recorded address -> ours, bytes
  std::optional<std::uint64_t> offset_;
};

// The ordinary ones, by when they began.
std::vector<const timeline::SegmentSpan*> InOrder(absl::Span<const timeline::SegmentSpan> segments) {
  std::vector<const timeline::SegmentSpan*> out;
  for (const timeline::SegmentSpan& segment : segments) {
    if (!segment.is_expandable) out.push_back(&segment);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return a->BeginEvent() < b->BeginEvent(); });
  return out;
}

}  // namespace

device::AddressOrder RecordedAddressOrder(absl::Span<const timeline::SegmentSpan> segments) {
  using End = std::pair<EventIndex, std::uint64_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  Places places;
  DriverPlaces driver_places;
  std::size_t told = 0;
  std::size_t ascending = 0;
  std::size_t descending = 0;
  std::size_t driver = 0;
  bool is_whole = true;
  for (const timeline::SegmentSpan* segment : InOrder(segments)) {
    const auto& [begin, address, size_bytes] = segment->extents.front();
    for (; !ends.empty() && ends.top().first < begin; ends.pop()) {
      places.Remove(ends.top().second);
      driver_places.Remove(ends.top().second);
    }
    is_whole = is_whole && begin != timeline::kBeforeWindow;
    const bool is_as_driver = driver_places.Add(address, size_bytes);
    if (begin != timeline::kBeforeWindow && !places.IsEmpty()) {
      if (++told > kMostSegments) break;
      driver += is_whole && is_as_driver ? 1 : 0;
      ascending += address == places.LowestFit(size_bytes) ? 1 : 0;
      descending += address == places.HighestFit(size_bytes) ? 1 : 0;
    }
    places.Add(address, size_bytes);
    if (segment->end_event != timeline::kNever) ends.emplace(segment->end_event, address);
  }
  told = std::min(told, kMostSegments);
  if (told > 0 && 10 * driver >= 9 * told) return device::AddressOrder::kDriver;
  if (10 * ascending >= 9 * told) return device::AddressOrder::kAscending;
  return 10 * descending >= 9 * told ? device::AddressOrder::kDescending : device::AddressOrder::kDriver;
}

}  // namespace ashlar::replay
