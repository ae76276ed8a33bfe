#include "allocator/core/memory_stats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ashlar::core {
namespace {

constexpr PoolStatName kPoolStats[] = {
    {"active", "Blocks handed out, and those freed that wait for work on another stream", &Stats::active},
    {"active_bytes", "Bytes of the active blocks", &Stats::active_bytes},
    {"allocated_bytes", "Bytes of the blocks handed out and not freed yet", &Stats::allocated_bytes},
    {"allocation", "Blocks handed out and not freed yet", &Stats::allocation},
    {"inactive_split", "Free blocks that share a segment with others", &Stats::inactive_split},
    {"inactive_split_bytes", "Bytes of the free blocks that share a segment with others", &Stats::inactive_split_bytes},
    {"requested_bytes", "Bytes that were asked for, of the active blocks", &Stats::requested_bytes},
    {"reserved_bytes", "Bytes of the segments, of expandable ones the mapped bytes", &Stats::reserved_bytes},
    {"segment", "Segments held, expandable ones not counted", &Stats::segment},
};

constexpr SingleStatName kSingleStats[] = {
    {"oversize_allocations", "Blocks handed out of at least max_split_size", &Stats::oversize_allocations},
    {"oversize_segments", "Segments of at least max_split_size", &Stats::oversize_segments},
};

constexpr CountName kCounts[] = {
    {"num_alloc_retries", "Requests that returned the whole cache and tried again", &Stats::num_alloc_retries},
    {"num_device_alloc", "Segments obtained and successful mappings", &Stats::num_device_alloc},
    {"num_device_free", "Segments returned and unmappings", &Stats::num_device_free},
    {"num_oom_rejections", "Requests refused by throw_on_cudamalloc_oom", &Stats::num_oom_rejections},
    {"num_ooms", "Requests that failed for good", &Stats::num_ooms},
    {"num_sync_all_streams", "Waits for all pending frees", &Stats::num_sync_all_streams},
};

using Pairs = std::vector<std::pair<std::string, std::int64_t>>;

void AddStat(const std::string& prefix, const Stat& stat, Pairs& out) {
  out.emplace_back(prefix + ".allocated", stat.allocated);
  out.emplace_back(prefix + ".current", stat.current);
  out.emplace_back(prefix + ".freed", stat.freed());
  out.emplace_back(prefix + ".peak", stat.peak);
}

}  // namespace

absl::Span<const PoolStatName> PoolStatNames() { return kPoolStats; }
absl::Span<const SingleStatName> SingleStatNames() { return kSingleStats; }
absl::Span<const CountName> CountNames() { return kCounts; }

Pairs MemoryStats(const Stats& stats, const policy::Options& options) {
  Pairs out;
  for (const PoolStatName& pool_stat : kPoolStats) {
    const PoolStat& values = stats.*pool_stat.stat;
    AddStat(absl::StrCat(pool_stat.name, ".all"), values[PoolKind::kAll], out);
    AddStat(absl::StrCat(pool_stat.name, ".large_pool"), values[PoolKind::kLarge], out);
    AddStat(absl::StrCat(pool_stat.name, ".small_pool"), values[PoolKind::kSmall], out);
  }
  for (const SingleStatName& single : kSingleStats) AddStat(std::string(single.name), stats.*single.stat, out);
  for (const CountName& count : kCounts) {
    out.emplace_back(std::string(count.name), static_cast<std::int64_t>(stats.*count.count));
  }
  out.emplace_back("max_split_size", static_cast<std::int64_t>(options.max_split_size_bytes));  // kUnlimited is -1
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace ashlar::core
