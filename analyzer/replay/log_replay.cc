#include "analyzer/replay/log_replay.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/policy/strategy.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/decisions.h"
#include "analyzer/replay/recorded_device.h"
#include "analyzer/replay/replayed_window.h"
#include "analyzer/replay/reservations.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {

using trace::Action;
using trace::Event;

FreeCompletions FindCompletions(const std::vector<Event>& events, const std::vector<trace::Fact>& facts) {
  FreeCompletions out;
  std::size_t fact = facts.size();
  for (std::size_t i = events.size(); i-- > 0;) {
    const Event& event = events[i];
    while (fact > 0 && facts[fact - 1].event > i) --fact;
    const bool is_fact_before = fact > 0 && facts[fact - 1].event == i;
    const bool is_at_once = i > 0 && !is_fact_before && event.action == Action::kFreeCompleted &&
                            events[i - 1].action == Action::kFreeRequested && events[i - 1].address == event.address;
    if (is_at_once) {
      --i;
      continue;
    }
    if (event.action == Action::kFreeCompleted) out.first[event.address] = i;
    if (event.action != Action::kFreeRequested) continue;
    const auto it = out.first.find(event.address);
    if (it == out.first.end()) continue;
    out.by_free[i] = it->second;
    out.first.erase(it);
  }
  return out;
}

namespace {

using trace::Fact;

class LogReplayer {
 public:
  LogReplayer(const timeline::DeviceTrace& trace, const SnapshotProgram& program, const policy::Options& options,
              const WarmReplayHints& hints)
      : trace_(trace),
        program_(program),
        events_(trace.events),
        facts_(trace.recording->facts),
        other_capacity_bytes_(hints.other_capacity_bytes),
        peaks_from_(hints.peaks_from),
        reservations_(FindReservations(trace, program, options, hints.device_total_bytes)),
        device_(policy::StrategyOf(options.policy).traits().pages_follow_room ? hints.device_total_bytes : std::nullopt,
                hints.other_capacity_bytes),
        allocator_(&device_, WithReserve(options, reservations_)),
        sink_(program.start, device_, hints.keeps_timeline) {
    allocator_.SetFailureReports(false);
    core::Reconstruction(allocator_).PollNewsOf(device_.simulated());
    completions_ = FindCompletions(events_, facts_);
  }

  absl::StatusOr<WarmReplay> Run() {
    if (absl::Status status = Begin(); !status.ok()) return status;
    while (next_event_ < peaks_from_ && next_event_ < events_.size()) Step();
    if (peaks_from_ > 0) allocator_.ResetPeaks();
    while (HasFact() || next_event_ < events_.size()) Step();
    return FinishWindow(trace_, program_, device_, std::move(fidelity_), allocator_, sink_);
  }

  absl::StatusOr<RecordedMoments> RunTo(const timeline::EventWindow& window) {
    if (absl::Status status = Begin(); !status.ok()) return status;
    RecordedMoments out;
    out.begin = MomentAt(window.from, out.window.from);
    out.end = MomentAt(window.to, out.window.to);
    allocator_.SetSink(nullptr);
    const bool follows = fidelity_.matched == fidelity_.total && fidelity_.segments_matched == fidelity_.segments_total;
    if (follows && out.window.from < out.window.to) return out;
    return absl::FailedPreconditionError("the replay does not follow");
  }

 private:
  absl::Status Begin() {
    if (trace_.recording->limit_bytes.has_value()) allocator_.SetMemoryLimit(trace_.recording->limit_bytes);
    if (absl::Status status = Restore(); !status.ok()) return status;
    sink_.Watch(allocator_);
    return absl::OkStatus();
  }

  // Goes on to event `asked`, or to the end of the request that holds it.
  RecordedMoment MomentAt(timeline::EventIndex asked, timeline::EventIndex& reached) {
    while (static_cast<timeline::EventIndex>(next_event_) < asked) Step();
    reached = static_cast<timeline::EventIndex>(next_event_);
    return MomentOf(allocator_, program_.device);
  }

  absl::Status Restore() {
    const absl::StatusOr<std::vector<core::Block*>> start =
        RestoreWindow(program_, reservations_, allocator_, device_, trace_.start);
    if (!start.ok()) return start.status();
    std::size_t next = 0;
    for (const timeline::StateSegment& segment : program_.start.segments) {
      for (const timeline::StateBlock& block : segment.blocks) {
        blocks_[block.address] = (*start)[next++];
        if (block.state != trace::BlockState::kPending) continue;
        const auto it = completions_.first.find(block.address);
        FreeAndWait(block.address, it == completions_.first.end() ? std::nullopt : std::optional(it->second));
      }
    }
    return absl::OkStatus();
  }

  // The same requests on a device of that size, not what was recorded.
  bool IsOther() const { return other_capacity_bytes_.has_value(); }

  // Whether the next thing recorded is a fact.
  bool HasFact() const { return next_fact_ < facts_.size() && facts_[next_fact_].event <= next_event_; }

  // A search whose request asks again later: it makes what is free older.
  bool IsSearchNext() const {
    const auto* missed = HasFact() ? std::get_if<trace::fact::SearchMissed>(&facts_[next_fact_].what) : nullptr;
    return missed != nullptr && missed->counts_here;
  }

  void CountSearch() {
    ++next_fact_;
    core::Reconstruction(allocator_).CountSearch();
  }

  void Step() {
    if (IsSearchNext()) return CountSearch();
    if (HasFact() && trace::IsCall(facts_[next_fact_].what)) {
      return std::visit([this](const auto& call) { Call(call); }, facts_[next_fact_++].what);
    }
    if (!HasFact()) {
      const Event& event = events_[next_event_];
      sink_.SetOrigin(event.stack, event.time_us);
      if (event.action == Action::kFreeRequested) return Free();
      if (event.action == Action::kFreeCompleted) {
        ++next_event_;
        return Complete(event.address);
      }
      if (event.action != Action::kAlloc && event.action != Action::kOom && !IsSegmentEvent(event.action)) {
        ++next_event_;
        return;
      }
    }
    Request();
  }

  // Calls of the program. A fact within a request is none: Step asks trace::IsCall first.
  void Call(const trace::fact::LimitSet& limit) { allocator_.SetMemoryLimit(limit.bytes); }
  // What this version cannot make of the text shows as a difference.
  void Call(const trace::fact::SettingsChanged& changed) {
    if (!IsOther()) allocator_.ChangeSettings(changed.conf).IgnoreError();
  }
  void Call(const trace::fact::WaitsOwed& owed) { core::Reconstruction(allocator_).RestoreOwed(owed); }
  void Call(const trace::fact::PoolUsers& users) { SetUsers(users.pool, users.count); }
  void Call(const trace::fact::PoolConfigured& traits) {
    allocator_.ConfigurePool(traits.pool, traits.uses_on_oom, traits.no_split);
  }
  void Call(const trace::fact::PoolBegun& begun) {
    const auto no_stream = [](Stream) { return false; };  // requests name the pool that they were routed to
    // A ring may say twice what stood when it began.
    allocator_.BeginPool(begun.pool, no_stream, begun.is_capture ? RouteKind::kCapture : RouteKind::kPlain)
        .IgnoreError();
  }
  void Call(const trace::fact::PoolEnded& ended) { allocator_.EndPool(ended.pool).IgnoreError(); }
  void Call(const trace::fact::GarbageCollected& collected) {
    const std::size_t first = next_event_;
    SetOriginOfNext();
    allocator_.CollectGarbage(collected.target_bytes);
    SkipReleases(std::nullopt);
    Compare(first);
  }
  void Call(const trace::fact::CacheEmptied&) {
    Empty([this] { allocator_.EmptyCache(); }, std::nullopt);
  }
  void Call(const trace::fact::PoolEmptied& emptied) {
    Empty([this, &emptied] { allocator_.EmptyPool(emptied.pool).IgnoreError(); }, emptied.pool);
  }
  void Call(const trace::fact::PoolTagged& tagged) { allocator_.TagPool(tagged.pool, tagged.tag).IgnoreError(); }
  void Call(const trace::fact::PoolSlept& slept) { core::Reconstruction(allocator_).PutToSleep(slept.pool); }
  void Call(const trace::fact::PoolWoken& woken) {
    Empty([this, &woken] { core::Reconstruction(allocator_).WakeUp(woken.pool); }, woken.pool);
  }
  // Where a device of another size has no such memory, it is nobody's.
  void Call(const trace::fact::RangeRegistered& range) {
    allocator_.RegisterRange(range.address, range.size_bytes).IgnoreError();
  }
  void Call(const trace::fact::RangeUnregistered& range) { allocator_.UnregisterRange(range.address).IgnoreError(); }
  template <typename WithinRequest>
  void Call(const WithinRequest&) {}

  template <typename Act>
  void Empty(Act act, std::optional<PoolId> pool) {
    const std::size_t first = next_event_;
    SetOriginOfNext();
    act();
    while (IsNext(Action::kFreeCompleted)) Complete(events_[next_event_++].address);
    SkipReleases(pool);
    Compare(first);
  }

  void SetOriginOfNext() {
    if (next_event_ >= events_.size()) return;
    sink_.SetOrigin(events_[next_event_].stack, events_[next_event_].time_us);
  }

  void SetUsers(PoolId pool, std::uint64_t users) {
    if (users > kMostUsers) return;
    while (allocator_.PoolUseCount(pool) < users) allocator_.RetainPool(pool);
    while (allocator_.PoolUseCount(pool) > users) allocator_.ReleasePool(pool);
  }

  bool IsNext(Action action) const {
    return !HasFact() && next_event_ < events_.size() && events_[next_event_].action == action;
  }

  void SkipReleases(std::optional<PoolId> of_pool) {
    while (IsNext(Action::kSegmentFree) || IsNext(Action::kSegmentUnmap)) {
      if (of_pool.has_value() && events_[next_event_].pool.AsOptional() != of_pool) return;
      ++next_event_;
    }
  }

  void Free() {
    const std::size_t event = next_event_++;
    const std::uint64_t address = events_[event].address;
    if (IsNext(Action::kFreeCompleted) && events_[next_event_].address == address) {
      ++next_event_;
      if (const auto it = blocks_.find(address); it != blocks_.end()) {
        core::Block* block = it->second;
        blocks_.erase(it);
        allocator_.Free(block);
        if (borrowed_.count(address) > 0) FinishBorrowed(address);
      }
      return;
    }
    const auto it = completions_.by_free.find(event);
    FreeAndWait(address, it == completions_.by_free.end() ? std::nullopt : std::optional(it->second));
  }

  // `completion`: the event that completes it; nullopt: none in this recording.
  void FreeAndWait(std::uint64_t address, std::optional<std::size_t> completion) {
    const auto it = blocks_.find(address);
    if (it == blocks_.end()) return;
    const Stream wait{kFirstWaitStream + completion.value_or(events_.size() + never_++)};
    core::Block* block = it->second;
    blocks_.erase(it);
    allocator_.RecordStream(block, wait);
    allocator_.Free(block);
    waits_[address] = wait;
  }

  // The recorded free of the block there is completed; it may be in the replay already.
  void Complete(std::uint64_t address) {
    const auto it = waits_.find(address);
    if (it == waits_.end()) return;
    device_.simulated().CompleteStream(it->second);
    waits_.erase(it);
    FinishBorrowed(address);
  }

  // What was borrowed waits for the borrower's stream too.
  void FinishBorrowed(std::uint64_t address) {
    if (const auto it = borrowed_.find(address); it != borrowed_.end()) {
      device_.simulated().CompleteStream(it->second);
      borrowed_.erase(it);
    }
    allocator_.PollEvents();
  }

  // Everything from here to the event that answers the request.
  void Request() {
    const std::size_t first = next_event_;
    Script script;
    RequestFacts said;
    while (HasFact() || next_event_ < events_.size()) {
      if (HasFact()) {
        const trace::AnyFact& fact = facts_[next_fact_].what;
        if (trace::IsCall(fact) || IsSearchNext()) break;  // the request has no end
        ++next_fact_;
        if (const auto* gave_up = std::get_if<trace::fact::GaveUp>(&fact)) {
          return GiveUp(first, gave_up->bytes, said, std::move(script));
        }
        said.Take(fact);
        if (const auto* reserved = std::get_if<trace::fact::AddressesReserved>(&fact)) {
          script.push_back(ReservedAnswer(reserved->address));
        }
        if (trace::IsAny<trace::fact::GrowthRefused>(fact)) script.push_back(RefusedAnswer());
        continue;
      }
      const Event& event = events_[next_event_];
      if (event.action == Action::kFreeRequested) break;
      ++next_event_;
      if (event.action == Action::kAlloc || event.action == Action::kOom) {
        if (said.is_placed) said.direction.address = event.address;
        return Allocate(first, event, said, std::move(script));
      }
      script.push_back(event);
    }
    CompleteAll(first);
    Compare(first);
  }

  void Allocate(std::size_t first, const Event& event, const RequestFacts& said, Script script) {
    const std::optional<trace::fact::AskedFor>& asked = said.asked;
    const PoolId pool = asked.has_value() ? asked->pool : event.pool.value_or(PoolId{});
    const Stream stream = asked.has_value() ? asked->stream : event.stream;
    const bool is_oom = event.action == Action::kOom;
    sink_.SetOrigin(event.stack, event.time_us);
    if (IsOther()) script = GrowthOf(std::move(script));
    device_.BeginLogged(std::move(script), is_oom && !IsOther() ? std::optional(event.address) : std::nullopt);
    core::Block* block = Ask(event.size_bytes, stream, pool, said);
    const std::uint64_t address = block != nullptr ? block->address : 0;
    const std::uint64_t recorded = is_oom ? 0 : event.address;
    CompleteAll(first);
    if (block != nullptr && is_oom && IsOther()) {
      allocator_.Free(block);  // the record has no free of it
      block = nullptr;
    }
    if (block != nullptr) {
      const std::uint64_t name = is_oom ? address : recorded;
      blocks_[name] = block;
      if (asked.has_value() && stream != block->segment->lane->stream) borrowed_[name] = stream;
    }
    ++fidelity_.total;
    if (address == recorded) {
      ++fidelity_.matched;
    } else if (!fidelity_.first_mismatch.has_value()) {
      fidelity_.first_mismatch = Mismatch{static_cast<std::int64_t>(next_event_) - 1, recorded, address};
    }
    Compare(first);
  }

  void GiveUp(std::size_t first, std::uint64_t bytes, const RequestFacts& said, Script script) {
    if (!said.asked.has_value()) return;
    device_.BeginLogged(std::move(script), std::nullopt, /*gives_up=*/true);
    core::Block* block = Ask(bytes, said.asked->stream, said.asked->pool, said);
    if (block != nullptr) allocator_.Free(block);
    CompleteAll(first);
    Compare(first);
  }

  core::Block* Ask(std::uint64_t bytes, Stream stream, PoolId pool, const RequestFacts& said) {
    core::Block* block = nullptr;
    if (bytes > 0 && bytes <= policy::kMaxRequestBytes) {
      core::Reconstruction allocator(allocator_);
      absl::StatusOr<core::Block*> answer =
          !said.direction.IsEmpty() ? allocator.AllocateDirected(bytes, stream, pool, said.direction, said.is_missed)
          : said.is_missed          ? allocator.AllocateMissed(bytes, stream, pool)
                                    : allocator_.Allocate(bytes, stream, pool);
      if (answer.ok()) block = *answer;
    }
    device_.BeginLogged({}, std::nullopt);
    return block;
  }

  // The frees that the record completed since event `first`.
  void CompleteAll(std::size_t first) {
    for (std::size_t i = first; i < next_event_; ++i) {
      if (events_[i].action == Action::kFreeCompleted) Complete(events_[i].address);
    }
  }

  // Ends a step: its segment decisions against the recorded ones since event `first`.
  void Compare(std::size_t first) {
    const bool is_alone = next_event_ == first || (next_event_ == first + 1 && !IsSegmentEvent(events_[first].action));
    if (is_alone && sink_.decisions.empty()) return;
    std::vector<SegmentDecision> recorded;
    for (std::size_t i = first; i < next_event_; ++i) {
      if (IsSegmentEvent(events_[i].action)) recorded.push_back(DecisionOf(events_[i]));
    }
    CompareDecisions(std::move(recorded), std::exchange(sink_.decisions, {}), fidelity_);
  }

  static constexpr std::uint64_t kMostUsers = 1 << 20;  // a damaged record must not count for hours

  const timeline::DeviceTrace& trace_;
  const SnapshotProgram& program_;
  const std::vector<Event>& events_;
  const std::vector<Fact>& facts_;
  const std::optional<std::uint64_t> other_capacity_bytes_;
  const std::uint64_t peaks_from_;
  Reservations reservations_;
  RecordedDevice device_;
  core::CachingAllocator allocator_;
  DecisionSink sink_;
  std::size_t next_event_ = 0;
  std::size_t next_fact_ = 0;
  // By recorded address.
  absl::flat_hash_map<std::uint64_t, core::Block*> blocks_;  // live ones
  absl::flat_hash_map<std::uint64_t, Stream> waits_;         // pending ones, and the stream each waits for
  absl::flat_hash_map<std::uint64_t, Stream> borrowed_;      // and the borrower's stream
  FreeCompletions completions_;
  std::uint64_t never_ = 0;  // frees so far that the recording does not complete
  Fidelity fidelity_;
};

}  // namespace

absl::StatusOr<WarmReplay> RunLogReplay(const timeline::DeviceTrace& trace, const SnapshotProgram& program,
                                        const policy::Options& options, const WarmReplayHints& hints) {
  return LogReplayer(trace, program, options, hints).Run();
}

absl::StatusOr<RecordedMoments> ReplayToMoments(const timeline::DeviceTrace& trace, const SnapshotProgram& program,
                                                const policy::Options& options, const WarmReplayHints& hints,
                                                const timeline::EventWindow& window) {
  return LogReplayer(trace, program, options, hints).RunTo(window);
}

}  // namespace ashlar::replay
