// Rungs beyond PyTorch's: another stream's idle blocks, the cache once more, and as few waits as will do.
#include "allocator/core/caching_allocator.h"

namespace ashlar::core {

// A free block of another stream, which the request's stream waits for on the device. It stays a block of that stream:
// when it is freed, it waits for the borrower's, as if that had been recorded.
policy::Block* CachingAllocator::Borrow(const policy::Plan& plan) {
  if (!options().borrow_across_streams || routes_.captures() > 0) return nullptr;
  policy::Block* block = heap_.FindInOtherLane(plan);
  if (block == nullptr) return nullptr;
  if (absl::Status status = device_->MakeStreamWait(plan.stream, block->segment->lane->stream); !status.ok()) {
    unreported_error_.Update(status);
    return nullptr;
  }
  heap_.TakeFree(block);
  return block;
}

// After events were waited for.
policy::Block* CachingAllocator::SearchAgain(const policy::Plan& plan) {
  policy::Block* block = heap_.MakePlan({plan.request_bytes, plan.stream, plan.pool->id}).block;
  if (block != nullptr) {
    heap_.TakeFree(block);
    return block;
  }
  block = SearchOverflow(plan);
  return block != nullptr ? block : Borrow(plan);
}

// Waits for one event after the other, and after each for no more than it takes: first for the blocks that make room in
// the cache with the fewest events, then, oldest first, for those whose memory can be returned.
policy::Block* CachingAllocator::GrowAfterFewWaits(const policy::Plan& plan) {
  absl::Status failed;
  bool may_return = true;
  const auto finish = [&](policy::Block* block) {
    const Block* merged = FinishFree(block);
    may_return |= !merged->IsSplit() || merged->segment->is_expandable;
  };
  for (const Block* block : heap_.FewestPending(plan)) {
    failed.Update(pending_.SynchronizeBlock(*device_, block, finish));
  }
  for (;;) {
    if (policy::Block* found = SearchAgain(plan); found != nullptr) return AfterFailedRelease(found, failed);
    if (may_return) {
      failed.Update(ReturnCached(plan.pair));
      ++stats_.num_alloc_retries;
      policy::Block* block = NewSegment(plan);
      if (block != nullptr || growth_ != Growth::kOutOfMemory) return AfterFailedRelease(block, failed);
    }
    if (pending_.size() == 0 || !failed.ok()) return AfterFailedRelease(nullptr, failed);
    may_return = false;
    failed.Update(pending_.SynchronizeOldest(*device_, finish));
  }
}

}  // namespace ashlar::core
