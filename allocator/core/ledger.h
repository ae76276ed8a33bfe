// The ledger keeps account of one allocator: the heap, the statistics over it, and the sink of its events. Each
// transition of a block or a segment is one function here. The function changes the heap, books the statistics and
// tells the sink, in that order. Nobody else books anything; requests that the cache serves are summed on thread caches
// (thread_caches.h) and arrive by Fold.
//
//   Ledger ledger(options, [](policy::Lane&, const policy::AddressRange&) {});
//   policy::Decision decision = ledger.heap().Decide({.bytes = 300, .stream = s});
//   policy::Block* block = ledger.Place(decision, ledger.AddSegment(decision,
//   *device.AllocateSegment(decision.segment_bytes))); ledger.HandOut(*block, decision); ledger.BeginFree(*block);
//   ledger.CompleteFree(block);
//
// The device is asked first, by the caller: a transition that is booked cannot fail. Sizes are bytes. Thread rule: not
// thread-safe; the allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_LEDGER_H_
#define ASHLAR_ALLOCATOR_CORE_LEDGER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "allocator/core/stats.h"
#include "allocator/policy/heap.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/sink.h"

namespace ashlar::core {

class Ledger {
 public:
  // Told when a segment or reservation of the lane is gone from the range. A lane without any goes right after.
  using OnGone = std::function<void(policy::Lane& lane, const policy::AddressRange& range)>;

  Ledger(policy::Options options, OnGone on_gone);

  policy::Heap& heap() { return heap_; }
  const policy::Heap& heap() const { return heap_; }
  const policy::Options& options() const { return heap_.options(); }
  const Stats& stats() const { return stats_; }
  // What each private pool holds of the device; one that ended keeps what it had.
  const std::map<PoolId, PoolStat>& reserved_by_pools() const { return reserved_by_pools_; }
  void ResetPeaks();

  // --- segments: the device has given, mapped, unmapped or taken them ---
  policy::Block* AddSegment(const policy::Decision& decision, std::uint64_t address);
  void RemoveSegment(policy::Block* whole);
  policy::Block* AddReservation(const policy::Decision& decision, std::uint64_t address, std::uint64_t size_bytes,
                                std::uint64_t page_bytes);
  void RemoveReservation(policy::Block* unmapped);
  policy::Block* MarkMapped(policy::Block* unmapped, std::uint64_t size_bytes, std::uint64_t page_bytes);
  // Of a pair that is asleep: the device took the pages before, with the others.
  policy::Block* MarkUnmapped(policy::Block* block, const policy::AddressRange& range);
  // The device took all pages of the pair's segments, or gave them again, in so many calls (policy::Heap::SetAsleep).
  void SetAsleep(policy::PoolPair& pair, bool is_asleep, std::int64_t calls);

  // --- blocks ---
  // Places the request in a block that is in no free set, at plan.place_at where there is one.
  policy::Block* Place(const policy::Decision& decision, policy::Block* block);
  // The block goes to the caller.
  void HandOut(const policy::Block& block, const policy::Decision& decision);
  // The caller is done with the block, which is in use until CompleteFree.
  void BeginFree(const policy::Block& block);
  // The free block that it is part of from now on.
  policy::Block* CompleteFree(policy::Block* block);

  // --- requests ---
  void CountRetry() { ++stats_.num_alloc_retries; }
  void CountSynchronization() { ++stats_.num_sync_all_streams; }
  // A request waits for another stream's block.
  void NoteStreamWait(std::uint32_t owed) {
    ++stats_.num_stream_waits;
    Note(trace::fact::StreamWaited{owed});
  }
  void CountRejection() { ++stats_.num_oom_rejections; }
  void RecordOom(const policy::Decision& decision, std::uint64_t device_free_bytes);
  // From now on; only what policy::ChangedSettings allows. Counts again what is oversize.
  void SetOptions(policy::Options options);
  // What lay between two decisions (trace/fact.h).
  void Note(const trace::AnyFact& fact);

  // --- what the cache served: none of it took a statistic above its peak ---
  void Fold(bool is_small, const Changes& changes, const Changes& increases);
  // How much more of each there may be before a peak is passed, of one size class or of both.
  Changes RoomBelowPeaks(PoolKind kind) const;

  // --- the sink, and an observer of events beside it; nullptr: none. Not owned ---
  trace::EventSink* sink() const { return sink_; }
  void SetSink(trace::EventSink* sink) { sink_ = sink; }
  trace::EventSink* observer() const { return observer_; }
  void SetObserver(trace::EventSink* observer) { observer_ = observer; }
  // Pages of an address that stays were given back to the device, or are there again: the observer's alone.
  void TellPages(bool are_there, const policy::AddressRange& range, const policy::Lane& lane);

  // --- states ---
  // Takes over a segment that exists on the device already: its blocks, in the given order. The sink is not told.
  std::vector<policy::Block*> Restore(const policy::Request& lane_of, bool is_small, bool is_expandable,
                                      std::uint64_t address, const std::vector<policy::Heap::KnownBlock>& known);
  // The heap's own invariants, and the statistics against the heap.
  absl::Status Validate() const;

 private:
  // Each takes place `sign` times: 1, or -1 for the way back.
  void BookSegment(const policy::Segment& segment, std::int64_t sign);
  void BookAllocated(const policy::Block& block, std::int64_t sign);
  void BookActive(const policy::Block& block, std::int64_t sign);
  void BookSplits(const policy::Pool& pool, const policy::SplitCounts& change);
  void BookReserved(const policy::Pool& pool, std::int64_t bytes);
  void BookRestored(const policy::Block& block);
  struct OversizeCounts {
    std::int64_t allocations = 0;
    std::int64_t segments = 0;
  };
  OversizeCounts CountOversize() const;

  void Emit(trace::Action action, const policy::AddressRange& range, const policy::Lane& lane,
            std::uint64_t block_size_bytes = 0);
  void Emit(const trace::Event& event, std::uint64_t block_size_bytes);
  void Forget(policy::Lane& lane, const policy::AddressRange& range);
  bool IsOversize(std::uint64_t size_bytes) const { return size_bytes >= options().max_split_size_bytes; }

  policy::Heap heap_;
  Stats stats_;
  std::map<PoolId, PoolStat> reserved_by_pools_;
  trace::EventSink* sink_ = nullptr;
  trace::EventSink* observer_ = nullptr;
  const OnGone on_gone_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_LEDGER_H_
