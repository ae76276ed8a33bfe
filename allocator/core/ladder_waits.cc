// Rungs beyond PyTorch's: another stream's idle blocks, the cache once more, and as few waits as will do.
#include "allocator/core/ladder.h"

namespace ashlar::core {

// A free block of another stream, which the request's stream waits for on the device. It stays a block of that stream:
// when it is freed, it waits for the borrower's, as if that had been recorded.
policy::Block* Ladder::Borrow(const policy::Plan& plan) {
  const policy::Options& options = ledger_.options();
  if (!options.borrow_across_streams || pools_.IsCapturing()) return nullptr;
  if (!owed_.MayWait(Served(), options.borrow_most_waits)) return nullptr;
  policy::Block* block = ledger_.heap().FindInOtherLane(plan);
  if (block == nullptr) return nullptr;
  if (absl::Status status = device_.MakeStreamWait(plan.stream, block->segment->lane->stream); !status.ok()) {
    errors_.Note(status);
    return nullptr;
  }
  owed_.Add(Served(), options.borrow_most_waits);
  ledger_.NoteStreamWait(owed_.owed());
  policy::Heap::TakeFree(block);
  return block;
}

// After events were waited for.
policy::Block* Ladder::SearchAgain(const policy::Plan& plan) {
  policy::Block* block = ledger_.heap().MakePlan({plan.request_bytes, plan.stream, plan.pool->id}).block;
  if (block != nullptr) {
    policy::Heap::TakeFree(block);
    return block;
  }
  block = SearchOverflow(plan);
  return block != nullptr ? block : Borrow(plan);
}

// Waits for one event after the other, and after each for no more than it takes: first for the blocks that make room in
// the cache with the fewest events, then, oldest first, for those whose memory can be returned.
Growth Ladder::GrowAfterFewWaits(const policy::Plan& plan) {
  absl::Status failed;
  bool may_return = true;
  const auto finish = [&](policy::Block* block) {
    const policy::Block* merged = ledger_.CompleteFree(block);
    may_return |= !merged->IsSplit() || merged->segment->is_expandable;
  };
  for (const policy::Block* block : ledger_.heap().FewestPending(plan)) {
    failed.Update(pending_.SynchronizeBlock(device_, block, finish));
  }
  for (;;) {
    if (policy::Block* found = SearchAgain(plan); found != nullptr) return AfterFailedRelease({.block = found}, failed);
    if (may_return) {
      failed.Update(release_.Everything(plan.pair));
      ledger_.CountRetry();
      const Growth grown = growth_.Grow(plan);
      if (grown.refusal != Refusal::kOutOfMemory) return AfterFailedRelease(grown, failed);
    }
    if (pending_.size() == 0 || !failed.ok()) return AfterFailedRelease({.refusal = Refusal::kOutOfMemory}, failed);
    may_return = false;
    failed.Update(pending_.SynchronizeOldest(device_, finish));
  }
}

}  // namespace ashlar::core
