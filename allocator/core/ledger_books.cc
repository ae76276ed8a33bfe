// The statistics of a ledger: how each thing is counted, what the cache served, a state taken over, and the check.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "allocator/core/ledger.h"

namespace ashlar::core {
namespace {

using policy::BlockState;

absl::Status Differs(absl::string_view name, std::int64_t kept, std::int64_t counted) {
  if (kept == counted) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name, " is kept as ", kept, ", counted as ", counted));
}

}  // namespace

void Ledger::BookSegment(const policy::Segment& segment, std::int64_t sign) {
  stats_.segment.Add(segment.lane->pool->is_small, sign);
  if (IsOversize(segment.size_bytes)) stats_.oversize_segments.Add(sign);
}

void Ledger::BookAllocated(const policy::Block& block, std::int64_t sign) {
  stats_.allocation.Add(block.is_small, sign);
  stats_.allocated_bytes.Add(block.is_small, sign * Signed(block.size_bytes));
  if (IsOversize(block.size_bytes)) stats_.oversize_allocations.Add(sign);
}

void Ledger::BookActive(const policy::Block& block, std::int64_t sign) {
  stats_.active.Add(block.is_small, sign);
  stats_.active_bytes.Add(block.is_small, sign * Signed(block.size_bytes));
  stats_.requested_bytes.Add(block.is_small, sign * Signed(block.requested_bytes));
}

void Ledger::BookSplits(const policy::Pool& pool, const policy::SplitCounts& change) {
  stats_.inactive_split.Add(pool.is_small, change.blocks);
  stats_.inactive_split_bytes.Add(pool.is_small, change.bytes);
}

void Ledger::BookReserved(const policy::Pool& pool, std::int64_t bytes) {
  stats_.reserved_bytes.Add(pool.is_small, bytes);
}

void Ledger::BookRestored(const policy::Block& block) {
  if (block.state == BlockState::kFree && block.IsSplit() && !block.is_expandable) {
    BookSplits(*block.segment->lane->pool, {1, Signed(block.size_bytes)});
  }
  if (block.state == BlockState::kLive) BookAllocated(block, 1);
  if (block.state == BlockState::kLive || block.state == BlockState::kPending) BookActive(block, 1);
}

std::vector<policy::Block*> Ledger::Restore(const policy::Request& lane_of, bool is_small, bool is_expandable,
                                            std::uint64_t address, const std::vector<policy::Heap::KnownBlock>& known) {
  const std::uint64_t reserved_before = heap_.reserved_bytes();
  std::vector<policy::Block*> blocks = heap_.Restore(lane_of, is_small, is_expandable, address, known);
  const policy::Segment& segment = *blocks.front()->segment;
  BookReserved(*segment.lane->pool, Signed(heap_.reserved_bytes() - reserved_before));
  if (!is_expandable) BookSegment(segment, 1);
  for (const policy::Block* block : blocks) BookRestored(*block);
  return blocks;
}

Ledger::OversizeCounts Ledger::CountOversize() const {
  OversizeCounts out;
  for (const auto& [address, segment] : heap_.segments()) {
    if (!segment->is_expandable && IsOversize(segment->size_bytes)) ++out.segments;
    for (const policy::Block* block = segment->first; block != nullptr; block = block->next) {
      if (block->state == BlockState::kLive && IsOversize(block->size_bytes)) ++out.allocations;
    }
  }
  return out;
}

void Ledger::SetOptions(policy::Options options) {
  const bool is_split_changed = options.max_split_size_bytes != this->options().max_split_size_bytes;
  heap_.SetOptions(std::move(options));
  if (is_split_changed) {
    const OversizeCounts counted = CountOversize();
    stats_.oversize_allocations.Add(counted.allocations - stats_.oversize_allocations.current);
    stats_.oversize_segments.Add(counted.segments - stats_.oversize_segments.current);
  }
  Note(trace::fact::SettingsChanged{this->options().conf});
}

void Ledger::Fold(bool is_small, const Changes& changes, const Changes& increases) {
  const auto fold = [&](ChangeOf of, PoolStat& to) { to.Fold(is_small, changes[of], increases[of]); };
  fold(kBlocks, stats_.allocation);
  fold(kBlocks, stats_.active);
  fold(kBlockBytes, stats_.allocated_bytes);
  fold(kBlockBytes, stats_.active_bytes);
  fold(kRequestedBytes, stats_.requested_bytes);
  fold(kSplitBlocks, stats_.inactive_split);
  fold(kSplitBytes, stats_.inactive_split_bytes);
}

Changes Ledger::RoomBelowPeaks(PoolKind kind) const {
  const auto slack = [kind](const PoolStat& stat) { return stat[kind].Slack(); };
  return {std::min(slack(stats_.allocation), slack(stats_.active)),
          std::min(slack(stats_.allocated_bytes), slack(stats_.active_bytes)), slack(stats_.requested_bytes),
          slack(stats_.inactive_split), slack(stats_.inactive_split_bytes)};
}

absl::Status Ledger::Validate() const {
  if (absl::Status status = heap_.Validate(); !status.ok()) return status;
  std::int64_t allocated = 0;
  std::int64_t active = 0;
  std::int64_t requested = 0;
  for (const auto& [address, segment] : heap_.segments()) {
    for (const policy::Block* block = segment->first; block != nullptr; block = block->next) {
      const bool is_live = block->state == BlockState::kLive;
      if (!is_live && block->state != BlockState::kPending) continue;
      if (is_live) allocated += Signed(block->size_bytes);
      active += Signed(block->size_bytes);
      requested += Signed(block->requested_bytes);
      if ((block->state == BlockState::kPending) != (block->pending_events > 0)) {
        return absl::InternalError(absl::StrCat("block at ", block->address, ": state and pending events disagree"));
      }
    }
  }
  absl::Status status = Differs("allocated_bytes", stats_.allocated_bytes.all().current, allocated);
  if (status.ok()) status = Differs("active_bytes", stats_.active_bytes.all().current, active);
  if (status.ok()) status = Differs("requested_bytes", stats_.requested_bytes.all().current, requested);
  const OversizeCounts oversize = CountOversize();
  if (status.ok()) {
    status = Differs("oversize_allocations", stats_.oversize_allocations.current, oversize.allocations);
  }
  if (status.ok()) status = Differs("oversize_segments", stats_.oversize_segments.current, oversize.segments);
  if (!status.ok()) return status;
  return Differs("reserved_bytes", stats_.reserved_bytes.all().current, Signed(heap_.reserved_bytes()));
}

}  // namespace ashlar::core
