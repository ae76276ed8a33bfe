#include "allocator/trace/event.h"

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"

namespace ashlar::trace {
namespace {

struct OtherPools {
  std::mutex mutex;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> indices;
  std::deque<PoolId> pools;
};

OtherPools& TheOtherPools() {
  static auto* const pools = new OtherPools();  // as long as the process: events may outlive any static object
  return *pools;
}

}  // namespace

std::uint32_t EventPool::CodeOfOther(const PoolId& pool) {
  OtherPools& others = TheOtherPools();
  const std::lock_guard<std::mutex> lock(others.mutex);
  const auto known = others.indices.find({pool.first, pool.second});
  if (known != others.indices.end()) return kOther << kPayloadBits | known->second;
  if (others.pools.size() == kMostOthers) return kNone;
  const auto index = static_cast<std::uint32_t>(others.pools.size());
  others.pools.push_back(pool);
  others.indices.emplace(std::pair(pool.first, pool.second), index);
  return kOther << kPayloadBits | index;
}

PoolId EventPool::Other(std::uint32_t index) {
  OtherPools& others = TheOtherPools();
  const std::lock_guard<std::mutex> lock(others.mutex);
  return others.pools[index];
}

namespace {

constexpr std::array<absl::string_view, 11> kNames = {
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
    "oom",   "snapshot",       "annotate",       "unknown"};

}  // namespace

absl::string_view ActionName(Action action) { return kNames[static_cast<std::size_t>(action)]; }

std::optional<Action> ParseAction(absl::string_view name) {
  for (std::size_t i = 0; i + 1 < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Action>(i);
  }
  return std::nullopt;
}

}  // namespace ashlar::trace
