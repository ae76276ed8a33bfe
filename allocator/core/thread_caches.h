// The thread caches of one allocator: whose thread cache is whose, and how all of them are stopped. There is one
// for each thread that uses the allocator, and the common one.
//
//   ThreadCaches thread caches(ledger);
//   ThreadCacheOfAllocator& place = thread caches.OfThread();              // remembered by the thread
//   const ExclusiveSection section(thread caches);                  // nobody else is inside
//
// While the allocator is serial no thread cache serves on its own: all threads share the section's lock. Thread rule:
// any thread may call what does not say otherwise.
#ifndef ASHLAR_ALLOCATOR_CORE_THREAD_CACHES_H_
#define ASHLAR_ALLOCATOR_CORE_THREAD_CACHES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "allocator/base/biased_lock.h"
#include "allocator/base/check.h"
#include "allocator/core/journal.h"
#include "allocator/core/ledger.h"
#include "allocator/core/pointer_map.h"
#include "allocator/core/stats.h"
#include "allocator/core/thread_slot.h"
#include "allocator/policy/block.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

// The lock of a thread cache: biased to the thread whose thread cache it is, and it counts how often it was taken.
//
//   CountedLock lock(true);
//   const HeldLock held(lock, is_mine);
class CountedLock {
 public:
  explicit CountedLock(bool has_owner) : lock_(has_owner) {}

  // By its owner; the second with the first's answer.
  bool LockAsOwner() {
    const bool is_biased = lock_.LockAsOwner();
    ++times_taken_;
    return is_biased;
  }
  void UnlockAsOwner(bool is_biased) { lock_.UnlockAsOwner(is_biased); }
  // By any thread.
  void lock() {
    lock_.lock();
    ++times_taken_;
  }
  void unlock() { lock_.unlock(); }

  // For who holds it.
  std::uint64_t times_taken() const { return times_taken_; }

 private:
  BiasedLock lock_;
  std::uint64_t times_taken_ = 0;
};

// Holds it while it exists. `is_mine`: the lock is the calling thread's.
class HeldLock {
 public:
  HeldLock(CountedLock& lock, bool is_mine) : lock_(lock), is_mine_(is_mine) {
    if (is_mine) [[likely]] {
      is_biased_ = lock.LockAsOwner();
    } else {
      lock.lock();
    }
  }
  ~HeldLock() {
    if (is_mine_) [[likely]] {
      lock_.UnlockAsOwner(is_biased_);
    } else {
      lock_.unlock();
    }
  }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  CountedLock& lock_;
  const bool is_mine_;
  bool is_biased_ = false;
};

// The block that a thread cache allocated last, while no lane of the thread cache has changed since: its free can be
// put off. Best fit is a function of a lane's state, and that free leads back to the state before the allocation. So
// the same request from there gets the same block, and neither need cut, join or count anything:
//
//   allocate 4 KiB -> A     free A: put off     allocate 4 KiB -> A again
//   anything else first makes the free real, and counts how often this was repeated (ThreadCache::Settle)
//
// Not where each new block has a rank of its own, which a second allocation would not get again. Thread rule: the lock
// of its thread cache, or the exclusive section.

struct Arena;

class NewestBlock {
 public:
  // `is_named`: handed out by its address, which the thread cache's map has. Nothing is put off or repeated.
  void Set(policy::Block* block, Arena* arena, std::uint64_t rounded_bytes, bool is_named) {
    block_ = block;
    arena_ = arena;
    rounded_bytes_ = rounded_bytes;
    is_named_ = is_named;
  }
  void Forget() { block_ = nullptr; }
  // What was put off is real, and the repeats are counted.
  void Settled() {
    block_ = nullptr;
    is_put_off_ = false;
    repeats_ = 0;
  }

  policy::Block* block() const { return block_; }  // nullptr: none is known
  Arena* arena() const { return arena_; }
  bool is_named() const { return is_named_; }
  bool is_put_off() const { return is_put_off_; }
  // How often it was freed and allocated again, which no sum tells yet but for the bytes asked for.
  std::int64_t repeats() const { return repeats_; }
  std::size_t slot() const { return slot_; }
  bool IsSettled() const { return (repeats_ | std::int64_t{is_put_off_}) == 0; }

  // Whether this free can be put off: of the newest block, by what it was handed out as.
  bool MayPutOff(const policy::Block* block, bool is_named) const {
    return block == block_ && !is_put_off_ && is_named == is_named_ && block->IsPlain();
  }
  // `slot`: where the map has its address, which stays there.
  void PutOff(std::size_t slot) {
    is_put_off_ = true;
    slot_ = slot;
    block_->state = policy::BlockUse::kFree;
  }
  // Whether this request would get the block again; the arena must be the same too.
  bool IsFor(std::uint64_t rounded_bytes, bool is_named) const {
    return is_put_off_ && rounded_bytes == rounded_bytes_ && is_named == is_named_;
  }
  void TakeBack(std::uint64_t request_bytes) {
    is_put_off_ = false;
    ++repeats_;
    block_->state = policy::BlockUse::kLive;
    block_->requested_bytes = request_bytes;
  }

 private:
  policy::Block* block_ = nullptr;
  Arena* arena_ = nullptr;
  std::uint64_t rounded_bytes_ = 0;
  std::size_t slot_ = 0;
  std::int64_t repeats_ = 0;
  bool is_named_ = false;
  bool is_put_off_ = false;
};

// A thread cache is where one thread works. It holds the arenas (arena.h) of the streams that the thread uses, under
// one lock and with one map of addresses and one set of sums. So the cost of a thread depends on its requests, not on
// how many streams they go to. The exclusive section, which stops everything, stops thread caches: as many as there are
// threads, and the common one, which holds the arenas that several threads use by turns. Between thread caches of their
// own, blocks that one thread frees and the other allocates would carry the room below the peaks back and forth.
//
//   ThreadCache thread cache(SlotOfThread());
//   const HeldLock held(thread cache.lock, is_mine);
//   if (!thread cache.CountAllocation(is_small, block_bytes, requested_bytes, splits)) ...   // to the exclusive
//   section
//
// Statistics over all arenas have peaks, and a peak is a property of the sum. So that it stays exact without a shared
// counter, every thread cache has a share of the room below the peaks: of either size class, and of both together. As
// long as no thread cache outgrows its shares, no sum can pass its peak. One that would goes to the allocator's slow
// path, which stops all thread caches, adds everything up, raises the peaks and deals the room out anew. With one
// thread there is nothing to share: its thread cache has all the room there is, and only a request that does raise a
// peak goes there.

// One size class of a thread cache. The sums are those since they were last folded into the allocator's statistics.
struct SizeClass {
  Changes left{};  // of its share of the room, never negative: what was dealt minus all changes
  Changes increases{};
  Changes dealt{};
};

// How many exclusive sections end before a thread cache that nobody uses gets no more room.
inline constexpr int kRecentSections = 8;

// Two cache lines apart, so that neighbours do not slow each other down.
struct alignas(128) ThreadCache {
  explicit ThreadCache(const ThreadSlot* its_slot) : slot(its_slot), lock(its_slot != nullptr) {}

  // Of the thread whose thread cache it is; goes to another when that has ended. nullptr: the common one.
  const ThreadSlot* const slot;
  CountedLock lock;
  Journal* journal = nullptr;             // where its events are recorded; nullptr: nobody records, or only in sections
  std::uint64_t visits = 0;               // how often others than its owner used one of its arenas
  Changes left{};                         // of the room for both size classes together
  std::array<SizeClass, 2> size_classes;  // large, small
  int recent_uses = 0;                    // counts down while others are used
  NewestBlock newest;                     // none in the exclusive section
  PointerMap pointers;                    // of blocks of its arenas that were handed out by address

  // Before a lane changes: there is no newest block any more, and what was put off is real and counted.
  void Settle() {
    if (!newest.IsSettled()) [[unlikely]]
      SettleNewest();
    newest.Forget();
  }

  SizeClass& SizeClassOf(bool is_small) { return size_classes[is_small ? 1 : 0]; }
  // An allocation goes to the sums, if these stay below their peaks: without a branch for each.
  bool CountAllocation(bool is_small, std::int64_t block_bytes, std::int64_t requested_bytes,
                       const policy::SplitCounts& splits) {
    SizeClass& sums = SizeClassOf(is_small);
    const std::array<std::int64_t, 3> amounts = {1, block_bytes, requested_bytes};
    std::int64_t lacking = Lacking(sums, splits);
    for (int i = 0; i < kSplitBlocks; ++i) lacking |= (sums.left[i] - amounts[i]) | (left[i] - amounts[i]);
    if (lacking < 0) return false;
    for (int i = 0; i < kSplitBlocks; ++i) {
      sums.left[i] -= amounts[i];
      left[i] -= amounts[i];
      sums.increases[i] += amounts[i];
    }
    CountSplits(sums, splits);
    return true;
  }
  // A free raises nothing but the counts of inactive split blocks.
  bool CountFree(bool is_small, std::int64_t block_bytes, std::int64_t requested_bytes,
                 const policy::SplitCounts& splits) {
    if (Lacking(SizeClassOf(is_small), splits) < 0) return false;
    CountFreeUnchecked(is_small, block_bytes, requested_bytes, splits);
    return true;
  }
  // The newest block again, for a request of so many bytes. The rest is counted by Settle.
  bool CountRepeat(bool is_small, std::int64_t bytes_before, std::int64_t requested_bytes) {
    SizeClass& sums = SizeClassOf(is_small);
    const std::int64_t more = requested_bytes - bytes_before;
    if (((sums.left[kRequestedBytes] - more) | (left[kRequestedBytes] - more)) < 0) return false;
    sums.left[kRequestedBytes] -= more;
    left[kRequestedBytes] -= more;
    sums.increases[kRequestedBytes] += requested_bytes;
    return true;
  }

 private:
  void SettleNewest();
  void CountRepeats(const policy::Block& block, const policy::SplitCounts& splits);
  void CountFreeUnchecked(bool is_small, std::int64_t block_bytes, std::int64_t requested_bytes,
                          const policy::SplitCounts& splits) {
    SizeClass& sums = SizeClassOf(is_small);
    const std::array<std::int64_t, 3> amounts = {1, block_bytes, requested_bytes};
    for (int i = 0; i < kSplitBlocks; ++i) {
      sums.left[i] += amounts[i];
      left[i] += amounts[i];
    }
    CountSplits(sums, splits);
  }
  // Negative when there is no room for them.
  std::int64_t Lacking(const SizeClass& sums, const policy::SplitCounts& splits) const {
    return (sums.left[kSplitBlocks] - splits.blocks) | (left[kSplitBlocks] - splits.blocks) |
           (sums.left[kSplitBytes] - splits.bytes) | (left[kSplitBytes] - splits.bytes);
  }
  void CountSplits(SizeClass& sums, const policy::SplitCounts& splits) {
    sums.left[kSplitBlocks] -= splits.blocks;
    left[kSplitBlocks] -= splits.blocks;
    sums.left[kSplitBytes] -= splits.bytes;
    left[kSplitBytes] -= splits.bytes;
    sums.increases[kSplitBlocks] += splits.blocks > 0 ? splits.blocks : 0;
    sums.increases[kSplitBytes] += splits.bytes > 0 ? splits.bytes : 0;
  }
};

class ThreadCaches {
 public:
  // What the thread caches sum goes to the ledger, which outlives them.
  explicit ThreadCaches(Ledger& ledger);

  // The calling thread's.
  ThreadCacheOfAllocator& OfThread() {
    ThreadCacheOfAllocator& remembered = table_of_thread->caches[id_ % no_thread_slot.caches.size()];
    if (remembered.allocator != id_) [[unlikely]]
      return FindOfThread();
    return remembered;
  }
  // Not within a section.
  ThreadCache& Common() { return Find(nullptr); }

  // Whether no thread cache may serve on its own. It changes in a section, while every thread cache is locked.
  bool IsSerial() const { return is_serial_.load(std::memory_order_acquire); }
  // The same, by who holds the lock of a thread cache or is in a section.
  bool IsSerialNow() const { return is_serial_.load(std::memory_order_relaxed); }

  // Before anybody uses them.
  void BeginSerial(bool is_serial) { is_serial_.store(is_serial, std::memory_order_relaxed); }
  // Every call from now on ends the program with one line: the allocator is gone.
  void Close();
  void CheckOpen() const;
  // Ends the program where some thread is inside.
  void CheckLeft() const { ASHLAR_CHECK(inside_.load(std::memory_order_relaxed) == std::thread::id()); }

  // What thread caches put off is real. Only while no other thread uses them; a section does the same.
  void Settle() const {
    for (const std::unique_ptr<ThreadCache>& cache : thread_caches_) cache->Settle();
  }

  // How often everything stood still after a thread cache had recorded an event. By who holds the lock of a thread
  // cache or is in a section.
  std::uint64_t turn() const { return turn_; }

  // --- only within a section ---
  // From now on thread caches record into its journals; nullptr: they do not record. ThreadCaches must be stopped.
  void SetKeeper(JournalKeeper* keeper);
  JournalKeeper* keeper() const { return keeper_; }
  // Of the thread that is inside.
  ThreadCache& OfSection() { return *cache_of_section_; }
  // Sections so far, and how often thread caches were locked; for the latter all must be stopped.
  std::uint64_t section_count() const { return section_count_; }
  std::uint64_t LockCount() const;

 private:
  friend class ExclusiveSection;

  ThreadCacheOfAllocator& FindOfThread();
  // The thread cache of the slot, nullptr for the common one.
  ThreadCache& Find(const ThreadSlot* slot);

  const std::uint64_t id_;  // no other allocator of the process ever has it
  Ledger& ledger_;
  std::uint64_t turn_ = 1;
  std::atomic<bool> is_serial_{false};
  std::atomic<bool> is_closed_{false};                       // is_serial_ is true then
  std::atomic<std::thread::id> inside_{};                    // the thread that is in the section
  std::mutex mutex_;                                         // the section's, and of what follows
  std::vector<std::unique_ptr<ThreadCache>> thread_caches_;  // as they were made
  JournalKeeper* keeper_ = nullptr;
  ThreadCache* cache_of_section_ = nullptr;  // of the thread that is inside
  std::uint64_t section_count_ = 0;
};

// While an ExclusiveSection exists, its thread has the allocator for itself. It holds the mutex, and every thread
// cache's lock unless the allocator is serial, where no thread cache works on its own. On the way in the thread caches'
// sums are folded into the ledger's statistics, which are complete and exact inside; on the way out the room below the
// peaks is dealt out to the thread caches again. Its cost depends on the number of threads, not of streams. Locks are
// always taken in this order: mutex first, thread caches as they were made.
//
//   const ExclusiveSection section(thread caches);
//
// A second one by the same thread, as from a sink or a filter, ends the program.
class ExclusiveSection {
 public:
  explicit ExclusiveSection(ThreadCaches& caches);
  ~ExclusiveSection();
  ExclusiveSection(const ExclusiveSection&) = delete;
  ExclusiveSection& operator=(const ExclusiveSection&) = delete;

  // Whether no thread cache serves on its own from now on.
  void SetSerial(bool is_serial) const;
  // Also where the allocator is serial: a thread that has not yet seen so may be inside its thread cache's lock.
  void StopThreadCaches() const;

 private:
  void LockThreadCaches() const;
  void UnlockThreadCaches() const;
  void Fold(ThreadCache& cache) const;
  void DealRoom() const;

  ThreadCaches& thread_caches_;
  mutable bool holds_thread_caches_ = false;
  mutable bool is_own_biased_ = false;  // how the thread holds the lock of its own
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_THREAD_CACHES_H_
