#include "analyzer/remedies/device_need.h"

#include <cstddef>

#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/replay/ample_memory.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar::remedies {
namespace {

constexpr std::size_t kMostTried = 1'000'000;  // each try replays the whole
constexpr std::uint64_t kPage = policy::kRoundLargeBytes;

}  // namespace

std::optional<ServedRun> Served(const trace::RequestTrace& requests, const policy::Options& options,
                                std::uint64_t capacity_bytes) {
  replay::RequestReplay replay(
      {.policy = options, .device = {.capacity_bytes = capacity_bytes}, .memory_fraction = {}});
  if (!replay.Run(requests).ok()) return std::nullopt;
  const auto stats = replay.allocator().stats();
  if (stats.num_ooms > 0 || stats.num_oom_rejections > 0) return std::nullopt;
  return ServedRun{static_cast<std::uint64_t>(stats.reserved_bytes.all().peak),
                   static_cast<std::uint64_t>(stats.active_bytes.all().peak)};
}

MemoryNeed NeedOf(const trace::RequestTrace& requests, const policy::Options& options, std::uint64_t least_bytes) {
  MemoryNeed out;
  const std::optional<ServedRun> ample = Served(requests, options, replay::kAmpleBytes);
  if (!ample.has_value()) return out;
  out.peak_reserved_bytes = ample->peak_reserved_bytes;
  if (requests.requests.size() > kMostTried) return out;
  std::uint64_t low = least_bytes / kPage, high = RoundUp(out.peak_reserved_bytes, kPage) / kPage;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (Served(requests, options, middle * kPage).has_value()) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  out.smallest_device_bytes = low * kPage;
  return out;
}

}  // namespace ashlar::remedies
