#include "allocator/device/driver_addresses.h"

#include <iterator>
#include <optional>
#include <utility>

#include "allocator/base/check.h"
#include "ashlar/units.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kStep = 32 * kMiB;
constexpr std::uint64_t kHostPage = 4 * kKiB;

// Of the region that a context begins with, as offsets: PyTorch's first segment was at 414 MiB in each run, what came
// after it at the region's begin or in the last 6 MiB of the region below, and nothing of PyTorch's was ever in [412,
// 414), [416, 490) or behind 510.
constexpr std::uint64_t kContextRegion = 512 * kMiB;
constexpr std::uint64_t kHeldAtFirst = 412 * kMiB;
constexpr std::uint64_t kHeldAfterwards = 26 * kMiB;
struct Held {
  std::uint64_t offset, end;
};
constexpr Held kHeld[] = {{412 * kMiB, 414 * kMiB}, {416 * kMiB, 490 * kMiB}, {510 * kMiB, 512 * kMiB}};

constexpr std::uint64_t DownToStep(std::uint64_t value) { return value / kStep * kStep; }
constexpr std::uint64_t UpToStep(std::uint64_t value) { return DownToStep(value + kStep - 1); }

}  // namespace

DriverAddresses::DriverAddresses(std::uint64_t begin, std::uint64_t end)
    : free_(begin, end, AddressOrder::kDescending) {
  const auto context = Grow(kContextRegion);
  if (context == regions_.end()) return;
  const std::uint64_t base = context->first;
  Put(context, base, kHeldAtFirst);
  held_at_first_ = base;
  for (const Held& held : kHeld) Put(context, base + held.offset, held.end - held.offset);
}

// The addresses are those of the host's mmap, which gives the top of the highest range that has room. The driver asks
// for as much more as aligning can take, and returns what is over: so a free range of just the region's size is passed
// by.
DriverAddresses::Regions::iterator DriverAddresses::Grow(std::uint64_t size_bytes) {
  const std::uint64_t bytes = UpToStep(size_bytes);
  const std::uint64_t asked = bytes + kStep - kHostPage;
  const std::optional<std::uint64_t> mapped = free_.Take(asked);
  if (!mapped.has_value()) return regions_.end();
  const std::uint64_t begin = UpToStep(*mapped);
  if (*mapped < begin) free_.Give(*mapped, begin - *mapped);
  if (begin + bytes < *mapped + asked) free_.Give(begin + bytes, *mapped + asked - begin - bytes);
  return regions_.emplace(begin, Region{begin + bytes, bytes}).first;
}

void DriverAddresses::Put(Regions::iterator region, std::uint64_t address, std::uint64_t size_bytes) {
  taken_.emplace(address, address + size_bytes);
  region->second.free_bytes -= size_bytes;
}

std::optional<std::uint64_t> DriverAddresses::PlaceIn(const Regions::value_type& region,
                                                      std::uint64_t size_bytes) const {
  if (region.second.free_bytes < size_bytes) return std::nullopt;
  std::uint64_t place = region.first;
  for (auto it = taken_.lower_bound(region.first); it != taken_.end() && it->first < region.second.end; ++it) {
    if (it->first - place >= size_bytes) return place;
    place = it->second;
  }
  if (region.second.end - place >= size_bytes) return place;
  return std::nullopt;
}

std::optional<std::uint64_t> DriverAddresses::Take(std::uint64_t size_bytes) {
  std::optional<std::uint64_t> place;
  auto region = regions_.begin();
  for (; region != regions_.end(); ++region) {
    place = PlaceIn(*region, size_bytes);
    if (place.has_value()) break;
  }
  if (!place.has_value()) {
    region = Grow(size_bytes);
    if (region == regions_.end()) return std::nullopt;
    place = region->first;
  }
  Put(region, *place, size_bytes);
  if (held_at_first_.has_value()) {
    const std::uint64_t held = *std::exchange(held_at_first_, std::nullopt);
    Take(kHeldAfterwards);
    Give(held, kHeldAtFirst);
  }
  return place;
}

void DriverAddresses::Give(std::uint64_t address, std::uint64_t size_bytes) {
  const auto taken = taken_.find(address);
  ASHLAR_CHECK(taken != taken_.end());
  ASHLAR_CHECK_EQ(taken->second, address + size_bytes);
  taken_.erase(taken);
  const auto region = std::prev(regions_.upper_bound(address));
  region->second.free_bytes += size_bytes;
  const std::uint64_t bytes = region->second.end - region->first;
  if (region->second.free_bytes < bytes) return;
  free_.Give(region->first, bytes);
  regions_.erase(region);
}

}  // namespace ashlar::device
