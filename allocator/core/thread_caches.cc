#include "allocator/core/thread_caches.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/core/fast_path.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

// A free of the newest block leads back to sums that were there before, and to a map that nothing has touched since.
void ThreadCache::SettleNewest() {
  policy::Block* block = newest.block();
  const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*block);
  CountRepeats(*block, effect.splits);
  if (newest.is_put_off()) {
    CountFreeUnchecked(block->is_small, Signed(block->size_bytes), Signed(block->requested_bytes), effect.splits);
    if (newest.is_named()) pointers.Erase({block, newest.slot()});
    policy::Heap::ReleaseAs(*block->segment->lane, block, effect);
  }
  newest.Settled();
}

// Each repeat was an allocation, and raised the split blocks on the way there or back.
void ThreadCache::CountRepeats(const policy::Block& block, const policy::SplitCounts& splits) {
  SizeClass& sums = SizeClassOf(block.is_small);
  sums.increases[kBlocks] += newest.repeats();
  sums.increases[kBlockBytes] += newest.repeats() * Signed(block.size_bytes);
  sums.increases[kSplitBlocks] += newest.repeats() * std::abs(splits.blocks);
  sums.increases[kSplitBytes] += newest.repeats() * std::abs(splits.bytes);
}

namespace {

std::atomic<std::uint64_t> allocators_so_far{0};

}  // namespace

ThreadCaches::ThreadCaches(Ledger& ledger) : id_(++allocators_so_far), ledger_(ledger) {}

ThreadCache& ThreadCaches::Find(const ThreadSlot* slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = std::find_if(thread_caches_.begin(), thread_caches_.end(),
                               [slot](const auto& cache) { return cache->slot == slot; });
  if (it != thread_caches_.end()) return **it;
  auto cache = std::make_unique<ThreadCache>(slot);
  if (keeper_ != nullptr) cache->journal = keeper_->JournalOf(thread_caches_.size());
  return *thread_caches_.emplace_back(std::move(cache));
}

void ThreadCaches::SetKeeper(JournalKeeper* keeper) {
  keeper_ = keeper;
  for (std::size_t i = 0; i < thread_caches_.size(); ++i) {
    thread_caches_[i]->journal = keeper == nullptr ? nullptr : keeper->JournalOf(i);
  }
}

ThreadCacheOfAllocator& ThreadCaches::FindOfThread() {
  ThreadSlot* const slot = SlotOfThread();
  ThreadCache& cache = Find(slot);
  return slot->caches[id_ % slot->caches.size()] = {id_, &cache, &cache};
}

// A call that comes all the same goes to the section, and stops there, as long as this memory is nobody else's.
void ThreadCaches::Close() {
  is_serial_.store(true, std::memory_order_relaxed);
  is_closed_.store(true, std::memory_order_relaxed);
}

void ThreadCaches::CheckOpen() const {
  if (is_closed_.load(std::memory_order_relaxed)) [[unlikely]]
    StopAtGoneAllocator();
}

std::uint64_t ThreadCaches::LockCount() const {
  std::uint64_t count = 0;
  for (const std::unique_ptr<ThreadCache>& cache : thread_caches_) count += cache->lock.times_taken();
  return count;
}

namespace {

Changes Minus(const Changes& a, const Changes& b) {
  Changes out{};
  for (int i = 0; i < kChangesOf; ++i) out[i] = a[i] - b[i];
  return out;
}

Changes Share(Changes room, std::int64_t sharers) {
  for (std::int64_t& part : room) part /= sharers;
  return room;
}

}  // namespace

ExclusiveSection::ExclusiveSection(ThreadCaches& caches) : thread_caches_(caches) {
  thread_caches_.CheckOpen();
  const std::thread::id self = std::this_thread::get_id();
  // A sink's or a filter's call into the allocator, or its fork, would wait for itself.
  ASHLAR_CHECK(thread_caches_.inside_.load(std::memory_order_relaxed) != self);
  ThreadCache& mine = *thread_caches_.OfThread().cache;
  thread_caches_.mutex_.lock();
  thread_caches_.cache_of_section_ = &mine;
  thread_caches_.inside_.store(self, std::memory_order_relaxed);
  ++thread_caches_.section_count_;
  if (!thread_caches_.IsSerialNow()) LockThreadCaches();
}

ExclusiveSection::~ExclusiveSection() {
  if (!thread_caches_.IsSerialNow()) DealRoom();
  if (holds_thread_caches_) UnlockThreadCaches();
  thread_caches_.inside_.store({}, std::memory_order_relaxed);
  thread_caches_.mutex_.unlock();
}

void ExclusiveSection::LockThreadCaches() const {
  holds_thread_caches_ = true;
  bool has_recorded = false;
  for (const std::unique_ptr<ThreadCache>& cache : thread_caches_.thread_caches_) {
    if (cache.get() == thread_caches_.cache_of_section_) {
      is_own_biased_ = cache->lock.LockAsOwner();
    } else {
      cache->lock.lock();
    }
    cache->Settle();
    Fold(*cache);
    has_recorded |= cache->journal != nullptr && cache->journal->turn() == thread_caches_.turn_;
  }
  if (has_recorded) ++thread_caches_.turn_;
}

void ExclusiveSection::UnlockThreadCaches() const {
  for (const std::unique_ptr<ThreadCache>& cache : thread_caches_.thread_caches_) {
    if (cache.get() == thread_caches_.cache_of_section_) {
      cache->lock.UnlockAsOwner(is_own_biased_);
    } else {
      cache->lock.unlock();
    }
  }
  holds_thread_caches_ = false;
}

void ExclusiveSection::StopThreadCaches() const {
  if (!holds_thread_caches_) LockThreadCaches();
}

// The mode changes while every thread cache is locked: one that is locked later sees the new one.
void ExclusiveSection::SetSerial(bool is_serial) const {
  if (is_serial == thread_caches_.IsSerialNow()) return;
  StopThreadCaches();
  thread_caches_.is_serial_.store(is_serial, std::memory_order_release);
}

// What the thread cache's own sums hold goes to the ledger. No room is left either, until it is dealt.
void ExclusiveSection::Fold(ThreadCache& cache) const {
  for (const bool is_small : {false, true}) {
    SizeClass& sums = cache.SizeClassOf(is_small);
    if (sums.increases[kBlocks] != 0 || sums.left[kBlocks] != sums.dealt[kBlocks]) cache.recent_uses = kRecentSections;
    thread_caches_.ledger_.Fold(is_small, Minus(sums.dealt, sums.left), sums.increases);
    sums.left = sums.increases = sums.dealt = {};
  }
  cache.left = {};
}

// Equal shares. ThreadCaches that were not used for a while get none, so that the others seldom come back for more.
void ExclusiveSection::DealRoom() const {
  const auto& caches = thread_caches_.thread_caches_;
  const std::int64_t sharers =
      std::count_if(caches.begin(), caches.end(), [](const auto& cache) { return cache->recent_uses != 0; });
  if (sharers == 0) return;
  const Changes all = Share(thread_caches_.ledger_.RoomBelowPeaks(PoolKind::kAll), sharers);
  const Changes small = Share(thread_caches_.ledger_.RoomBelowPeaks(PoolKind::kSmall), sharers);
  const Changes large = Share(thread_caches_.ledger_.RoomBelowPeaks(PoolKind::kLarge), sharers);
  for (const std::unique_ptr<ThreadCache>& cache : caches) {
    if (cache->recent_uses == 0) continue;
    --cache->recent_uses;
    cache->left = all;
    cache->SizeClassOf(true).left = cache->SizeClassOf(true).dealt = small;
    cache->SizeClassOf(false).left = cache->SizeClassOf(false).dealt = large;
  }
}

}  // namespace ashlar::core
