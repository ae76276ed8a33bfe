#include "allocator/core/ledger.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"

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

policy::Block* Ledger::AddSegment(const policy::Plan& plan, std::uint64_t address) {
  policy::Block* block = heap_.AddSegment(plan, address, plan.segment_bytes);
  BookSegment(*block->segment, 1);
  BookReserved(*plan.pool, Signed(plan.segment_bytes));
  ++stats_.num_device_alloc;
  Emit(Action::kSegmentAlloc, {address, plan.segment_bytes}, *block->segment->lane);
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

policy::Block* Ledger::AddReservation(const policy::Plan& plan, std::uint64_t address, std::uint64_t size_bytes,
                                      std::uint64_t page_bytes) {
  policy::Block* block = heap_.AddReservation(plan, address, size_bytes, page_bytes);
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
  if (options().policy == policy::Policy::kAshlar) {
    const bool is_large = page_bytes > block->segment->page_bytes;
    Note(trace::fact::PagesMapped{lane.pool->is_small, is_large ? page_bytes : 0});
  }
  Emit(Action::kSegmentMap, range, lane);
  return block;
}

policy::Block* Ledger::MarkUnmapped(policy::Block* block, const policy::AddressRange& range) {
  const policy::Lane& lane = *block->segment->lane;
  policy::Block* unmapped = heap_.MarkUnmapped(block, range);
  BookReserved(*lane.pool, -Signed(range.size_bytes));
  ++stats_.num_device_free;
  Emit(Action::kSegmentUnmap, range, lane);
  return unmapped;
}

policy::Block* Ledger::Place(const policy::Plan& plan, policy::Block* block) {
  const policy::Lane& lane = *block->segment->lane;
  const policy::SplitCounts before = lane.inactive_split;
  policy::Block* placed = plan.place_at == 0 ? heap_.Place(plan, block) : heap_.PlaceAt(plan, block);
  BookSplits(*lane.pool, lane.inactive_split.Minus(before));
  return placed;
}

void Ledger::HandOut(const policy::Block& block, const policy::Plan& plan) {
  const policy::Lane& lane = *block.segment->lane;
  if (lane.stream != plan.stream || lane.pool != plan.pool) {
    Note(trace::fact::AskedFor{plan.pool->id, plan.stream});
  }
  if (plan.place_at != 0) Note(trace::fact::PlacedByPlan{});
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

void Ledger::RecordOom(const policy::Plan& plan, std::uint64_t device_free_bytes) {
  ++stats_.num_ooms;
  trace::Event event;
  event.action = Action::kOom;
  event.address = device_free_bytes;
  event.size_bytes = plan.rounded_bytes;
  event.stream = plan.stream;
  event.pool = plan.pool->id;
  Emit(event, 0);
}

void Ledger::Note(const trace::AnyFact& fact) {
  if (sink_ != nullptr) TellSink("OnFact", [&] { sink_->OnFact(fact); });
}

void Ledger::Emit(Action action, const policy::AddressRange& range, const policy::Lane& lane,
                  std::uint64_t block_size_bytes) {
  if (sink_ == nullptr) [[likely]]
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
  if (sink_ != nullptr) TellSink("OnEvent", [&] { sink_->OnEvent(event, block_size_bytes); });
}

void Ledger::Forget(policy::Lane& lane, const policy::AddressRange& range) {
  on_gone_(lane, range);
  if (lane.segment_count == 0) heap_.RemoveLane(lane);
}

}  // namespace ashlar::core
