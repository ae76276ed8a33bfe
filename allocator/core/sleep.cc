// How the allocator puts pools to sleep and wakes them (sleeper.h), and what it refuses meanwhile.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/fast_path.h"
#include "allocator/core/state.h"

namespace ashlar::core {
namespace {

void SetLanesAsleep(const Sleeper::Pairs& pairs, bool is_asleep) {
  for (policy::PoolPair* pair : pairs) {
    for (policy::Pool* pool : {&pair->small, &pair->large}) {
      for (auto& [stream, lane] : pool->lanes) FastPath::SetAsleep(lane, is_asleep);
    }
  }
}

}  // namespace

absl::Status CachingAllocator::TagPool(PoolId pool, absl::string_view tag) {
  const ExclusiveSection section(caches());
  return pools_.SetTag(pool, tag);
}

// Pairs that are gone, since nothing was left in them, are left out.
Sleeper::Pairs CachingAllocator::PairsOf(const std::vector<PoolId>& ids) {
  Sleeper::Pairs out;
  for (const PoolId& id : ids) {
    if (policy::PoolPair* pair = ledger_.heap().FindPair(id); pair != nullptr) out.push_back(pair);
  }
  return out;
}

absl::StatusOr<SleepReport> CachingAllocator::Sleep(const SleepOptions& options) {
  const ExclusiveSection section(caches());
  section.StopThreadCaches();
  if (absl::Status status = CannotReturn("Sleep"); !status.ok()) return status;
  const absl::StatusOr<std::vector<PoolId>> ids = pools_.Find(options.tags, options.pools);
  if (!ids.ok()) return ids.status();
  const std::uint64_t reserved_bytes = ledger_.heap().reserved_bytes();
  ledger_.Note(trace::fact::CacheEmptied{});
  const absl::Status emptied = ladder_.EmptyCache();
  absl::StatusOr<SleepReport> report =
      emptied.ok() ? PutToSleep(PairsOf(*ids), options) : absl::StatusOr<SleepReport>(emptied);
  if (report.ok()) {
    report->returned_bytes = reserved_bytes - ledger_.heap().reserved_bytes();
  } else if (!absl::IsFailedPrecondition(report.status())) {
    NoteLoss(section);
  }
  return report;
}

absl::StatusOr<SleepReport> CachingAllocator::PutToSleep(const Sleeper::Pairs& wanted, const SleepOptions& options) {
  const policy::Heap& heap = ledger_.heap();
  Sleeper::Pairs pairs;
  std::uint64_t left_bytes = 0;
  for (policy::PoolPair* pair : wanted) {
    if (pair->is_asleep) continue;
    if (heap.UseElsewhere(*pair) == policy::Heap::UsedElsewhere::kNothing) {
      pairs.push_back(pair);
    } else {
      left_bytes += heap.MappedBytes(pair->small) + heap.MappedBytes(pair->large);
    }
  }
  absl::StatusOr<SleepReport> report = sleeper_.Sleep(pairs, options, &FastPath::RecordedStreams);
  if (!report.ok()) return report;
  SetLanesAsleep(pairs, true);
  report->left_bytes = left_bytes;
  return report;
}

absl::Status CachingAllocator::Wake(const SleepingPools& wanted) {
  const ExclusiveSection section(caches());
  section.StopThreadCaches();
  if (absl::Status status = CannotReturn("Wake"); !status.ok()) return status;
  const absl::StatusOr<std::vector<PoolId>> ids = pools_.Find(wanted.tags, wanted.pools);
  if (!ids.ok()) return ids.status();
  const Sleeper::Pairs pairs = PairsOf(*ids);
  const Sleeper::Woken woken = WakeUp(pairs, wanted.progress);
  if (absl::IsResourceExhausted(woken.status)) return FailToWake(*pairs.front(), woken.lacking_bytes);
  if (!woken.status.ok()) NoteLoss(section);
  return woken.status;
}

Sleeper::Woken CachingAllocator::WakeUp(const Sleeper::Pairs& wanted, const SleepProgress& progress) {
  Sleeper::Pairs pairs;
  for (policy::PoolPair* pair : wanted) {
    if (pair->is_asleep) pairs.push_back(pair);
  }
  Sleeper::Woken woken = sleeper_.Wake(pairs, progress);
  if (woken.status.ok()) SetLanesAsleep(pairs, false);
  return woken;
}

absl::Status CachingAllocator::FailToWake(const policy::PoolPair& pair, std::uint64_t bytes) const {
  policy::Decision all{.request_bytes = bytes, .rounded_bytes = bytes, .segment_bytes = bytes};
  all.pair = &pair;
  all.pool = &pair.large;
  const absl::Status failed = failures_.OutOfMemory(all, device_->GetMemoryInfo(), /*is_rejected=*/false);
  return absl::ResourceExhaustedError(absl::StrCat("Wake: what sleeps is kept: ", failed.message()));
}

bool CachingAllocator::IsAsleep(std::uint64_t address) const {
  if (!sleeper_.IsAnyAsleep()) return false;
  const ExclusiveSection section(caches());
  const policy::Segment* segment = SegmentAt(ledger_.heap(), address);
  return segment != nullptr && segment->lane->pool->pair->is_asleep;
}

absl::Status CachingAllocator::CheckAwake(const policy::PoolPair* pair, const char* call) const {
  if (pair == nullptr || !pair->is_asleep) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(call, ": ", Pools::NameOf(*pair), " is asleep: call Wake first"));
}

}  // namespace ashlar::core
