#include "allocator/core/ledger.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/policy/strategy.h"

namespace ashlar::core {
namespace {

using trace::Action;

[[noreturn]] void StopAtThrowingSink(const char* call, const char* what) {
  StopAtMisuse(absl::StrCat("EventSink::", call, " threw ", what,
                            ": a sink must not throw, the allocator is in the middle of a decision"));
}

template <typename Tell>
void TellSink(const char* call, Tell tell) {
  try {
    tell();
  } catch (const std::exception& error) {
    StopAtThrowingSink(call, error.what());
  } catch (...) {
    StopAtThrowingSink(call, "what is no std::exception");
  }
}

policy::AddressRange RequestedRange(const policy::Block& block) { return {block.address, block.requested_bytes}; }

}  // namespace

Ledger::Ledger(policy::Options options, OnGone on_gone) : heap_(std::move(options)), on_gone_(std::move(on_gone)) {}

policy::Block* Ledger::AddSegment(const policy::Decision& decision, std::uint64_t address) {
  policy::Block* block = heap_.AddSegment(decision, address, decision.segment_bytes);
  BookSegment(*block->segment, 1);
  BookReserved(*decision.pool, Signed(decision.segment_bytes));
  ++stats_.num_device_alloc;
  Emit(Action::kSegmentAlloc, {address, decision.segment_bytes}, *block->segment->lane);
  return block;
}

void Ledger::RemoveSegment(policy::Block* whole) {
  policy::Lane& lane = *whole->segment->lane;
  const policy::AddressRange range{whole->segment->address, whole->segment->size_bytes};
  BookSegment(*whole->segment, -1);
  BookReserved(*lane.pool, -Signed(range.size_bytes));
  ++stats_.num_device_free;
  heap_.RemoveSegment(whole);
  Emit(Action::kSegmentFree, range, lane);
  Forget(lane, range);
}

policy::Block* Ledger::AddReservation(const policy::Decision& decision, std::uint64_t address, std::uint64_t size_bytes,
                                      std::uint64_t page_bytes) {
  policy::Block* block = heap_.AddReservation(decision, address, size_bytes, page_bytes);
  Note(trace::fact::AddressesReserved{address});
  return block;
}

void Ledger::RemoveReservation(policy::Block* unmapped) {
  policy::Lane& lane = *unmapped->segment->lane;
  const policy::AddressRange range{unmapped->address, unmapped->size_bytes};
  heap_.RemoveReservation(unmapped);
  Forget(lane, range);
}

policy::Block* Ledger::MarkMapped(policy::Block* unmapped, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  const policy::Lane& lane = *unmapped->segment->lane;
  const policy::AddressRange range{unmapped->address, size_bytes};
  policy::Block* block = heap_.MarkMapped(unmapped, size_bytes, page_bytes);
  BookReserved(*lane.pool, Signed(size_bytes));
  ++stats_.num_device_alloc;
  if (!heap_.strategy().traits().pages_tell_pool) {
    const bool is_large = page_bytes > block->segment->page_bytes;
    Note(trace::fact::PagesMapped{lane.pool->is_small, is_large ? page_bytes : 0});
  }
  Emit(Action::kSegmentMap, range, lane);
  return block;
}

policy::Block* Ledger::MarkUnmapped(policy::Block* block, const policy::AddressRange& range) {
  const policy::Lane& lane = *block->segment->lane;
  policy::Block* unmapped = heap_.MarkUnmapped(block, range);
  if (!lane.pool->pair->is_asleep) {
    BookReserved(*lane.pool, -Signed(range.size_bytes));
    ++stats_.num_device_free;
  }
  Emit(Action::kSegmentUnmap, range, lane);
  return unmapped;
}

void Ledger::SetAsleep(policy::PoolPair& pair, bool is_asleep, std::int64_t calls) {
  heap_.SetAsleep(pair, is_asleep);
  for (const policy::Pool* pool : {&pair.small, &pair.large}) {
    const std::int64_t bytes = Signed(heap_.MappedBytes(*pool));
    if (bytes != 0) BookReserved(*pool, is_asleep ? -bytes : bytes);
  }
  (is_asleep ? stats_.num_device_free : stats_.num_device_alloc) += calls;
}

policy::Block* Ledger::Place(const policy::Decision& decision, policy::Block* block) {
  const policy::Lane& lane = *block->segment->lane;
  const policy::SplitCounts before = lane.inactive_split;
  policy::Block* placed = decision.place_at == 0 ? heap_.Place(decision, block) : heap_.PlaceAt(decision, block);
  BookSplits(*lane.pool, lane.inactive_split.Minus(before));
  return placed;
}

void Ledger::HandOut(const policy::Block& block, const policy::Decision& decision) {
  const policy::Lane& lane = *block.segment->lane;
  if (lane.stream != decision.stream || lane.pool != decision.pool) {
    Note(trace::fact::AskedFor{decision.pool->id, decision.stream});
  }
  if (decision.place_at != 0) Note(trace::fact::PlacedByPlan{});
  BookAllocated(block, 1);
  BookActive(block, 1);
  Emit(Action::kAlloc, RequestedRange(block), lane, block.size_bytes);
}

void Ledger::BeginFree(const policy::Block& block) {
  BookAllocated(block, -1);
  Emit(Action::kFreeRequested, RequestedRange(block), *block.segment->lane, block.size_bytes);
}

policy::Block* Ledger::CompleteFree(policy::Block* block) {
  const policy::Lane& lane = *block->segment->lane;
  BookActive(*block, -1);
  Emit(Action::kFreeCompleted, RequestedRange(*block), lane, block->size_bytes);
  const policy::SplitCounts before = lane.inactive_split;
  policy::Block* merged = policy::Heap::Release(block);
  BookSplits(*lane.pool, lane.inactive_split.Minus(before));
  return merged;
}

void Ledger::RecordOom(const policy::Decision& decision, std::uint64_t device_free_bytes) {
  ++stats_.num_ooms;
  trace::Event event;
  event.action = Action::kOom;
  event.address = device_free_bytes;
  event.size_bytes = decision.rounded_bytes;
  event.stream = decision.stream;
  event.pool = decision.pool->id;
  Emit(event, 0);
}

void Ledger::Note(const trace::AnyFact& fact) {
  if (sink_ != nullptr) TellSink("OnFact", [&] { sink_->OnFact(fact); });
}

void Ledger::TellPages(bool are_there, const policy::AddressRange& range, const policy::Lane& lane) {
  if (observer_ == nullptr) return;
  const trace::PagesOfSleep pages{range.address, range.size_bytes, lane.stream, lane.pool->id, are_there};
  TellSink("OnPages", [&] { observer_->OnPages(pages); });
}

void Ledger::Emit(Action action, const policy::AddressRange& range, const policy::Lane& lane,
                  std::uint64_t block_size_bytes) {
  if (sink_ == nullptr && observer_ == nullptr) [[likely]]
    return;
  trace::Event event;
  event.action = action;
  event.address = range.address;
  event.size_bytes = range.size_bytes;
  event.stream = lane.stream;
  event.pool = lane.pool->id;
  Emit(event, block_size_bytes);
}

void Ledger::Emit(const trace::Event& event, std::uint64_t block_size_bytes) {
  for (trace::EventSink* told : {sink_, observer_}) {
    if (told != nullptr) TellSink("OnEvent", [&] { told->OnEvent(event, block_size_bytes); });
  }
}

void Ledger::Forget(policy::Lane& lane, const policy::AddressRange& range) {
  on_gone_(lane, range);
  if (lane.segment_count == 0) heap_.RemoveLane(lane);
}

// The statistics of a ledger: how each thing is counted, what the cache served, a state taken over, and the check.

namespace {

using policy::BlockUse;

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
  if (!pool.id.IsDefault()) reserved_by_pools_[pool.id].Add(pool.is_small, bytes);
}

void Ledger::ResetPeaks() {
  stats_.ResetPeaks();
  for (auto& [pool, reserved] : reserved_by_pools_) reserved.ResetPeaks();
}

void Ledger::BookRestored(const policy::Block& block) {
  if (block.state == BlockUse::kFree && block.IsSplit() && !block.is_expandable) {
    BookSplits(*block.segment->lane->pool, {1, Signed(block.size_bytes)});
  }
  if (block.state == BlockUse::kLive) BookAllocated(block, 1);
  if (block.state == BlockUse::kLive || block.state == BlockUse::kPending) BookActive(block, 1);
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
      if (block->state == BlockUse::kLive && IsOversize(block->size_bytes)) ++out.allocations;
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
      const bool is_live = block->state == BlockUse::kLive;
      if (!is_live && block->state != BlockUse::kPending) continue;
      if (is_live) allocated += Signed(block->size_bytes);
      active += Signed(block->size_bytes);
      requested += Signed(block->requested_bytes);
      if ((block->state == BlockUse::kPending) != (block->pending_events > 0)) {
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
