// The fast path serves requests from the cache, under the lock of one thread cache (thread_caches.h): an arena for each
// pool and stream, and the map from addresses to blocks.
//
//   FastPath fast_path(ledger);
//   policy::Block* block = fast_path.TryAllocate<HandOutAs::kPointer>(300, s, PoolId{});
//   if (block == nullptr) {
//     const ExclusiveSection section(fast_path.thread caches());
//     ...                                                       // the ladder; then Enter what it gives
//   }
//   if (!fast_path.TryFree(block)) ...                          // the same
//
// nullptr or false: nothing was done, and the request needs the exclusive section. What is served here is as exact as
// there: the sums reach the ledger when the next section begins. Allocates no memory on the way but for a map that
// grows. Thread rule: any thread may call the Try functions and Check, at any time; the rest within a section.
#ifndef ASHLAR_ALLOCATOR_CORE_FAST_PATH_H_
#define ASHLAR_ALLOCATOR_CORE_FAST_PATH_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/core/arena.h"
#include "allocator/core/ledger.h"
#include "allocator/core/pending_frees.h"
#include "allocator/core/thread_caches.h"
#include "allocator/policy/block.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

// Ends the program with one line where a caller did something wrong that no call can answer with an error
// (docs/library/misuse.md).
//
//   CheckLive(block, "Free");
//
// The checks are a few instructions; all else is cold. Threads: any.

[[noreturn]] void StopAtDeadBlock(const policy::Block* block, const char* call);
[[noreturn]] void StopAtForeignBlock(const policy::Block* block, const char* call);
// What a call after the allocator's destructor ends in.
[[noreturn]] void StopAtGoneAllocator();

// As far as the block's record tells.
inline void CheckLive(const policy::Block* block, const char* call) {
  const bool may_be_record = reinterpret_cast<std::uintptr_t>(block) % alignof(policy::Block) == 0;
  if (!may_be_record || block->state != policy::BlockUse::kLive) [[unlikely]]
    StopAtDeadBlock(block, call);
}

// What the caller keeps of a block, and will free it by.
enum class HandOutAs : std::uint8_t { kPointer, kAddress };

class FastPath {
 public:
  // The ledger outlives this. Of its heap, a lane belongs to the lock of its arena's thread cache, the rest to the
  // section.
  explicit FastPath(Ledger& ledger);
  FastPath(const FastPath&) = delete;
  FastPath& operator=(const FastPath&) = delete;

  ThreadCaches& caches() { return thread_caches_; }

  // Only while no free waits for events.
  template <HandOutAs as>
  policy::Block* TryAllocate(std::uint64_t bytes, Stream stream, PoolId pool);
  bool TryFree(policy::Block* block);
  bool TryFreeAddress(std::uint64_t address);
  // False where the block does not lie on this thread's thread cache.
  bool TryRecordStreamOfAddress(std::uint64_t address, Stream stream);
  // The stream uses the block too, which is live and of another stream.
  bool TryRecordStream(policy::Block* block, Stream stream);
  // Ends the program where the block is not live, or another allocator's.
  void Check(const policy::Block* block, const char* call) const {
    CheckLive(block, call);
    if (ArenaOf(*block)->owner != this) [[unlikely]]
      StopAtForeignBlock(block, call);
  }

  // Whether blocks of about this address were handed out by address: a hint.
  bool MayHold(std::uint64_t address) const { return pages_.Find(address) != nullptr; }

  // --- within a section ---
  // The ladder's block goes to the caller. One of another stream waits for the requester's when it is freed.
  void Enter(policy::Block* block, Stream requester, HandOutAs as);
  // The block is being freed. The streams that use it besides its own, which it forgets.
  StreamList Leave(policy::Block* block);
  void RecordStream(policy::Block* block, Stream stream) { AddRecordedStream(*ArenaOf(*block), block, stream); }
  // Removes and returns the block that was handed out by this address; nullptr when there is none.
  policy::Block* TakeByAddress(std::uint64_t address);
  // The same, and it stays.
  policy::Block* FindByAddress(std::uint64_t address) const;
  // A lane that is new gets its arena.
  void Bind(policy::Lane& lane);
  // A plan places the lane's requests from now on: none is served here.
  static void LeaveToPlan(policy::Lane& lane);
  // The lane's pool falls asleep or wakes: nothing is served here meanwhile. Thread caches are stopped.
  static void SetAsleep(policy::Lane& lane, bool is_asleep);
  // The streams that use the live block besides its own.
  static StreamList RecordedStreams(const policy::Block& block);
  // Nothing of the lane is left in the range; an arena without lanes goes.
  void Forget(policy::Lane& lane, const policy::AddressRange& range);
  std::size_t arena_count() const { return arenas_.size(); }

 private:
  template <auto act, typename... Arguments>
  auto ServeFromCache(Arguments... arguments);
  template <auto act, typename Served, typename... Arguments>
  Served ServeElsewhere(ThreadCache& first, ThreadCacheOfAllocator& place, Arguments... arguments);
  // What is served, in the thread cache that is locked.
  template <bool is_named>
  policy::Block* AllocateAt(ThreadCache& cache, Arena*& arena, std::uint64_t bytes, const ArenaKey& key);
  bool FreeAt(ThreadCache& cache, Arena*& arena, policy::Block* block);
  bool FreeAddressAt(ThreadCache& cache, Arena*& arena, std::uint64_t address);
  bool RecordStreamAt(ThreadCache& cache, Arena*& arena, policy::Block* block, Stream stream);
  bool RecordStreamOfAddressAt(ThreadCache& cache, Arena*& arena, std::uint64_t address, Stream stream);
  template <bool is_named>
  policy::Block* TryAllocateIn(Arena& arena, std::uint64_t bytes, std::uint64_t rounded_bytes);
  policy::Block* TakeBack(ThreadCache& cache, std::uint64_t bytes);
  bool TryPutOff(ThreadCache& cache, policy::Block* block, bool is_named, std::size_t slot);
  bool TryFreeLocked(ThreadCache& cache, policy::Block* block);
  static bool AddRecordedStream(Arena& arena, policy::Block* block, Stream stream);
  static Arena* ArenaOf(const policy::Block& block) { return static_cast<Arena*>(block.segment->lane->owner); }
  // Where a block of this address would be named; nullptr where there is no segment.
  ThreadCache* ThreadCacheOfAddress(std::uint64_t address) const;
  // With the addresses of its blocks.
  void MoveArena(const ArenaKey& key, ThreadCache& to);
  static void MovePointers(const Arena& arena, ThreadCache& to);

  policy::Heap& heap_;
  const bool can_put_off_;  // a second allocation from the same state gets the same (thread_caches.h)
  ArenaTable arenas_;
  PageDirectory pages_;
  ThreadCaches thread_caches_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_FAST_PATH_H_
