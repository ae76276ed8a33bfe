#include "analyzer/replay/snapshot_program.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analyzer/replay/pool_restores.h"
#include "analyzer/replay/reservations.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {
namespace {

using trace::Action;
using trace::Event;
using trace::OpKind;

bool IsSegmentRelease(Action action) { return action == Action::kSegmentFree || action == Action::kSegmentUnmap; }

// Events that neither ask for memory nor return any to the device.
bool IsPassive(Action action) {
  return action == Action::kFreeCompleted || action == Action::kSnapshot || action == Action::kAnnotate ||
         action == Action::kUnknown;
}

class SnapshotProgramMaker {
 public:
  // `facts`: what our own recordings say besides, where this is one; else nullptr.
  SnapshotProgramMaker(const std::vector<Event>& events, const timeline::Timeline& observed,
                       const std::vector<trace::Fact>* facts)
      : events_(events), observed_(observed), has_facts_(facts != nullptr) {
    if (facts != nullptr) {
      is_fact_before_.assign(events.size() + 1, false);
      for (const trace::Fact& fact : *facts) {
        if (fact.event > events.size()) continue;
        is_fact_before_[fact.event] = true;
        if (trace::IsAny<trace::fact::CacheEmptied, trace::fact::GarbageCollected>(fact.what)) {
          emptied_before_[fact.event] = PoolId{};
        }
        if (const auto* emptied = std::get_if<trace::fact::PoolEmptied>(&fact.what)) {
          emptied_before_[fact.event] = emptied->pool;
        }
      }
    }
    FindCompletions();
    FindWhoAsks();
  }

  SnapshotProgram Make(timeline::StartState start) {
    program_.start = std::move(start);
    program_.device = program_.start.device;
    AddStartBlocks();
    ReserveRequests();
    SegmentRanges ranges(program_.start);
    for (std::size_t i = 0; i < events_.size(); ++i) {
      LookForPutBack(i, ranges);
      ranges.Apply(events_[i]);
      AddEvent(i);
    }
    program_.requests.id_count = next_id_;
    program_.requests_end = segments_from_;
    return std::move(program_);
  }

 private:
  // Which event completes a free that waits. Frees that wait in one run of the ladder complete in the order of the
  // streams they wait for: numbered by that event, they complete as recorded.
  void FindCompletions() {
    for (std::size_t i = events_.size(); i-- > 0;) {
      const Event& event = events_[i];
      if (event.action == Action::kFreeCompleted) {
        if (i > 0 && IsFreedAtOnce(i - 1)) {
          --i;
        } else {
          first_completions_[event.address] = i;
        }
      } else if (event.action == Action::kFreeRequested) {
        const auto it = first_completions_.find(event.address);
        if (it == first_completions_.end()) continue;
        completions_[i] = it->second;
        first_completions_.erase(it);
      }
    }
  }

  // The stacks of requests. A release of the ladder has that of its request, or of the one that obtained the segment; a
  // call that empties the cache asks for nothing. A recording of our own names its calls.
  void FindWhoAsks() {
    if (has_facts_) return;
    for (const Event& event : events_) {
      if (event.stack == trace::kNoStack) continue;
      if (event.action == Action::kAlloc || event.action == Action::kOom || trace::IsGrowth(event.action)) {
        asking_stacks_.insert(event.stack);
      }
    }
  }

  // Whether it is recorded that something lay between event `i` and the one before.
  bool IsFactBefore(std::size_t i) const { return has_facts_ && is_fact_before_[i]; }

  bool IsFreedAtOnce(std::size_t i) const {
    return !IsFactBefore(i + 1) && events_[i].action == Action::kFreeRequested && i + 1 < events_.size() &&
           events_[i + 1].action == Action::kFreeCompleted && events_[i + 1].address == events_[i].address;
  }

  // The stream that the free of event `i` waits for; nullopt: a free before the window, of the block at `address`.
  Stream WaitStream(std::optional<std::size_t> i, std::uint64_t address, std::uint32_t id) const {
    const auto of_event = i.has_value() ? completions_.find(*i) : completions_.end();
    if (of_event != completions_.end()) return Stream{kFirstWaitStream + of_event->second};
    const auto first = i.has_value() ? first_completions_.end() : first_completions_.find(address);
    if (first != first_completions_.end()) return Stream{kFirstWaitStream + first->second};
    return Stream{kFirstWaitStream + events_.size() + id};  // never, in this window
  }

  void AddStartBlocks() {
    for (const timeline::StateSegment& segment : program_.start.segments) {
      for (const timeline::StateBlock& block : segment.blocks) {
        const std::uint32_t id = next_id_++;
        program_.start_ids.push_back(id);
        ids_[block.address] = id;
        Add({.bytes = block.requested_bytes.value_or(block.size_bytes),
             .stream = segment.stream,
             .id = id,
             .kind = OpKind::kAlloc,
             .pool = PoolIndex(segment.pool)},
            {});
      }
    }
    for (const timeline::StateSegment& segment : program_.start.segments) {
      for (const timeline::StateBlock& block : segment.blocks) {
        if (block.state == trace::BlockState::kPending) FreeAndWait(std::nullopt, block.address, {});
      }
    }
    program_.start_count = program_.requests.requests.size();
  }

  // A list that grows by itself is held twice at times. Frees that wait, and their ends, are more requests than these.
  void ReserveRequests() {
    const auto count = static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [](const Event& event) {
      return event.action == Action::kAlloc || event.action == Action::kFreeRequested;
    }));
    program_.requests.requests.reserve(program_.start_count + count + completions_.size() * 2);
    program_.answers.reserve(program_.start_count + count + completions_.size() * 2);
  }

  void Add(const trace::Op& request, const RecordedAnswer& answer) {
    program_.requests.requests.push_back(request);
    program_.answers.push_back(answer);
  }

  // The answer of the request that ends with event `i`: the segment events since the last request are its own.
  RecordedAnswer AnswerOf(std::size_t i) {
    RecordedAnswer answer;
    answer.event = static_cast<std::int64_t>(i);
    answer.segments_from = std::exchange(segments_from_, static_cast<std::int64_t>(i) + 1);
    return answer;
  }

  static RecordedAnswer WithoutSegments(std::int64_t event) { return {.event = event, .segments_from = event + 1}; }

  void AddEvent(std::size_t i) {
    const Event& event = events_[i];
    switch (event.action) {
      case Action::kAlloc:
        return AddAlloc(i);
      case Action::kOom:
        return AddOom(i);
      case Action::kFreeRequested:
        return AddFree(i);
      case Action::kFreeCompleted:
        return AddCompletion(i);
      case Action::kSegmentFree:
      case Action::kSegmentUnmap:
        return AddRelease(i);
      default:
        return;
    }
  }

  // No recording of our own has a pool put back. Amortised: an event that was looked at is not looked at again.
  void LookForPutBack(std::size_t i, const SegmentRanges& ranges) {
    if (i < put_back_.end || has_facts_ || events_[i].action != Action::kAlloc) return;
    if (!HasGrown(i) && !PoolOf(i).IsDefault()) put_back_ = FindPutBack(events_, i, ranges);
  }

  // The place of a block in a private pool, which a pool that is put back may give again.
  void NotePlace(std::size_t i, std::uint32_t id) {
    if (has_facts_ || PoolOf(i).IsDefault()) return;
    const auto [place, is_new] = places_.try_emplace({events_[i].address, BlockOf(i).size_bytes}, id);
    if (put_back_.Holds(i)) {
      const bool is_free = put_back_.is_free[i - put_back_.begin];
      if (is_free || !is_new)
        program_.requests.put_back.push_back({.id = id, .earlier = is_free ? trace::PutBack::kNobody : place->second});
    }
    place->second = id;
  }

  void AddAlloc(std::size_t i) {
    const Event& event = events_[i];
    const std::uint32_t id = next_id_++;
    ids_[event.address] = id;
    NotePlace(i, id);
    RecordedAnswer answer = AnswerOf(i);
    answer.is_put_back = put_back_.Holds(i);
    Add({.bytes = event.size_bytes,
         .stream = event.stream,
         .id = id,
         .kind = OpKind::kAlloc,
         .pool = PoolIndex(PoolOf(i))},
        answer);
  }

  void AddOom(std::size_t i) {
    RecordedAnswer answer = AnswerOf(i);
    answer.is_oom = true;
    answer.is_pool_known = events_[i].pool.has_value();
    Add({.bytes = events_[i].size_bytes,
         .stream = events_[i].stream,
         .id = next_id_++,
         .kind = OpKind::kAlloc,
         .pool = PoolIndex(events_[i].pool.value_or(PoolId{}))},
        answer);
  }

  void AddFree(std::size_t i) {
    const Event& event = events_[i];
    if (!IsFreedAtOnce(i)) return FreeAndWait(i, event.address, AnswerOf(i));
    Add({.id = ids_[event.address], .kind = OpKind::kFree}, AnswerOf(i));
  }

  void FreeAndWait(std::optional<std::size_t> i, std::uint64_t address, const RecordedAnswer& answer) {
    const std::uint32_t id = ids_[address];
    const Stream wait = WaitStream(i, address, id);
    waits_[address] = wait;
    Add({.stream = wait, .id = id, .kind = OpKind::kRecordStream}, WithoutSegments(answer.event));
    Add({.id = id, .kind = OpKind::kFree}, answer);
  }

  void AddCompletion(std::size_t i) {
    const auto it = waits_.find(events_[i].address);
    if (it == waits_.end()) return;  // freed at once
    // Keeps the segment events before it for the request that caused them.
    Add({.stream = it->second, .kind = OpKind::kStreamSync}, WithoutSegments(static_cast<std::int64_t>(i)));
    waits_.erase(it);
  }

  // One request for a run of freed segments.
  void AddRelease(std::size_t i) {
    if (HasGrown(i)) return;  // the ladder of the request that grew, on its way to more
    std::size_t next = i + 1;
    bool is_run_over = IsFactBefore(next);
    for (; next < events_.size() && IsPassive(events_[next].action); ++next) is_run_over |= IsFactBefore(next + 1);
    const std::optional<PoolId> emptied = EmptiedPool(i);
    const bool is_asked_for = emptied.has_value();
    const bool is_call = IsNoRequests(events_[i].stack);
    // The last of the run stands for it; a call's releases and the ladder's are two runs.
    if (next < events_.size() && IsSegmentRelease(events_[next].action) && !(is_run_over && is_asked_for) &&
        IsNoRequests(events_[next].stack) == is_call) {
      return;
    }
    const bool is_maybe_ladder = !is_asked_for && !is_call && next < events_.size() &&
                                 (trace::IsGrowth(events_[next].action) || events_[next].action == Action::kOom);
    ++(is_maybe_ladder ? program_.maybe_releases : program_.user_releases);
    RecordedAnswer answer = is_maybe_ladder ? WithoutSegments(static_cast<std::int64_t>(i)) : AnswerOf(i);
    answer.release = is_maybe_ladder ? Release::kMaybeLadder : Release::kUserCall;
    Add({.kind = OpKind::kEmptyCache, .pool = PoolIndex(emptied.value_or(PoolId{}))}, answer);
  }

  bool IsNoRequests(trace::StackId stack) const {
    return !has_facts_ && stack != trace::kNoStack && !asking_stacks_.contains(stack);
  }

  // Where it is recorded that the release whose last event is `i` was asked for: the pool that was to be emptied, the
  // default one for the whole cache.
  std::optional<PoolId> EmptiedPool(std::size_t i) const {
    if (!has_facts_) return std::nullopt;
    for (std::size_t first = i + 1; first-- > static_cast<std::size_t>(segments_from_);) {
      if (const auto it = emptied_before_.find(first); it != emptied_before_.end()) return it->second;
      if (is_fact_before_[first]) return std::nullopt;
    }
    return std::nullopt;
  }

  // Whether the request under way has grown before event `i`. Amortised: each event is looked at once.
  bool HasGrown(std::size_t i) {
    looked_to_ = std::max(looked_to_, static_cast<std::size_t>(segments_from_));
    if (grown_from_ != segments_from_) has_grown_ = false;
    grown_from_ = segments_from_;
    for (; looked_to_ < i; ++looked_to_) has_grown_ = has_grown_ || trace::IsGrowth(events_[looked_to_].action);
    return has_grown_;
  }

  // The pool an allocation went to: as recorded, else the one whose segment holds its address.
  PoolId PoolOf(std::size_t i) {
    if (events_[i].pool.has_value()) return *events_[i].pool;
    return BlockOf(i).pool;
  }

  const timeline::BlockSpan& BlockOf(std::size_t i) {
    const auto blocks = observed_.blocks();  // in the order of their allocations, as these calls are
    while (blocks[next_block_].alloc_event < static_cast<std::int64_t>(i)) ++next_block_;
    return blocks[next_block_];
  }

  std::uint16_t PoolIndex(PoolId pool) {
    std::vector<PoolId>& pools = program_.requests.pools;
    const auto it = std::find(pools.begin(), pools.end(), pool);
    if (it == pools.end()) {
      if (pools.size() > UINT16_MAX) return 0;
      pools.push_back(pool);
      return static_cast<std::uint16_t>(pools.size() - 1);
    }
    return static_cast<std::uint16_t>(it - pools.begin());
  }

  const std::vector<Event>& events_;
  const timeline::Timeline& observed_;
  const bool has_facts_;
  std::vector<bool> is_fact_before_ = {};                    // index = event
  absl::flat_hash_map<std::size_t, PoolId> emptied_before_;  // event -> what a call of these emptied
  absl::flat_hash_set<trace::StackId> asking_stacks_;        // only looked up
  SnapshotProgram program_;
  std::uint32_t next_id_ = 0;
  std::int64_t segments_from_ = 0;
  std::int64_t grown_from_ = 0;  // the segments_from_ that has_grown_ is about
  std::size_t looked_to_ = 0;
  bool has_grown_ = false;
  PutBackRun put_back_;         // the last that was looked at
  std::size_t next_block_ = 0;  // of observed_: the block of the allocation under way, or one before it
  absl::flat_hash_map<std::uint64_t, std::uint32_t> ids_;              // block address -> the last id placed there
  absl::flat_hash_map<std::size_t, std::size_t> completions_;          // event of a free -> event that completes it
  absl::flat_hash_map<std::uint64_t, std::size_t> first_completions_;  // address -> of a free before the window
  absl::flat_hash_map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> places_;  // address, size -> the last id
  absl::flat_hash_map<std::uint64_t, Stream> waits_;  // pending block's address -> the stream it waits for
};

}  // namespace

absl::StatusOr<ObservedProgram> ObserveProgram(const timeline::DeviceTrace& trace,
                                               const timeline::BlockSizeRule& rule) {
  absl::StatusOr<timeline::ObservedTrace> observed = timeline::ObserveTrace(trace, rule);
  if (!observed.ok()) return observed.status();
  SnapshotProgramMaker maker(trace.events, observed->timeline,
                             trace.recording != nullptr ? &trace.recording->facts : nullptr);
  SnapshotProgram program = maker.Make(FirstState(trace, std::move(observed->start)));
  return ObservedProgram{std::move(program), std::move(observed->timeline)};
}

absl::StatusOr<SnapshotProgram> MakeProgram(const timeline::DeviceTrace& trace, const timeline::BlockSizeRule& rule) {
  absl::StatusOr<ObservedProgram> observed = ObserveProgram(trace, rule);
  if (!observed.ok()) return observed.status();
  return std::move(observed->program);
}

namespace {

class CallsProgram {
 public:
  explicit CallsProgram(int device) { program_.device = device; }

  void Add(const trace::Event& event, std::int64_t index) {
    switch (event.action) {
      case trace::Action::kAlloc:
        ids_[event.address] = next_id_;
        return Ask({event.size_bytes, event.stream, next_id_++, trace::OpKind::kAlloc}, {.event = index});
      case trace::Action::kOom:
        return Ask({event.size_bytes, event.stream, next_id_++, trace::OpKind::kAlloc},
                   {.event = index, .is_oom = true});
      case trace::Action::kFreeRequested:
        if (const auto it = ids_.find(event.address); it != ids_.end()) {
          Ask({0, event.stream, it->second, trace::OpKind::kFree}, {.event = index});
          ids_.erase(it);
        }
        return;
      default:
        return;
    }
  }

  SnapshotProgram Finish() {
    program_.requests.id_count = next_id_;
    return std::move(program_);
  }

 private:
  void Ask(const trace::Op& request, RecordedAnswer answer) {
    const std::int64_t after = answer.event + 1;
    answer.segments_from = after;
    program_.requests.requests.push_back(request);
    program_.answers.push_back(answer);
    program_.requests_end = after;
  }

  SnapshotProgram program_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> ids_;  // of what is alive, by address
  std::uint32_t next_id_ = 0;
};

}  // namespace

SnapshotProgram MakeCallsProgram(const timeline::DeviceTrace& trace) {
  CallsProgram out(trace.device);
  std::int64_t index = 0;
  for (const trace::Event& event : trace.events) out.Add(event, index++);
  return out.Finish();
}

timeline::BlockSizeRule CallsSizeRule() {
  timeline::BlockSizeRule rule;
  rule.rounded_bytes = [](std::uint64_t requested) { return requested; };
  rule.small_max_bytes = 0;
  rule.max_tail_bytes = 0;
  return rule;
}

}  // namespace ashlar::replay
