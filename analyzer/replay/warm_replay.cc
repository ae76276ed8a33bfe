#include "analyzer/replay/warm_replay.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/replay/decisions.h"
#include "analyzer/replay/log_replay.h"
#include "analyzer/replay/recorded_device.h"
#include "analyzer/replay/replayed_window.h"
#include "analyzer/replay/reservations.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {
namespace {

using trace::Action;
using trace::Event;
using trace::OpKind;

class WarmReplayer {
 public:
  WarmReplayer(const timeline::DeviceTrace& trace, const SnapshotProgram& program, const policy::Options& options,
               const WarmReplayHints& hints)
      : trace_(trace),
        program_(program),
        events_(trace.events),
        reservations_(FindReservations(trace, program, options, hints.device_total_bytes)),
        allocator_(&device_, WithReserve(options, reservations_)),
        sink_(program.start, device_, hints.keeps_timeline) {
    allocator_.SetFailureReports(false);
    core::Reconstruction(allocator_).PollNewsOf(device_.simulated());
  }

  absl::StatusOr<WarmReplay> Run() {
    // Ages count only while there is a limit; this one is never reached.
    if (options().garbage_collection_threshold > 0) setup_ = allocator_.SetMemoryFraction(0.99);
    if (setup_.ok()) setup_ = Restore();
    if (!setup_.ok()) return setup_;
    MarkGrowthAhead();
    FindRoomAhead();
    sink_.Watch(allocator_);
    for (std::size_t i = program_.start_count; i < program_.answers.size(); ++i) Step(i);
    return Finish();
  }

 private:
  const policy::Options& options() const { return allocator_.options(); }
  const policy::Heap& heap() const { return core::Inspection(allocator_).heap(); }
  const Event& EventAt(std::int64_t index) const { return events_[static_cast<std::size_t>(index)]; }

  absl::Status Restore() {
    blocks_.assign(program_.requests.id_count, nullptr);
    const absl::StatusOr<std::vector<core::Block*>> start = RestoreWindow(program_, reservations_, allocator_, device_);
    if (!start.ok()) return start.status();
    for (std::size_t i = 0; i < start->size(); ++i) blocks_[program_.start_ids[i]] = (*start)[i];
    // What the window found pending waits from now on; its free was requested before the first event.
    for (std::size_t i = program_.start_ids.size(); i < program_.start_count; ++i) Step(i);
    return absl::OkStatus();
  }

  // How much more than right before it the device gave later on, at each request that grew after a release.
  void FindRoomAhead() {
    std::uint64_t most = 0;
    auto at = static_cast<std::int64_t>(events_.size());
    for (std::size_t i = program_.answers.size(); i-- > program_.start_count;) {
      const RecordedAnswer& answer = program_.answers[i];
      if (program_.requests.requests[i].kind != OpKind::kAlloc || !IsReleaseFirst(answer)) continue;
      for (; at > answer.segments_from; --at) {
        const Event& event = EventAt(at - 1);
        if (trace::IsGrowth(event.action)) most += event.size_bytes;
        if (IsRelease(event.action)) most -= std::min(most, event.size_bytes);
      }
      room_ahead_[answer.event] = most;
    }
  }

  bool IsReleaseFirst(const RecordedAnswer& answer) const {
    for (std::int64_t i = answer.segments_from; i < answer.event; ++i) {
      if (IsSegmentEvent(EventAt(i).action)) return IsRelease(EventAt(i).action);
    }
    return false;
  }

  // Which completed frees and releases stand right before a request that had to grow, so may be part of it.
  void MarkGrowthAhead() {
    const std::size_t count = program_.answers.size();
    is_growth_ahead_.assign(count, false);
    bool ahead = false;
    for (std::size_t i = count; i-- > program_.start_count;) {
      const OpKind kind = program_.requests.requests[i].kind;
      const bool is_ladder = kind == OpKind::kEmptyCache && program_.answers[i].release == Release::kMaybeLadder;
      if (kind == OpKind::kAlloc) {
        ahead = HasGrown(program_.answers[i]);
      } else if (kind != OpKind::kStreamSync && !is_ladder) {
        ahead = false;
      }
      is_growth_ahead_[i] = ahead;
    }
  }

  bool HasGrown(const RecordedAnswer& answer) const {
    if (answer.is_oom) return true;
    for (std::int64_t i = answer.segments_from; i <= answer.event; ++i) {
      if (trace::IsGrowth(EventAt(i).action)) return true;
    }
    return false;
  }

  void Step(std::size_t index) {
    const trace::Op& request = program_.requests.requests[index];
    const RecordedAnswer& answer = program_.answers[index];
    if (answer.event >= 0) sink_.SetOrigin(EventAt(answer.event).stack, EventAt(answer.event).time_us);
    switch (request.kind) {
      case OpKind::kAlloc:
        return Allocate(request, answer);
      case OpKind::kFree:
        if (core::Block* block = std::exchange(blocks_[request.id], nullptr); block != nullptr) allocator_.Free(block);
        return Compare(answer);
      case OpKind::kRecordStream:
        if (core::Block* block = blocks_[request.id]; block != nullptr) {
          allocator_.RecordStream(block, request.stream);
          waiting_[Handle(request.stream)] = {block, block->address};
        }
        return;
      case OpKind::kStreamSync:
        held_.push_back(index);
        if (!is_growth_ahead_[index]) CompleteHeld(held_.size());
        return;
      case OpKind::kDeviceSync:
        return;
      case OpKind::kEmptyCache:
        if (answer.release != Release::kMaybeLadder || !is_growth_ahead_[index]) return ReleaseMemory(answer);
        release_ = index;
        return;
      case OpKind::kTagPool:
      case OpKind::kSleep:
      case OpKind::kWake:
        return;  // no snapshot's program has them
    }
  }

  // The first `count` of the frees that are recorded as completed and not yet.
  void CompleteHeld(std::size_t count) {
    for (; count > 0; --count) {
      const Stream stream = program_.requests.requests[held_.front()].stream;
      held_.pop_front();
      waiting_.erase(Handle(stream));
      device_.simulated().CompleteStream(stream);
      allocator_.PollEvents();
    }
  }

  // A release that no growth follows: the user emptied the cache, or garbage was collected for a request that left
  // no event.
  void ReleaseMemory(const RecordedAnswer& answer) {
    const std::vector<Event> released = Recorded(answer, IsRelease);
    ReleaseUsedPools(released, PoolId{}, allocator_);
    const std::uint64_t garbage = IsWholeCache(released, allocator_) ? 0 : GarbageBytes(released, allocator_);
    if (garbage > 0) {
      allocator_.CollectGarbage(garbage);
    } else {
      allocator_.EmptyCache();
    }
    Compare(answer);
  }

  // Nothing but its own event is recorded of it.
  static bool IsAlone(const RecordedAnswer& answer) { return answer.segments_from >= answer.event; }

  template <typename Wanted>
  std::vector<Event> Recorded(const RecordedAnswer& answer, Wanted is_wanted) const {
    std::vector<Event> out;
    for (std::int64_t i = answer.segments_from; i <= answer.event; ++i) {
      if (is_wanted(EventAt(i).action)) out.push_back(EventAt(i));
    }
    return out;
  }

  void Allocate(const trace::Op& request, const RecordedAnswer& answer) {
    if (answer.is_put_back) return PutBack(request, answer);
    const PoolId pool = PoolOf(request, answer);
    PrepareGrowth({request.bytes, request.stream, pool}, answer);
    std::optional<std::uint64_t> oom_free_bytes;
    if (answer.is_oom) oom_free_bytes = EventAt(answer.event).address;
    device_.Begin(ScriptOf(answer), oom_free_bytes);
    absl::StatusOr<core::Block*> block = allocator_.Allocate(request.bytes, request.stream, pool);
    device_.Begin({}, std::nullopt);
    release_.reset();
    CompleteHeld(held_.size());
    blocks_[request.id] = block.ok() ? *block : nullptr;
    Count(blocks_[request.id], answer);
  }

  // The pool is put back: what is free there now was free or this block in its earlier state.
  void PutBack(const trace::Op& request, const RecordedAnswer& answer) {
    CompleteHeld(held_.size());
    const Event& event = EventAt(answer.event);
    blocks_[request.id] = core::Reconstruction(allocator_).AllocateAt({event.address, event.size_bytes});
    Count(blocks_[request.id], answer);
  }

  // Ends a request: where its block is, against where it was.
  void Count(const core::Block* block, const RecordedAnswer& answer) {
    const std::uint64_t address = block != nullptr ? block->address : 0;
    const std::uint64_t recorded = answer.is_oom ? 0 : EventAt(answer.event).address;
    ++fidelity_.total;
    if (address == recorded) {
      ++fidelity_.matched;
    } else if (!fidelity_.first_mismatch.has_value()) {
      fidelity_.first_mismatch = Mismatch{answer.event, recorded, address};
    }
    Compare(answer);
  }

  // An OOM of a pool that the trace does not name happened in one where nothing fits.
  PoolId PoolOf(const trace::Op& request, const RecordedAnswer& answer) const {
    const std::vector<PoolId>& pools = program_.requests.pools;
    if (answer.is_pool_known || request.bytes == 0 || request.bytes > policy::kMaxRequestBytes) {
      return pools[request.pool];
    }
    const auto it = std::find_if(pools.begin(), pools.end(), [&](PoolId pool) {
      return heap().Decide({request.bytes, request.stream, pool}).block == nullptr;
    });
    return it == pools.end() ? pools[request.pool] : *it;
  }

  // Does what the record shows before the search: completed frees and, of the releases, those that the ladder could
  // not have made on the way to new memory.
  void PrepareGrowth(const policy::Request& request, const RecordedAnswer& answer) {
    const bool is_request = request.bytes > 0 && request.bytes <= policy::kMaxRequestBytes;
    if (!is_request || !HasGrown(answer)) return CompleteHeld(held_.size());
    while (!held_.empty() && !WouldServe(held_.front(), request)) CompleteHeld(1);
    std::vector<Event> released = Recorded(answer, IsSegmentEvent);
    released.erase(
        std::find_if(released.begin(), released.end(), [](const Event& e) { return trace::IsGrowth(e.action); }),
        released.end());
    if (released.empty()) return;
    ReleaseUsedPools(released, request.pool, allocator_);
    if (WasCalled(released, request, answer)) {
      CompleteHeld(held_.size());
      allocator_.EmptyCache();
      if (release_.has_value()) user_calls_.push_back(*release_);
    } else if (const std::uint64_t garbage = GarbageBytes(released, allocator_); garbage > 0) {
      allocator_.CollectGarbage(garbage);
    }
  }

  // Whether the program emptied the cache before the request: the cache would have served it, or the device could give
  // what the request needed and the whole cache as well, as it did later (what others hold of it seldom shrinks). Where
  // the stacks tell that the request itself released, it did.
  bool WasCalled(absl::Span<const Event> released, const policy::Request& request, const RecordedAnswer& answer) const {
    if (heap().Decide(request).block != nullptr) return true;
    const Event& own = EventAt(answer.event);
    if (answer.is_oom || (own.stack != trace::kNoStack && own.stack == released.back().stack)) return false;
    std::uint64_t grown_bytes = 0;
    for (const Event& event : Recorded(answer, trace::IsGrowth)) grown_bytes += event.size_bytes;
    const auto room = room_ahead_.find(answer.event);
    return room != room_ahead_.end() && grown_bytes <= room->second && IsWholeCache(released, allocator_);
  }

  // Whether the block that this completion frees would serve the request, which the record says nothing did.
  bool WouldServe(std::size_t completion, const policy::Request& request) const {
    const auto it = waiting_.find(Handle(program_.requests.requests[completion].stream));
    if (it == waiting_.end()) return false;
    const auto& [block, address] = it->second;
    if (block->state != policy::BlockUse::kPending || block->address != address) return false;
    const policy::Lane& lane = *block->segment->lane;
    const std::uint64_t rounded_bytes = policy::RoundedBytes(request.bytes, options());
    if (lane.stream != request.stream || lane.pool->id != request.pool ||
        lane.pool->is_small != policy::IsSmall(rounded_bytes)) {
      return false;
    }
    std::uint64_t merged_bytes = block->size_bytes;
    for (const core::Block* neighbour : {block->prev, block->next}) {
      if (neighbour != nullptr && neighbour->state == policy::BlockUse::kFree) merged_bytes += neighbour->size_bytes;
    }
    return heap().MayServe(rounded_bytes, merged_bytes);
  }

  // What is left of the record for the ladder to do.
  Script ScriptOf(const RecordedAnswer& answer) const {
    Script script;
    if (IsAlone(answer)) return script;
    std::vector<SegmentDecision> done = sink_.decisions;
    for (const Event& event : Recorded(answer, [](Action) { return true; })) {
      if (event.action == Action::kFreeCompleted && IsHeld(event.address)) script.push_back(event);
      if (!IsSegmentEvent(event.action)) continue;
      const auto it = std::find(done.begin(), done.end(), DecisionOf(event));
      if (it == done.end()) {
        script.push_back(event);
      } else {
        done.erase(it);
      }
    }
    return script;
  }

  bool IsHeld(std::uint64_t address) const {
    return std::any_of(held_.begin(), held_.end(),
                       [&](std::size_t index) { return EventAt(program_.answers[index].event).address == address; });
  }

  // Ends a request: its segment decisions against the recorded ones, in whatever order.
  void Compare(const RecordedAnswer& answer) {
    if (answer.event < 0) return;
    if (IsAlone(answer) && sink_.decisions.empty() && !IsSegmentEvent(EventAt(answer.event).action)) return;
    std::vector<SegmentDecision> recorded;
    for (const Event& event : Recorded(answer, IsSegmentEvent)) recorded.push_back(DecisionOf(event));
    CompareDecisions(std::move(recorded), std::exchange(sink_.decisions, {}), fidelity_);
  }

  absl::StatusOr<WarmReplay> Finish() {
    for (std::size_t i = static_cast<std::size_t>(program_.requests_end); i < events_.size(); ++i) {
      fidelity_.segments_total += IsSegmentEvent(events_[i].action) ? 1 : 0;
    }
    absl::StatusOr<WarmReplay> out = FinishWindow(trace_, program_, device_, std::move(fidelity_), allocator_, sink_);
    if (out.ok()) out->user_calls = std::move(user_calls_);
    return out;
  }

  struct WaitingBlock {
    core::Block* block = nullptr;
    std::uint64_t address = 0;
  };

  const timeline::DeviceTrace& trace_;
  const SnapshotProgram& program_;
  const std::vector<Event>& events_;
  Reservations reservations_;
  RecordedDevice device_;
  core::CachingAllocator allocator_;
  DecisionSink sink_;
  absl::Status setup_;
  std::vector<core::Block*> blocks_;  // by id; nullptr = not live
  std::vector<bool> is_growth_ahead_;
  absl::flat_hash_map<std::int64_t, std::uint64_t> room_ahead_;  // event of a request -> bytes
  std::optional<std::size_t> release_;                           // the request that released before the growth ahead
  std::vector<std::size_t> user_calls_;
  std::deque<std::size_t> held_;  // completed frees (requests) that may be part of the growth ahead
  absl::flat_hash_map<std::uint64_t, WaitingBlock> waiting_;  // by the stream it waits for
  Fidelity fidelity_;
};

}  // namespace

absl::StatusOr<WarmReplay> RunWarmReplay(const timeline::DeviceTrace& trace, const SnapshotProgram& program,
                                         const policy::Options& options, const WarmReplayHints& hints) {
  if (trace.NamesCalls()) return RunLogReplay(trace, program, options, hints);
  return WarmReplayer(trace, program, options, hints).Run();
}

}  // namespace ashlar::replay
