#include "allocator/core/ladder.h"

#include "allocator/policy/strategy.h"

namespace ashlar::core {

Ladder::Ladder(Ledger& ledger, device::Device& device, PendingFrees& pending, const Limits& limits, const Pools& pools)
    : ledger_(ledger),
      device_(device),
      pending_(pending),
      limits_(limits),
      pools_(pools),
      follower_(ledger.options().plan),
      growth_(ledger, device, limits, errors_),
      release_(ledger, device, errors_) {}

policy::Decision Ladder::Search(const policy::Request& request) {
  ledger_.heap().Pair(request.pool);
  const policy::Decision decision = ledger_.heap().Decide(request);
  if (limits_.CollectGarbage()) ledger_.heap().Tick(decision);
  return Steered(decision);
}

policy::Decision Ladder::SkipSearch(const policy::Request& request) {
  policy::Decision decision = ledger_.heap().SizesOf(request);
  decision.pair = &ledger_.heap().Pair(request.pool);
  decision.pool = policy::IsSmall(decision.rounded_bytes) ? &decision.pair->small : &decision.pair->large;
  policy::Decision steered = Steered(decision);
  return steered.is_planned_segment ? steered : decision;
}

policy::Decision Ladder::Steered(policy::Decision decision) {
  follower_.Steer(ledger_.heap(), decision);
  return decision;
}

bool Ladder::HasRoom(std::uint64_t bytes) const {
  return bytes <= limits_.SpareBytes(ledger_.heap().reserved_bytes()) && bytes <= device_.GetMemoryInfo().free_bytes;
}

Ladder::PlannedSegmentAnswer Ladder::ObtainPlannedSegment(const policy::Decision& decision) {
  PlannedSegmentAnswer answer{.lacking_bytes = follower_.WantedBytes(ledger_.heap())};
  if (answer.lacking_bytes == 0 || HasRoom(answer.lacking_bytes)) {
    answer.lacking_bytes = decision.segment_bytes;
    ledger_.Note(trace::fact::PlannedSegmentAsked{decision.segment_bytes, decision.pool->is_small});
    const GrowthResult grown = growth_.Grow(decision);
    if (grown.block != nullptr) {
      answer.arena = grown.block->segment->lane;
      policy::Heap::OfferFree(grown.block);
      follower_.NoteSegment(grown.block->address);
    } else {
      errors_.Note(grown.error);
      follower_.NoteRefusal();
    }
  } else {
    follower_.GiveUp();
  }
  answer.decision = Steered(ledger_.heap().Decide({decision.request_bytes, decision.stream, decision.pool->id}));
  return answer;
}

GrowthResult Ladder::Serve(const policy::Decision& decision) {
  GrowthResult served{.block = decision.block};
  if (decision.block != nullptr) {
    policy::Heap::TakeFree(decision.block);
  } else {
    served = Climb(decision);
  }
  if (served.block == nullptr) return served;
  served.block = ledger_.Place(decision, served.block);
  if (decision.place_at != 0) follower_.NotePlaced(served.block);
  return served;
}

GrowthResult Ladder::Climb(const policy::Decision& decision) {
  if (limits_.CollectGarbage() && !pools_.IsCapturing()) {
    const std::uint64_t garbage_bytes = limits_.GarbageBytes(ledger_.heap().reserved_bytes());
    if (garbage_bytes > 0) release_.Garbage(garbage_bytes);
  }
  GrowthResult grown = growth_.Grow(decision);
  if (grown.refusal != Refusal::kOutOfMemory) return grown;
  policy::Block* block = SearchOverflow(decision);
  if (block == nullptr) block = Borrow(decision);
  if (block != nullptr) return {.block = block};
  if (pools_.IsCapturing()) return grown;
  return ClimbAfterRefusal(decision);
}

GrowthResult Ladder::ClimbAfterRefusal(const policy::Decision& decision) {
  GrowthResult grown{.refusal = Refusal::kOutOfMemory};
  absl::Status released;
  bool is_rejected = false;
  for (const policy::Rung rung : ledger_.heap().strategy().RungsAfterRefusal(ledger_.options())) {
    switch (rung) {
      case policy::Rung::kReturnOversize:
        if (release_.Oversize(decision)) grown = growth_.Grow(decision);
        // What is rejected here may still be served by a later rung.
        is_rejected = grown.refusal == Refusal::kRejected;
        if (is_rejected) grown.refusal = Refusal::kOutOfMemory;
        break;
      case policy::Rung::kMovePages:
        grown = GrowByMoving(decision);
        break;
      case policy::Rung::kWaitForAll:
        released = Synchronize();
        break;
      case policy::Rung::kSearch:
        if (policy::Block* found = SearchAgain(decision); found != nullptr) grown = {.block = found};
        break;
      case policy::Rung::kWaitForFew:
        return GrowAfterFewWaits(decision);
      case policy::Rung::kReturnAll:
        released.Update(release_.Everything(decision.pair));
        ledger_.CountRetry();
        grown = growth_.Grow(decision);
        break;
    }
    if (grown.refusal != Refusal::kOutOfMemory) break;
  }
  if (is_rejected && released.ok() && grown.refusal == Refusal::kOutOfMemory) grown.refusal = Refusal::kRejected;
  return AfterFailedRelease(grown, released);
}

// Out of memory is said only when everything that the cache holds was returned.
GrowthResult Ladder::AfterFailedRelease(const GrowthResult& grown, const absl::Status& released) {
  if (!released.ok() && grown.refusal == Refusal::kOutOfMemory) {
    return {.refusal = Refusal::kDeviceError, .error = released};
  }
  errors_.Note(released);
  return grown;
}

policy::Block* Ladder::SearchOverflow(const policy::Decision& decision) {
  if (!decision.pool->id.IsDefault()) return nullptr;
  for (const auto& [id, pair] : ledger_.heap().private_pairs()) {
    if (!pair->use_on_oom || pair->is_asleep) continue;
    policy::Block* block = ledger_.heap().FindInOverflow(decision, *pair);
    if (block == nullptr) continue;
    policy::Heap::TakeFree(block);
    return block;
  }
  return nullptr;
}

void Ladder::Poll() {
  if (pending_.size() == 0 || pools_.IsCapturing()) return;
  const auto finished = [this](policy::Block* block) { ledger_.CompleteFree(block); };
  if (simulated_ == nullptr) {
    pending_.Poll(device_, finished);
  } else {
    simulated_->CountQueries(pending_.PollNews(device_, simulated_->TakeNews(), finished));
  }
  if (pending_.size() != 0) errors_.AskIfLost(device_);
}

absl::Status Ladder::Synchronize() {
  ledger_.CountSynchronization();
  return pending_.Synchronize(device_, [this](policy::Block* block) { ledger_.CompleteFree(block); });
}

absl::Status Ladder::EmptyCache() {
  absl::Status status = Synchronize();
  status.Update(release_.Everything(nullptr));
  return status;
}

absl::Status Ladder::EmptyPool(PoolId pool) {
  absl::Status status = Synchronize();
  status.Update(release_.PrivatePool(pool));
  return status;
}

// Rungs beyond PyTorch's: another stream's idle blocks, the cache once more, and as few waits as will do.

// A free block of another stream, which the request's stream waits for on the device. It stays a block of that stream:
// when it is freed, it waits for the borrower's, as if that had been recorded.
policy::Block* Ladder::Borrow(const policy::Decision& decision) {
  const policy::Options& options = ledger_.options();
  if (!options.borrow_across_streams || pools_.IsCapturing()) return nullptr;
  if (!owed_.MayWait(Served(), options.borrow_most_waits)) return nullptr;
  policy::Block* block = ledger_.heap().FindInOtherLane(decision);
  if (block == nullptr) return nullptr;
  if (absl::Status status = device_.MakeStreamWait(decision.stream, block->segment->lane->stream); !status.ok()) {
    errors_.Note(status);
    return nullptr;
  }
  owed_.Add(Served(), options.borrow_most_waits);
  ledger_.NoteStreamWait(owed_.owed());
  policy::Heap::TakeFree(block);
  return block;
}

// After events were waited for.
policy::Block* Ladder::SearchAgain(const policy::Decision& decision) {
  policy::Block* block = ledger_.heap().Decide({decision.request_bytes, decision.stream, decision.pool->id}).block;
  if (block != nullptr) {
    policy::Heap::TakeFree(block);
    return block;
  }
  block = SearchOverflow(decision);
  return block != nullptr ? block : Borrow(decision);
}

// Waits for one event after the other, and after each for no more than it takes: first for the blocks that make room in
// the cache with the fewest events, then, oldest first, for those whose memory can be returned.
GrowthResult Ladder::GrowAfterFewWaits(const policy::Decision& decision) {
  absl::Status failed;
  bool may_return = true;
  const auto finish = [&](policy::Block* block) {
    const policy::Block* merged = ledger_.CompleteFree(block);
    may_return |= !merged->IsSplit() || merged->segment->is_expandable;
  };
  for (const policy::Block* block : ledger_.heap().FewestPending(decision)) {
    failed.Update(pending_.SynchronizeBlock(device_, block, finish));
  }
  for (;;) {
    if (policy::Block* found = SearchAgain(decision); found != nullptr)
      return AfterFailedRelease({.block = found}, failed);
    if (may_return) {
      failed.Update(release_.Everything(decision.pair));
      ledger_.CountRetry();
      const GrowthResult grown = growth_.Grow(decision);
      if (grown.refusal != Refusal::kOutOfMemory) return AfterFailedRelease(grown, failed);
    }
    if (pending_.size() == 0 || !failed.ok()) return AfterFailedRelease({.refusal = Refusal::kOutOfMemory}, failed);
    may_return = false;
    failed.Update(pending_.SynchronizeOldest(device_, finish));
  }
}

// Whole free pages move to where the request needs them: first as many as are missing beside what the device should
// have, then, where other programs hold that, all of them.
GrowthResult Ladder::GrowByMoving(const policy::Decision& decision) {
  GrowthResult grown{.refusal = Refusal::kOutOfMemory};
  const std::uint64_t spare_bytes = limits_.SpareBytes(ledger_.heap().reserved_bytes());
  for (const std::uint64_t spare : {spare_bytes, std::uint64_t{0}}) {
    if (grown.refusal != Refusal::kOutOfMemory || !release_.PagesFor(decision, spare)) continue;
    ledger_.CountRetry();
    grown = growth_.Grow(decision);
  }
  return grown;
}

}  // namespace ashlar::core
