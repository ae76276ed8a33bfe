// The caching allocator: serves requests from its cache and, when that has nothing that fits, from the device.
//
//   the cache            one thread cache's lock, no device                      fast_path.h
//   finished events      frees whose streams are done come back          pending_frees.h
//   the cache again
//   callbacks            functions that can give memory back, then the soft limit's
//   the rungs            the device, and releases before it              ladder.h
//
// The class puts its parts together and adds nothing of its own. Each part has a header and tests.
//
//   device::SimDevice device({.capacity_bytes = 16 * kGiB});
//   CachingAllocator allocator(&device, *policy::ParseConf("max_split_size_mb:128", policy::Compat::kTorch210));
//   absl::StatusOr<Block*> block = allocator.Allocate(300 * kMiB, Stream{0});
//   allocator.Free(*block);
//   allocator.RecordStream(*block, Stream{7});  // stream 7 uses it too
//   allocator.Free(*block);                     // reused once stream 7's work so far is done
//
// Errors: kResourceExhausted is out of memory, after the whole ladder. Its text has at most 12 lines on where every
// byte is (oom_report.h); the first line is a message by itself. Any other code is the device's own. A request fails
// with the device's error, not as out of memory, when the ladder could not synchronise or return memory. A call that
// returns nothing (EmptyCache ...) leaves its error in TakeDeviceError. A lost device (reset, or this is a forked
// child) fails every Allocate from then on; frees only keep account, and nothing is returned (docs/library/misuse.md).
//
// Threads: any thread may call any function at any time, unless its comment says otherwise. A block may be freed by
// another thread than the one that allocated it. A request that the cache serves takes one lock, that of its thread
// (docs/library/threads.md).
#ifndef ASHLAR_ALLOCATOR_CORE_CACHING_ALLOCATOR_H_
#define ASHLAR_ALLOCATOR_CORE_CACHING_ALLOCATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/base/units.h"
#include "allocator/core/captured_frees.h"
#include "allocator/core/failure_reports.h"
#include "allocator/core/fast_path.h"
#include "allocator/core/journal.h"
#include "allocator/core/ladder.h"
#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/core/pending_frees.h"
#include "allocator/core/pools.h"
#include "allocator/core/sleeper.h"
#include "allocator/core/stats.h"
#include "allocator/core/thread_caches.h"
#include "allocator/device/device.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/options.h"
#include "allocator/trace/sink.h"
#include "allocator/trace/snapshot.h"
#include "ashlar/sleep.h"
#include "ashlar/snapshot.h"

namespace ashlar::core {

// What callers hold: a record that they may read and only the allocator writes.
using Block = const policy::Block;

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
  absl::StatusOr<Block*> Allocate(std::uint64_t bytes, Stream stream, PoolId pool = {}) {
    if (Block* block = AllocateCached(bytes, stream, pool); block != nullptr) [[likely]]
      return block;
    return AllocateUncached(bytes, stream, pool);
  }
  // The two halves of Allocate, for a caller that wants no StatusOr of a cached block: nullptr where none is cached.
  Block* AllocateCached(std::uint64_t bytes, Stream stream, PoolId pool) {
    return TryAllocate<HandOutAs::kPointer>(bytes, stream, pool);
  }
  absl::StatusOr<Block*> AllocateUncached(std::uint64_t bytes, Stream stream, PoolId pool);
  // The block's caller is done with it; nullptr is no block. Allocates nothing on the cache path. A block that is not
  // live ends the program with one line, as far as its record tells (docs/library/misuse.md).
  void Free(Block* block) noexcept {
    if (block == nullptr) return;
    auto* record = const_cast<policy::Block*>(block);
    if (!fast_path_.TryFree(record)) [[unlikely]]
      FreeUncached(record);
  }
  // `stream` uses the block too: once freed, it waits for that stream's work so far. nullptr and blocks that are not
  // live as for Free.
  void RecordStream(Block* block, Stream stream) noexcept;

  // --- addresses, for callers that hold nothing else ---
  absl::StatusOr<std::uint64_t> AllocateAddress(std::uint64_t bytes, Stream stream, PoolId pool = {}) {
    Block* block = TryAllocate<HandOutAs::kAddress>(bytes, stream, pool);
    if (block != nullptr) [[likely]]
      return block->address;
    return AllocateAddressUncached(bytes, stream, pool);
  }
  // False when no live block begins there.
  bool FreeAddress(std::uint64_t address) noexcept {
    return fast_path_.TryFreeAddress(address) || FreeAddressUncached(address);
  }
  // As RecordStream. False when no live block that was handed out by address begins there.
  bool RecordStreamOfAddress(std::uint64_t address, Stream stream) noexcept;
  // The live block that holds this address, however it was handed out; nothing where there is none. It walks the
  // blocks of one segment.
  std::optional<BlockPlace> FindBlock(std::uint64_t address) const;

  // The page that holds this address of a live block in an expandable segment, for another process of the machine.
  // InvalidArgument: there is no such block; else why the device does not share it.
  absl::StatusOr<SharedPage> SharePage(std::uint64_t address);

  // Whether the address lies in a segment, in a live block or not, or in a range that was reserved.
  bool Holds(std::uint64_t address) const;
  // Whether blocks of about this address were handed out by address: a hint, without a lock.
  bool MayHold(std::uint64_t address) const { return fast_path_.MayHold(address); }
  // Exactly this range of free memory, whatever the rules would have chosen, for a request of so many bytes. nullptr
  // where it is not free.
  Block* AllocateAt(const policy::AddressRange& range, std::uint64_t requested_bytes, HandOutAs as);
  // A request by address that is served at this very address: in free memory of its own pool and stream, cut by the
  // rules above it. What is free below it in the same block is handed out first and freed at once. InvalidArgument:
  // there is no such memory.
  absl::Status AllocateAddressExactly(policy::Request request, std::uint64_t address);

  // Completes the frees whose events are done; every Allocate does this first.
  void PollEvents();

  // Synchronises every pending free and returns all whole-free memory to the device.
  void EmptyCache();

  // Returns the whole-free large segments that garbage collection would, to reclaim `target_bytes`. The ladder does
  // this by itself, with the target that the memory fraction sets.
  void CollectGarbage(std::uint64_t target_bytes);

  // --- limits (limits.h) ---
  // At most `fraction` of the device's memory; [0, 1].
  absl::Status SetMemoryFraction(double fraction);
  // At most so many bytes reserved, beside the fraction; nothing = no such limit.
  void SetMemoryLimit(std::optional<std::uint64_t> bytes);
  // The lower of the two limits in bytes, if there is one.
  std::optional<std::uint64_t> limit_bytes() const;
  // Of the device, as it said when the allocator was made.
  std::uint64_t device_total_bytes() const { return limits_.total_bytes(); }
  // `callback` is told before a request takes what is reserved from at most `bytes` to above: once for each crossing,
  // and no lock is held, so it may use this allocator; what it frees is searched before memory is obtained. What it
  // throws comes out of the request, which has changed nothing.
  void SetSoftLimit(std::optional<std::uint64_t> bytes, SoftLimitCallback callback);
  // For the soft limit of the settings.
  void SetSoftLimitCallback(SoftLimitCallback callback);

  // Called when nothing in the cache fits; true = something was freed, search again. It may use this allocator. What it
  // throws comes out of the request, which has changed nothing. The number by which it is removed, never 0.
  std::uint64_t AddFreeMemoryCallback(std::function<bool()> callback);
  // False: there is none of that number. A request of another thread that asks just now may still call it.
  bool RemoveFreeMemoryCallback(std::uint64_t number);

  // --- private pools (pools.h) ---
  // Made on first use, with one user; `use_on_oom` and `no_split` as in PyTorch's MemPool.
  void ConfigurePool(PoolId pool, bool use_on_oom, bool no_split);
  // Where the pool's segments come from, in place of the device; made on first use, with one user. Its memory is never
  // of expandable segments. FailedPrecondition: it has memory already, or a tag.
  absl::Status SetPoolMemory(PoolId pool, std::shared_ptr<PoolMemory> memory);
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
  // A graph is captured from now on through the pool's plain route, which becomes a RouteKind::kCapture; or no more,
  // and the route is plain again. kFailedPrecondition: the pool has no such route; kInvalidArgument: it has a tag.
  absl::Status BeginCapture(PoolId pool);
  absl::Status EndCapture(PoolId pool);

  // --- sleep (ashlar/sleep.h, sleeper.h) ---
  // Names the pool, made on first use with one user: several may have one name. Its new memory is of expandable
  // segments from here on, where the device has them. What is free in it goes back to the device as from a pool without
  // users. FailedPrecondition: a graph is being captured in it; InvalidArgument: it is the default pool, or the tag is
  // empty.
  absl::Status TagPool(PoolId pool, absl::string_view tag);
  // Empties the cache, waits for the streams that use the pools, keeps what live blocks hold, and gives all their pages
  // back. Frees go on; a request for such a pool is FailedPrecondition, and RecordStream leaves that in
  // TakeDeviceError. Pools that sleep already are passed over. FailedPrecondition: a graph is being captured, or a pool
  // has memory of cudaMalloc. Where this fails nothing more sleeps than before.
  absl::StatusOr<SleepReport> Sleep(const SleepOptions& options);
  // The same bytes at the same addresses, of all these pools or, where this fails, of none: what is kept stays kept.
  // kResourceExhausted: out of memory, after the cache was emptied, with its report.
  absl::Status Wake(const SleepingPools& wanted);
  // Whether the address lies in a pool that sleeps.
  bool IsAsleep(std::uint64_t address) const;
  // Whose the device's memory in use is, the largest part first: pools that are awake, and what is none of ours.
  std::vector<HeldPart> Held() const;

  // --- ranges that somebody else uses as they are ---
  // Until UnregisterRange nothing of the range is given back to the device, and its pool does not sleep. One line on
  // stderr, once, where it lies in an expandable segment. InvalidArgument: it does not lie in one segment;
  // FailedPrecondition: it sleeps.
  absl::Status RegisterRange(std::uint64_t address, std::uint64_t size_bytes);
  // The youngest that begins there. InvalidArgument: none does.
  absl::Status UnregisterRange(std::uint64_t address);

  // Receives every decision from now on, one at a time and in the order they were made; nullptr = none. Not owned.
  // While there is a sink, all threads share one lock.
  void SetSink(trace::EventSink* sink);
  // The same, but false where there is a sink already. With a keeper, threads go on as without a sink: what a thread
  // cache serves on its own is recorded in its journal, and the sink receives the rest.
  bool AddSink(trace::EventSink* sink, JournalKeeper* keeper = nullptr);

  // Receives every event too, beside a sink, and no facts; nullptr = none. Not owned. While there is an observer, all
  // threads share one lock.
  void SetObserver(trace::EventSink* observer);

  // Whether an out-of-memory error carries the report, and blocks that live at the end are told. A replay, which fails
  // often and reads its own states, says no.
  void SetFailureReports(bool wanted);

  // The first error that the device gave, since the last asked, to a call that answers nothing: EmptyCache,
  // CollectGarbage, an Allocate that succeeded all the same. What was pending stays pending; what could not be returned
  // is the device's to return.
  absl::Status TakeDeviceError();

  Stats stats() const;
  // What each private pool holds of the device; one that ended keeps what it had.
  std::map<PoolId, PoolStat> reserved_by_pools() const;
  // Every peak is the current value again.
  void ResetPeaks();
  // Those in force. Not while another thread changes them: OptionsNow is for that.
  const policy::Options& options() const { return ledger_.options(); }
  policy::Options OptionsNow() const;
  // From now on these settings, as if the allocator had been made with this text. kInvalidArgument: a bad key or value,
  // or one that cannot change (policy/options.h); nothing has changed then. No call to the device; the
  // allocator stands still while the blocks are looked at, where max_split_size_mb changes. What is recorded meanwhile
  // says so.
  absl::Status ChangeSettings(absl::string_view conf);
  std::size_t pending_event_count() const { return pending_.size(); }
  // Writes the state as it is into a file for `ashlar explain` (docs/library/failure.md): every block, and where a
  // recorder, if there is one, saw it allocated. `path` may have %p for the process's number and %h for the host; a
  // file of that name is replaced, as a whole. The allocator stands still only while the state is copied; the device is
  // not called. Errors name the file; FailedPrecondition: a recorder is writing it.
  absl::Status DumpSnapshot(const std::string& path) const;

  // The state as a snapshot's segments, by address.
  std::vector<trace::SnapshotSegment> Segments() const;

  // Heap invariants plus agreement of the statistics with the heap.
  absl::Status Validate() const;

 private:
  friend class Inspection;
  friend class Reconstruction;
  class Forks;         // those of the process that have joined (caching_allocator.cc)
  class CrossingTold;  // ends what a soft limit's callback began

  ThreadCaches& caches() const { return fast_path_.caches(); }

  // nullptr: the request needs the exclusive section.
  template <HandOutAs as>
  policy::Block* TryAllocate(std::uint64_t bytes, Stream stream, PoolId pool) {
    if (bytes == 0 || bytes > policy::kMaxRequestBytes || pending_.size() != 0) [[unlikely]]
      return nullptr;
    return fast_path_.TryAllocate<as>(bytes, stream, pool);
  }
  absl::StatusOr<std::uint64_t> AllocateAddressUncached(std::uint64_t bytes, Stream stream, PoolId pool);
  void FreeUncached(policy::Block* block);
  bool FreeAddressUncached(std::uint64_t address);

  // In sections of its own.
  absl::StatusOr<policy::Block*> AllocateExclusively(policy::Request request, HandOutAs as);

  // --- within a section ---
  absl::Status BeginRequest(const ExclusiveSection& section, policy::Request& request);
  // The request leaves an event only later, but has counted as a search.
  void NoteSearch(const policy::Decision& decision);
  absl::StatusOr<policy::Block*> Serve(const ExclusiveSection& section, const policy::Decision& decision, HandOutAs as);
  absl::Status Fail(const ExclusiveSection& section, const policy::Decision& decision, const GrowthResult& failed);
  // In a free block that holds the range.
  policy::Block* PlaceExactly(policy::Block* free, const policy::AddressRange& range, std::uint64_t requested_bytes,
                              HandOutAs as);
  void FreeExclusively(policy::Block* block);
  // Frees of the stream's blocks that the graph being captured proves done.
  void CompleteInCapture(Stream stream);
  void WaitForStreams(policy::Block* block, const StreamList& streams);
  // Capturing begins or ends: the device is told, and what waited for the end of the last one goes on.
  void NoteCaptures(const ExclusiveSection& section, bool was_capturing);
  // FailedPrecondition: it sleeps.
  absl::Status CheckAwake(const policy::PoolPair* pair, const char* call) const;
  Sleeper::Pairs PairsOf(const std::vector<PoolId>& ids);
  absl::StatusOr<SleepReport> PutToSleep(const Sleeper::Pairs& pairs, const SleepOptions& options);
  Sleeper::Woken WakeUp(const Sleeper::Pairs& pairs, const SleepProgress& progress = {});
  absl::Status FailToWake(const policy::PoolPair& pair, std::uint64_t bytes) const;
  // Why nothing may be returned now, if so.
  absl::Status CannotReturn(const char* call) const;
  void NoteLimit(const ExclusiveSection& section);
  // Asks the device, after it failed, whether it is lost.
  void NoteLoss(const ExclusiveSection& section);
  // Serial while there is a sink without a keeper (events need one order), ages are counted (each request ages the
  // whole pool), requests are routed to private pools, or the device is lost.
  bool WantsSerial() const;
  void ChooseMode(const ExclusiveSection& section) { section.SetSerial(WantsSerial()); }
  void UseSink(const ExclusiveSection& section, trace::EventSink* sink, JournalKeeper* keeper);
  void BecomeForked(const ExclusiveSection& section);

  device::Device* const device_;
  Ledger ledger_;
  mutable FastPath fast_path_;  // stopping it, for a look, changes it
  PendingFrees pending_;
  Pools pools_;
  CapturedFrees captured_;
  Limits limits_;
  Ladder ladder_;
  Sleeper sleeper_;
  FailureReports failures_;
  std::map<std::uint64_t, std::function<bool()>> callbacks_;  // of free memory, by their numbers
  std::uint64_t callbacks_added_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_CACHING_ALLOCATOR_H_
