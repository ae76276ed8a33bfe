#include "allocator/plugins/torch_native/statistics.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ashlar::torch {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;

using ArrayNames = std::vector<std::pair<std::string_view, StatArray DeviceStats::*>>;
const ArrayNames& Arrays() {
  static const ArrayNames names = {{"active", &DeviceStats::active},
                                   {"active_bytes", &DeviceStats::active_bytes},
                                   {"allocated_bytes", &DeviceStats::allocated_bytes},
                                   {"allocation", &DeviceStats::allocation},
                                   {"inactive_split", &DeviceStats::inactive_split},
                                   {"inactive_split_bytes", &DeviceStats::inactive_split_bytes},
                                   {"requested_bytes", &DeviceStats::requested_bytes},
                                   {"reserved_bytes", &DeviceStats::reserved_bytes},
                                   {"segment", &DeviceStats::segment}};
  return names;
}

using CountNames = std::vector<std::pair<std::string_view, std::int64_t DeviceStats::*>>;

// A count that some releases have not.
template <typename Stats>
void AddRejections(std::vector<std::pair<std::string_view, std::int64_t Stats::*>>& names) {
  if constexpr (requires(Stats& stats) { stats.num_oom_rejections; }) {
    names.emplace_back("num_oom_rejections", &Stats::num_oom_rejections);
  }
}

const CountNames& Counts() {
  static const CountNames names = [] {
    CountNames out = {{"num_alloc_retries", &DeviceStats::num_alloc_retries},
                      {"num_device_alloc", &DeviceStats::num_device_alloc},
                      {"num_device_free", &DeviceStats::num_device_free},
                      {"num_ooms", &DeviceStats::num_ooms},
                      {"num_sync_all_streams", &DeviceStats::num_sync_all_streams}};
    AddRejections<DeviceStats>(out);
    return out;
  }();
  return names;
}

// What is named, in a table by names; nullptr: nothing.
template <typename Table>
auto Named(const Table& table, std::string_view name) -> decltype(table.front().second) {
  for (const auto& [its_name, member] : table) {
    if (its_name == name) return member;
  }
  return nullptr;
}

void PutStat(Stat& stat, std::string_view what, std::int64_t value) {
  if (what == "current") stat.current = value;
  if (what == "peak") stat.peak = value;
  if (what == "allocated") stat.allocated = value;
  if (what == "freed") stat.freed = value;
}

std::size_t PoolIndex(std::string_view pool) { return pool == "all" ? 0 : pool == "small_pool" ? 1 : 2; }

// Names are "active.all.peak", "oversize_segments.peak" and "num_ooms".
void PutValue(void* context, const char* full_name, std::int64_t value) {
  DeviceStats& out = *static_cast<DeviceStats*>(context);
  const std::string_view name = full_name;
  const std::size_t dot = name.find('.');
  const std::string_view first = name.substr(0, dot);
  if (dot == std::string_view::npos) {
    if (const auto count = Named(Counts(), name); count != nullptr) out.*count = value;
    if (name == "max_split_size") out.max_split_size = value;
    return;
  }
  const std::size_t last = name.rfind('.');
  const std::string_view what = name.substr(last + 1);
  if (first == "oversize_allocations") return PutStat(out.oversize_allocations, what, value);
  if (first == "oversize_segments") return PutStat(out.oversize_segments, what, value);
  if (const auto array = Named(Arrays(), first); array != nullptr && last > dot) {
    PutStat((out.*array)[PoolIndex(name.substr(dot + 1, last - dot - 1))], what, value);
  }
}

// Private pools are told of from some release on.
template <typename Stats>
void PutPool(void* context, const ashlar_pool_statistics* pool) {
  if constexpr (requires(Stats& stats) { stats.reserved_bytes_by_private_pools; }) {
    auto& pools = static_cast<Stats*>(context)->reserved_bytes_by_private_pools;
    StatArray& its = pools[{pool->pool.first, pool->pool.second}];
    for (std::size_t kind = 0; kind < its.size(); ++kind) {
      its[kind].current = static_cast<std::int64_t>(pool->reserved_bytes[kind]);
      its[kind].peak = static_cast<std::int64_t>(pool->peak_reserved_bytes[kind]);
      its[kind].allocated = static_cast<std::int64_t>(pool->obtained_bytes[kind]);
      its[kind].freed = static_cast<std::int64_t>(pool->returned_bytes[kind]);
    }
  }
}

void Subtract(Stat& stat, const Stat& before) {
  stat.allocated -= before.allocated;
  stat.freed -= before.freed;
}

void SubtractAll(StatArray& now, const StatArray& before) {
  for (std::size_t kind = 0; kind < now.size(); ++kind) Subtract(now[kind], before[kind]);
}

template <typename Stats>
void SubtractPools(Stats& now, const Stats& before) {
  if constexpr (requires { now.reserved_bytes_by_private_pools; }) {
    for (const auto& [pool, stats] : before.reserved_bytes_by_private_pools)
      SubtractAll(now.reserved_bytes_by_private_pools[pool], stats);
  }
}

}  // namespace

DeviceStats StatisticsOf(const ashlar_allocator* allocator) {
  DeviceStats out;
  if (allocator == nullptr) return out;
  ashlar_torch_statistics(allocator, PutValue, &out);
  ashlar_visit_pools(allocator, PutPool<DeviceStats>, &out);
  return out;
}

DeviceStats Since(DeviceStats now, const DeviceStats& before) {
  for (const auto& [name, array] : Arrays()) {
    SubtractAll(now.*array, before.*array);
  }
  Subtract(now.oversize_allocations, before.oversize_allocations);
  Subtract(now.oversize_segments, before.oversize_segments);
  SubtractPools(now, before);
  for (const auto& [name, count] : Counts()) now.*count -= before.*count;
  return now;
}

}  // namespace ashlar::torch
