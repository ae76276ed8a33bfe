// The ladder: serves requests from the heap and, when it has nothing, from the device, rung by rung:
//
//   finished events -> reuse -> callbacks -> collect garbage -> new segment -> overflow pools (-> borrow)
//     -> release oversize blocks, new segment -> synchronise (-> reuse), release everything, new segment -> out of
//     memory
//
// The rungs in brackets, and others, are beyond PyTorch: options (docs/library/settings.md), off unless asked for.
//
//   device::SimDevice device({.capacity_bytes = 16 * kGiB});
//   CachingAllocator allocator(&device, *policy::ParseConf("max_split_size_mb:128", policy::Compat::kTorch210));
//   absl::StatusOr<Block*> block = allocator.Allocate(300 * kMiB, Stream{0});
//   allocator.Free(*block);
//   allocator.RecordStream(*block, Stream{7});  // stream 7 uses it too
//   allocator.Free(*block);                     // reused once stream 7's work so far is done
//
// Errors: kResourceExhausted is out of memory, after the whole ladder, with at most 12 lines on where every byte is
// (oom_report.h), the first of them a message by itself; anything else is the device's own. Where the ladder could not
// synchronise or return memory, its failure is that error, not out of memory. Calls that answer nothing (EmptyCache
// ...) leave theirs in TakeDeviceError. Where the device is lost (reset, or this is a forked child), every Allocate
// answers that from then on, frees only keep books, and nothing is returned; docs/library/misuse.md has what happens
// when.
//
// Threads: any thread may call anything at any time, but for what says otherwise. A block may be freed by another
// thread than the one that allocated it. What the cache serves takes one lock, of its thread; see
// docs/library/threads.md.
#ifndef ASHLAR_ALLOCATOR_CORE_CACHING_ALLOCATOR_H_
#define ASHLAR_ALLOCATOR_CORE_CACHING_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/units.h"
#include "allocator/core/desk.h"
#include "allocator/core/engine.h"
#include "allocator/core/engine_table.h"
#include "allocator/core/page_directory.h"
#include "allocator/core/pending_frees.h"
#include "allocator/core/pool_routes.h"
#include "allocator/core/soft_limit.h"
#include "allocator/core/stats.h"
#include "allocator/device/device.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/options.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/sink.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {

// What callers hold: a record that they may read and only the allocator writes.
using Block = const policy::Block;
struct FailedAllocation;

class CachingAllocator {
 public:
  // The device is not null and outlives the allocator. Segments are not returned at destruction: the device's owner
  // decides. Blocks that live then are told in one line on stderr, unless report_leaks:False
  // (docs/library/settings.md).
  CachingAllocator(device::Device* device, policy::Options options);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // --- blocks ---
  // A block of at least `bytes`; nullptr for 0 bytes, which is no request at all.
  absl::StatusOr<Block*> Allocate(std::uint64_t bytes, Stream stream, PoolId pool = {});
  // The two halves of Allocate, for who wants no StatusOr where the cache has a block: nullptr where it has none.
  Block* AllocateCached(std::uint64_t bytes, Stream stream, PoolId pool);
  absl::StatusOr<Block*> AllocateUncached(std::uint64_t bytes, Stream stream, PoolId pool);
  // For replays: one that was searched for before, and is not searched for again (a callback has run since).
  absl::StatusOr<Block*> AllocateMissed(std::uint64_t bytes, Stream stream, PoolId pool);
  // The block's caller is done with it; nullptr is no block. Allocates nothing on the cache path. A block that is not
  // live ends the program with one line, as far as its record tells (docs/library/misuse.md).
  void Free(Block* block) noexcept;
  // `stream` uses the block too: once freed, it waits for that stream's work so far. nullptr and blocks that are not
  // live as for Free.
  void RecordStream(Block* block, Stream stream) noexcept;

  // --- addresses, for callers that hold nothing else ---
  absl::StatusOr<std::uint64_t> AllocateAddress(std::uint64_t bytes, Stream stream, PoolId pool = {});
  // False when no live block begins there.
  bool FreeAddress(std::uint64_t address) noexcept;

  // Completes the frees whose events are done; every Allocate does this first.
  void PollEvents();

  // Synchronises every pending free and returns all whole-free memory to the device.
  void EmptyCache();

  // Returns the whole-free large segments that garbage collection would, to reclaim `target_bytes`. The ladder does
  // this by itself, with the target that the memory fraction sets.
  void CollectGarbage(std::uint64_t target_bytes);

  // --- limits (limits.cc) ---
  // At most `fraction` of the device's memory; [0, 1].
  absl::Status SetMemoryFraction(double fraction);
  // At most so many bytes reserved, beside the fraction; nothing = no such limit.
  void SetMemoryLimit(std::optional<std::uint64_t> bytes);
  // The lower of the two limits in bytes, if there is one.
  std::optional<std::uint64_t> limit_bytes() const;
  // Of the device, as it said when the allocator was made.
  std::uint64_t device_total_bytes() const { return total_bytes_; }
  // `callback` is told before a request takes what is reserved from at most `bytes` to above: once for each crossing,
  // and no lock is held, so it may use this allocator; what it frees is searched before memory is obtained. What it
  // throws comes out of the request, which has changed nothing.
  void SetSoftLimit(std::optional<std::uint64_t> bytes, SoftLimitCallback callback);
  // For the soft limit of the settings.
  void SetSoftLimitCallback(SoftLimitCallback callback);

  // Called when nothing in the cache fits; true = something was freed, search again. It may use this allocator. What it
  // throws comes out of the request, which has changed nothing.
  void AddFreeMemoryCallback(std::function<bool()> callback);

  // --- private pools (pools.cc) ---
  // Made on first use, with one user; `use_on_oom` and `no_split` as in PyTorch's MemPool.
  void ConfigurePool(PoolId pool, bool use_on_oom, bool no_split);
  // A new pool with one user, under an id that no pool had before.
  PoolId CreatePool();
  // One user more, and one less. What is free in a pool stays there while it has users; then EmptyCache, EmptyPool and
  // the ladder may return it.
  void RetainPool(PoolId pool);
  void ReleasePool(PoolId pool);
  std::uint64_t PoolUseCount(PoolId pool) const;
  // Synchronises every pending free and returns what is whole-free in this pool. kFailedPrecondition while it has
  // users.
  absl::Status EmptyPool(PoolId pool);
  // From now on requests for the default pool go to this one, if `filter` accepts their stream; of several routes the
  // youngest that accepts. The pool has one user more, whom ReleasePool ends. The filter runs in the requesting thread,
  // under the allocator's lock: it must not use the allocator. kFailedPrecondition: the pool has a route already.
  //
  // With RouteKind::kCapture, until EndPool, no call to the device waits, returns memory or names an event: a request
  // that the cache and new memory cannot serve is out of memory, and frees that wait for other streams begin to wait
  // when the last capture ends.
  absl::Status BeginPool(PoolId pool, StreamFilter filter, RouteKind kind = RouteKind::kPlain);
  // kFailedPrecondition: the pool has no route.
  absl::Status EndPool(PoolId pool);

  // Receives every decision from now on, one at a time and in the order they were made; nullptr = none. Not owned.
  // While there is a sink, all threads share one lock.
  void SetSink(trace::EventSink* sink);
  // The same, but false where there is a sink already.
  bool AddSink(trace::EventSink* sink);

  // Whether an out-of-memory error carries the report, and blocks that live at the end are told. A replay, which fails
  // often and reads its own states, says no.
  void SetFailureReports(bool wanted);

  // Runs `look` while no other thread is inside and no decision is made: what it sees, SegmentsNow() and limit
  // included, is one moment, between two events of the sink. `look` may call what says that it may be called there,
  // nothing else.
  void WhileStill(absl::FunctionRef<void()> look) const;

  // The first error that the device gave, since the last asked, to a call that answers nothing: EmptyCache,
  // CollectGarbage, an Allocate that succeeded all the same. What was pending stays pending; what could not be returned
  // is the device's to return.
  absl::Status TakeDeviceError();

  Stats stats() const;
  const policy::Options& options() const { return heap_.options(); }
  std::size_t pending_event_count() const { return pending_count_.load(std::memory_order_acquire); }
  // Only while no other thread uses the allocator.
  const policy::Heap& heap() const;

  // What was done so far, as counts that are the same on every machine; a call of this counts too.
  struct PathCosts {
    std::uint64_t worlds = 0;        // times everything stood still
    std::uint64_t desk_locks = 0;    // those the Worlds took included
    std::uint64_t engines = 0;       // (pool, stream) pairs that hold segments now
    std::uint64_t index_probes = 0;  // bins of free sets looked at, and lists behind them
    std::uint64_t cuts = 0;          // blocks cut in two
    std::uint64_t joins = 0;         // blocks that became part of a neighbour
  };
  PathCosts path_costs() const;

  // Writes the state as it is into a file for `ashlar explain` (docs/library/failure.md): every block, and where a
  // recorder, if there is one, saw it allocated. `path` may have %p for the process's number and %h for the host; a
  // file of that name is replaced, as a whole. The allocator stands still only while the state is copied; the device is
  // not called. Errors name the file; FailedPrecondition: a recorder is writing it.
  absl::Status DumpSnapshot(const std::string& path) const;

  // The state as a snapshot's segments, by address.
  std::vector<trace::SnapshotSegment> Segments() const;
  // The same, only from within WhileStill.
  std::vector<trace::SnapshotSegment> SegmentsNow() const;
  // Oldest first, but for segments by address.
  std::vector<trace::ReservedRange> ReservationsNow() const;
  trace::RecordedStart StartNow() const;
  std::vector<trace::Fact> PoolsNow() const;  // routes, users and traits, as the facts that lead there
  std::optional<std::uint64_t> LimitNow() const { return limit_bytes_; }

  // Takes over a state that exists on the device already. Returns the blocks in the given order, for a replay to set
  // what KnownBlock does not have.
  std::vector<policy::Block*> RestoreSegment(const policy::Request& lane_of, bool is_small, bool is_expandable,
                                             std::uint64_t address,
                                             const std::vector<policy::Heap::KnownBlock>& blocks);

  // Heap invariants plus agreement of the statistics with the heap.
  absl::Status Validate() const;

  // What a call after the destructor ends in (misuse.cc).
  [[noreturn]] static void StopAtGoneAllocator();

 private:
  enum class Growth : std::uint8_t { kDone, kOutOfMemory, kRejected, kDeviceError };
  enum class NamedBy : std::uint8_t { kPointer, kAddress };  // how the caller will name the block

  // Everything stands still while one of these exists (world.cc).
  class World;
  class TellingEnd;  // of a soft limit's callback

  // --- served from the cache, under one desk's lock (hit_path.cc) ---
  // nullptr or false: the request needs the World.
  template <typename Served, typename Act>
  Served ServeFromCache(Act act);
  template <typename Served, typename Act>
  Served ServeElsewhere(Desk& first, DeskOfAllocator& place, Act& act);
  policy::Block* TryAllocate(const policy::Request& request, NamedBy name);
  policy::Block* TryAllocateIn(Engine& engine, const policy::Request& request, std::uint64_t rounded_bytes,
                               bool is_named);
  bool TryFree(policy::Block* block);
  bool TryFreeAddress(std::uint64_t address);
  bool TryFreeLocked(Desk& desk, policy::Block* block);
  static bool AddRecordedStream(Engine& engine, policy::Block* block, Stream stream);
  static Engine* EngineOf(const Block& block) { return static_cast<Engine*>(block.segment->lane->owner); }

  // --- desks (desks.cc) ---
  DeskOfAllocator& DeskOfThread() const {
    DeskOfAllocator& remembered = desks_of_thread[id_ % desks_of_thread.size()];
    if (remembered.allocator != id_) [[unlikely]]
      FindDeskOfThread(remembered);
    return remembered;
  }
  void FindDeskOfThread(DeskOfAllocator& out) const;
  // The desk of the seat, nullptr for the common one; not in the World.
  Desk& FindDesk(const Seat* seat) const;
  // With the names of its blocks.
  void MoveEngine(const EngineKey& key, Desk& to);
  static void MovePointers(const Engine& engine, Desk& to);

  // --- what a caller got wrong (misuse.cc): the end of the program, with one line ---
  static void CheckLive(const Block* block, const char* call) {
    const bool may_be_record = reinterpret_cast<std::uintptr_t>(block) % alignof(Block) == 0;
    if (!may_be_record || block->state != policy::BlockState::kLive) [[unlikely]]
      StopAtDeadBlock(block, call);
  }
  void CheckOurs(const Block* block, const char* call) const {
    CheckLive(block, call);
    if (EngineOf(*block)->allocator != this) [[unlikely]]
      StopAtForeignBlock(block, call);
  }
  [[noreturn]] static void StopAtDeadBlock(const Block* block, const char* call);
  [[noreturn]] static void StopAtForeignBlock(const Block* block, const char* call);
  void TellLiveBlocks() const;

  // --- everything else, in the World ---
  absl::StatusOr<policy::Block*> AllocateInWorld(policy::Request request, NamedBy name);
  absl::Status BeginRequest(const World& world, policy::Request& request);
  policy::Plan SearchedPlan(const policy::Request& request);
  policy::Plan MissedPlan(const policy::Request& request);
  absl::StatusOr<policy::Block*> Serve(const World& world, policy::Plan& plan, NamedBy name);
  policy::Block* HandOut(policy::Block* block, const policy::Plan& plan, NamedBy name);
  void FreeInWorld(policy::Block* block);
  policy::Block* TakeByAddress(std::uint64_t address);
  void PollInWorld(const World& world);
  // Asks the device, after it failed, whether it is lost.
  void NoteLoss(const World& world);
  void BindEngine(policy::Lane& lane);
  // A segment or reservation of the lane is gone from [begin, end): what nothing is left of goes with it.
  void ForgetIfEmpty(policy::Lane& lane, std::uint64_t begin, std::uint64_t end);

  policy::Block* Search(policy::Plan& plan);
  policy::Block* Grow(const policy::Plan& plan);
  policy::Block* GrowAfterReleasing(const policy::Plan& plan);
  policy::Block* GrowAfterFewWaits(const policy::Plan& plan);
  policy::Block* SearchAgain(const policy::Plan& plan);
  policy::Block* Borrow(const policy::Plan& plan);
  policy::Block* AfterFailedRelease(policy::Block* block, const absl::Status& released);
  policy::Block* NewSegment(const policy::Plan& plan);
  policy::Block* GrowExpandable(const policy::Plan& plan);
  policy::Block* MapBlock(policy::Block* unmapped, std::uint64_t wanted_bytes);
  policy::Block* NewReservation(const policy::Plan& plan);
  std::uint64_t ReservationBytes(std::uint64_t page_bytes) const;
  policy::Block* SearchOverflow(const policy::Plan& plan);
  bool IsAboveLimit(std::uint64_t segment_bytes) const;
  bool IsRejected(std::uint64_t segment_bytes) const;
  bool CountsAges() const;
  policy::Block* Fail(Growth growth);
  policy::Block* Refused(std::uint64_t bytes);  // out of memory, as the device or the limit says

  void CollectGarbage();
  void ReleaseVictims(std::uint64_t target_bytes);
  bool ReleaseOversize(const policy::Plan& plan);
  // `in_use`: the pool a request is under way in, which stays even when nothing is left of it.
  // The first error of the device; what can be released is released all the same.
  absl::Status ReleaseCached(const policy::PoolPair* in_use);
  absl::Status ReturnCached(const policy::PoolPair* in_use);
  // A private pool's; returns the next of them.
  using PrivatePairs = policy::Heap::PrivatePairs;
  PrivatePairs::iterator ReturnPrivate(PrivatePairs::iterator at, const policy::PoolPair* in_use, absl::Status& status);
  // Why nothing may be returned now, if so.
  absl::Status CannotReturn(const char* call) const;
  absl::Status ReleasePoolBlocks(policy::Pool& pool);
  absl::Status ReleaseSegment(policy::Block* whole);
  absl::Status UnmapBlock(policy::Block* block);
  absl::Status ReleaseReservation(policy::Block* unmapped);

  policy::Block* FinishFree(policy::Block* block);
  void WaitForStreams(policy::Block* block, const absl::InlinedVector<Stream, 2>& streams);
  absl::Status SynchronizeEvents();
  void UpdateInactiveSplit(const policy::Lane& lane, const policy::SplitCounts& before);
  absl::Status SetFraction(double fraction);
  void SetLimit();
  void AddPoolUser(PoolId pool);
  bool WantsSerial() const;

  // What a fork does to the allocators of the process (fork.cc): those that have joined.
  class Forks;
  void JoinForks();
  void BecomeForked(const World& world);
  absl::Status OutOfMemory(const policy::Plan& plan);
  trace::Snapshot StateNow() const;
  absl::Status WriteFailure(const FailedAllocation& failed, const std::string& path) const;
  void EmitFact(trace::FactKind kind, std::uint64_t bytes, PoolId pool = {});
  void EmitUsers(PoolId pool);
  void Emit(trace::Action action, std::uint64_t address, std::uint64_t size_bytes, Stream stream,
            const policy::Pool& pool, std::uint64_t block_size_bytes = 0);

  const std::uint64_t id_;  // no other allocator of the process ever has it
  device::Device* device_;
  policy::Heap heap_;  // a lane belongs to the lock of its engine's desk, the rest to the World
  EngineTable engines_;
  PageDirectory pages_;
  std::atomic<bool> is_serial_{false};                 // no engine may serve on its own; changes in the World
  std::atomic<bool> is_gone_{false};                   // the destructor has run; is_serial_ is true then
  mutable std::atomic<std::size_t> pending_count_{0};  // pending_.size() when the World was left
  mutable std::mutex mutex_;                           // the World's
  mutable std::atomic<std::thread::id> inside_{};      // the thread that is in the World

  // The World's.
  mutable std::vector<std::unique_ptr<Desk>> desks_;  // as they were made
  mutable Desk* desk_in_world_ = nullptr;             // of the thread that is in the World
  mutable std::uint64_t worlds_ = 0;
  mutable Stats stats_;
  PendingFrees pending_;
  std::vector<std::function<bool()>> callbacks_;
  PoolRoutes routes_;
  // Frees that begin to wait after a capture.
  std::vector<std::pair<policy::Block*, absl::InlinedVector<Stream, 2>>> deferred_;
  std::uint64_t last_pool_ = 0;
  SoftLimit soft_limit_;
  std::optional<std::uint64_t> fraction_limit_bytes_;
  std::optional<std::uint64_t> memory_limit_bytes_;
  std::optional<std::uint64_t> limit_bytes_;  // the lower of both
  std::uint64_t total_bytes_ = 0;             // never changes
  const std::uint64_t fork_count_;            // when it was made
  trace::EventSink* sink_ = nullptr;
  bool reports_failures_ = true;
  Growth growth_ = Growth::kDone;  // why the last growth failed
  absl::Status device_error_;
  absl::Status unreported_error_;
  absl::Status lost_;  // what the device said when it was lost
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_CACHING_ALLOCATOR_H_
