#include "hollow/books/pools.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace ashlar::hollow {
namespace {

constexpr std::uint64_t kSegmentStep = 32 * kMiB;
constexpr std::uint64_t kAlignment = 512;

constexpr std::uint64_t UpTo(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

}  // namespace

Error Pool::Grow(std::uint64_t size_bytes) {
  const std::uint64_t step = UpTo(size_bytes, kSegmentStep);
  if (max_bytes_ > 0 && (step > max_bytes_ || use.reserved > max_bytes_ - step)) return Error::kOutOfMemory;
  std::uint64_t address = 0;
  if (const Error error = device_.Unasked([&] { return device_.AllocateSegment(step, &address); });
      error != Error::kNone) {
    return error;
  }
  const device::AddressSpace all(address, address + step, device::AddressOrder::kAscending);
  segments_.emplace(address, Segment{step, 0, all});
  use.reserved += step;
  use.reserved_high = std::max(use.reserved_high, use.reserved);
  return Error::kNone;
}

Error Pool::Allocate(std::uint64_t size_bytes, Allocations& allocations, std::uint64_t* address) {
  if (size_bytes > std::uint64_t{1} << 60) return device_.Answer(Error::kOutOfMemory);
  if (const Error error = device_.Ask(size_bytes); error != Error::kNone) return error;
  const std::uint64_t rounded = UpTo(std::max<std::uint64_t>(size_bytes, 1), kAlignment);
  const auto take = [&]() -> std::optional<std::uint64_t> {
    for (auto& [begin, segment] : segments_) {
      if (segment.size_bytes - segment.used_bytes < rounded) continue;
      const std::optional<std::uint64_t> taken = segment.free.Take(rounded);
      if (!taken.has_value()) continue;
      segment.used_bytes += rounded;
      return taken;
    }
    return std::nullopt;
  };
  std::optional<std::uint64_t> taken = take();
  if (!taken.has_value()) {
    Error error = Grow(rounded);
    if (error == Error::kOutOfMemory) {
      TrimTo(0);
      error = Grow(rounded);
    }
    if (error != Error::kNone) return device_.Answer(error);
    taken = take();
  }
  blocks_.emplace(*taken, rounded);
  use.used += rounded;
  use.used_high = std::max(use.used_high, use.used);
  allocations.Add({*taken, size_bytes, MemoryKind::kPool, ordinal_, 0, id_});
  *address = *taken;
  return Error::kNone;
}

void Pool::Free(std::uint64_t address, Allocations& allocations) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return;
  Segment& segment = std::prev(segments_.upper_bound(address))->second;
  segment.free.Give(address, block->second);
  segment.used_bytes -= block->second;
  use.used -= block->second;
  blocks_.erase(block);
  allocations.Remove(address);
}

void Pool::TrimTo(std::uint64_t keep_bytes) {
  for (auto it = segments_.begin(); it != segments_.end() && use.reserved > keep_bytes;) {
    if (it->second.used_bytes > 0) {
      ++it;
      continue;
    }
    use.reserved -= it->second.size_bytes;
    device_.FreeSegment(it->first);
    it = segments_.erase(it);
  }
}

}  // namespace ashlar::hollow
