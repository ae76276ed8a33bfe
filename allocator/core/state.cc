// The allocator's state: as a snapshot's segments, rebuilt from a known one, and checked.
#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/world.h"
#include "allocator/trace/free_age.h"

namespace ashlar::core {
namespace {

using policy::BlockState;

trace::SnapshotBlock ToSnapshotBlock(const Block& block) {
  trace::SnapshotBlock out;
  out.address = block.address;
  out.size_bytes = block.size_bytes;
  if (block.state != BlockState::kFree) out.requested_bytes = block.requested_bytes;
  out.state = block.state == BlockState::kLive      ? trace::BlockState::kLive
              : block.state == BlockState::kPending ? trace::BlockState::kPending
                                                    : trace::BlockState::kFree;
  return out;
}

// In the order in which they were obtained.
std::vector<const policy::Segment*> ByAge(const policy::Heap& heap, bool expandable_only = false) {
  std::vector<const policy::Segment*> out;
  for (const auto& [address, segment] : heap.segments()) {
    if (segment->is_expandable || !expandable_only) out.push_back(segment.get());
  }
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->rank < b->rank; });
  return out;
}

// A snapshot's segment is a maximal mapped range: one for an ordinary segment, any number for an expandable one.
void AppendMappedRanges(const policy::Segment& segment, std::vector<trace::SnapshotSegment>& out) {
  bool is_open = false;
  for (const Block* block = segment.first; block != nullptr; block = block->next) {
    if (block->state == BlockState::kUnmapped) {
      is_open = false;
      continue;
    }
    if (!is_open) {
      trace::SnapshotSegment& range = out.emplace_back();
      range.address = block->address;
      range.stream = segment.lane->stream;
      range.is_small_pool = segment.lane->pool->is_small;
      range.is_expandable = segment.is_expandable;
      range.pool = segment.lane->pool->id;
      is_open = true;
    }
    out.back().size_bytes += block->size_bytes;
    out.back().blocks.push_back(ToSnapshotBlock(*block));
  }
}

}  // namespace

std::vector<trace::SnapshotSegment> CachingAllocator::Segments() const {
  const World world(*this);
  return SegmentsNow();
}

std::vector<trace::SnapshotSegment> CachingAllocator::SegmentsNow() const {
  std::vector<trace::SnapshotSegment> out;
  for (const auto& [address, segment] : heap_.segments()) AppendMappedRanges(*segment, out);
  return out;
}

std::vector<trace::ReservedRange> CachingAllocator::ReservationsNow() const {
  std::vector<trace::ReservedRange> out;
  for (const policy::Segment* segment : ByAge(heap_, /*expandable_only=*/true)) {
    const policy::Pool& pool = *segment->lane->pool;
    out.push_back({segment->address, segment->size_bytes,
                   trace::ReservedRange::Lane{segment->lane->stream, pool.is_small, pool.id}});
  }
  return out;
}

trace::RecordedStart CachingAllocator::StartNow() const {
  trace::RecordedStart out;
  out.has_segments = true;
  const policy::Pool& collected = heap_.default_pair().large;
  for (const policy::Segment* segment : ByAge(heap_)) {
    AppendMappedRanges(*segment, out.segments);
    const bool is_whole_free = segment->first->state == BlockState::kFree && !segment->first->IsSplit();
    if (options().garbage_collection_threshold > 0 && is_whole_free && segment->lane->pool == &collected) {
      trace::SetFreeAge(out.segments.back().blocks.back(), collected.clock - segment->first->freed_at);
    }
  }
  out.reservations = ReservationsNow();
  return out;
}

std::vector<trace::Fact> CachingAllocator::PoolsNow() const {
  std::vector<trace::Fact> out;
  const auto add = [&out](trace::FactKind kind, std::uint64_t bytes, PoolId pool) {
    out.push_back({kind, bytes, 0, pool});
  };
  routes_.ForEach([&](PoolId pool, RouteKind kind) {
    add(trace::FactKind::kPoolBegin, kind == RouteKind::kCapture ? 1 : 0, pool);
  });
  for (const auto& [id, pair] : heap_.private_pairs()) {
    add(trace::FactKind::kPoolUsers, pair->use_count, id);
    const std::uint64_t traits =
        (pair->use_on_oom ? trace::kUsesOnOom : 0) + (pair->no_split ? trace::kNoSplit : 0);
    if (traits != 0) add(trace::FactKind::kPoolTraits, traits, id);
  }
  return out;
}

std::vector<policy::Block*> CachingAllocator::RestoreSegment(const policy::Request& lane_of, bool is_small,
                                                             bool is_expandable, std::uint64_t address,
                                                             const std::vector<policy::Heap::KnownBlock>& known) {
  const World world(*this);
  const std::uint64_t reserved_before = heap_.reserved_bytes();
  std::vector<policy::Block*> blocks = heap_.Restore(lane_of, is_small, is_expandable, address, known);
  policy::Lane& lane = *blocks.front()->segment->lane;
  if (lane.owner == nullptr) BindEngine(lane);
  const auto reserved = static_cast<std::int64_t>(heap_.reserved_bytes() - reserved_before);
  stats_.reserved_bytes.Add(is_small, reserved);
  if (!is_expandable) stats_.segment.Add(is_small, 1);
  if (!is_expandable && blocks.front()->segment->size_bytes >= options().max_split_size_bytes) {
    stats_.oversize_segments.Add(1);
  }
  for (const Block* block : blocks) {
    const auto size_bytes = static_cast<std::int64_t>(block->size_bytes);
    if (block->state == BlockState::kFree && block->IsSplit() && !is_expandable) {
      stats_.inactive_split.Add(is_small, 1);
      stats_.inactive_split_bytes.Add(is_small, size_bytes);
    }
    if (block->state != BlockState::kLive && block->state != BlockState::kPending) continue;
    stats_.active.Add(is_small, 1);
    stats_.active_bytes.Add(is_small, size_bytes);
    stats_.requested_bytes.Add(is_small, static_cast<std::int64_t>(block->requested_bytes));
    if (block->state != BlockState::kLive) continue;
    stats_.allocation.Add(is_small, 1);
    stats_.allocated_bytes.Add(is_small, size_bytes);
    if (block->size_bytes >= options().max_split_size_bytes) stats_.oversize_allocations.Add(1);
  }
  return blocks;
}

absl::Status CachingAllocator::Validate() const {
  const World world(*this);
  if (absl::Status status = heap_.Validate(); !status.ok()) return status;
  std::int64_t allocated = 0;
  std::int64_t active = 0;
  std::int64_t requested = 0;
  for (const auto& [address, segment] : heap_.segments()) {
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      const bool is_live = block->state == BlockState::kLive;
      if (!is_live && block->state != BlockState::kPending) continue;
      if (is_live) allocated += static_cast<std::int64_t>(block->size_bytes);
      active += static_cast<std::int64_t>(block->size_bytes);
      requested += static_cast<std::int64_t>(block->requested_bytes);
      if ((block->state == BlockState::kPending) != (block->pending_events > 0)) {
        return absl::InternalError(absl::StrCat("block at ", block->address, ": state and pending events disagree"));
      }
    }
  }
  const auto differs = [](absl::string_view name, std::int64_t kept, std::int64_t counted) {
    if (kept == counted) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(name, " is kept as ", kept, ", counted as ", counted));
  };
  absl::Status status = differs("allocated_bytes", stats_.allocated_bytes.all().current, allocated);
  if (status.ok()) status = differs("active_bytes", stats_.active_bytes.all().current, active);
  if (status.ok()) status = differs("requested_bytes", stats_.requested_bytes.all().current, requested);
  if (status.ok()) {
    status = differs("reserved_bytes", stats_.reserved_bytes.all().current,
                     static_cast<std::int64_t>(heap_.reserved_bytes()));
  }
  return status;
}

}  // namespace ashlar::core
