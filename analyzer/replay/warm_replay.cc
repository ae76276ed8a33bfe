#include "analyzer/replay/warm_replay.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "analyzer/replay/restored_state.h"
#include "analyzer/replay/timeline_sink.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {
namespace {

using trace::Action;
using trace::Event;
using trace::RequestKind;

bool IsSegmentEvent(Action action) {
  return action == Action::kSegmentAlloc || action == Action::kSegmentFree || action == Action::kSegmentMap ||
         action == Action::kSegmentUnmap;
}

using SegmentDecision = std::tuple<Action, std::uint64_t, std::uint64_t>;  // action, address, size

SegmentDecision DecisionOf(const Event& event) { return {event.action, event.address, event.size_bytes}; }

// A timeline sink that also keeps the segment decisions of the current request.
class WarmSink final : public trace::EventSink {
 public:
  explicit WarmSink(timeline::StartState start) : timeline_(std::move(start)) {}
  void OnEvent(const Event& event, std::uint64_t block_size_bytes) override {
    if (IsSegmentEvent(event.action)) decisions.push_back(DecisionOf(event));
    timeline_.OnEvent(event, block_size_bytes);
  }
  TimelineSink& timeline() { return timeline_; }

  std::vector<SegmentDecision> decisions;

 private:
  TimelineSink timeline_;
};

class WarmReplayer {
 public:
  WarmReplayer(const trace::Snapshot& snapshot, const SnapshotProgram& program, const policy::Options& options)
      : snapshot_(snapshot),
        program_(program),
        events_(timeline::EventsOf(snapshot, program.device)),
        device_(DeviceOptions()),
        allocator_(&device_, options),
        sink_(program.start) {}

  absl::StatusOr<WarmReplay> Run() {
    if (absl::Status status = Restore(); !status.ok()) return status;
    const std::vector<trace::Request>& requests = program_.requests.requests;
    allocator_.SetSink(&sink_);
    for (std::size_t i = program_.start_count; i < requests.size(); ++i) Step(requests[i], program_.answers[i]);
    return Finish();
  }

 private:
  device::SimDeviceOptions DeviceOptions() {
    device::SimDeviceOptions options;
    options.capacity_bytes = std::uint64_t{1} << 60;  // the record says when memory ran out
    options.recorded_address = [this](std::uint64_t size_bytes) { return RecordedAddress(size_bytes); };
    return options;
  }

  absl::Status Restore() {
    blocks_.assign(program_.requests.id_count, nullptr);
    absl::StatusOr<std::vector<core::Block*>> start = RestoreState(program_.start, events_, allocator_, device_);
    if (!start.ok()) return start.status();
    for (std::size_t i = 0; i < start->size(); ++i) blocks_[program_.start_ids[i]] = (*start)[i];
    // What the window found pending waits from now on; its free was requested before the first event.
    for (std::size_t i = program_.start_ids.size(); i < program_.start_count; ++i) {
      Step(program_.requests.requests[i], program_.answers[i]);
    }
    return absl::OkStatus();
  }

  // The driver's answer of the current request: its next recorded growth. A segment's size must be the one asked
  // for; a reservation begins where the first of its pages is mapped.
  std::optional<std::uint64_t> RecordedAddress(std::uint64_t size_bytes) {
    for (; answers_ < answers_end_; ++answers_) {
      const Event& event = events_[static_cast<std::size_t>(answers_)];
      const bool is_segment = event.action == Action::kSegmentAlloc && event.size_bytes == size_bytes;
      if (!is_segment && event.action != Action::kSegmentMap) continue;
      ++answers_;
      ++fidelity_.segment_addresses_used;
      return event.address;
    }
    return std::nullopt;
  }

  void Step(const trace::Request& request, const RecordedAnswer& answer) {
    sink_.decisions.clear();
    if (answer.event >= 0) {
      const Event& event = events_[static_cast<std::size_t>(answer.event)];
      sink_.timeline().SetOrigin(event.stack, event.time_us);
    }
    switch (request.kind) {
      case RequestKind::kAlloc:
        Allocate(request, answer);
        break;
      case RequestKind::kFree:
        if (core::Block* block = std::exchange(blocks_[request.id], nullptr); block != nullptr) allocator_.Free(block);
        break;
      case RequestKind::kRecordStream:
        if (core::Block* block = blocks_[request.id]; block != nullptr) {
          allocator_.RecordStream(block, request.stream);
        }
        break;
      case RequestKind::kStreamSync:
        device_.CompleteStream(request.stream);
        allocator_.PollEvents();
        break;
      case RequestKind::kDeviceSync:
        device_.CompleteAllWork();
        break;
      case RequestKind::kEmptyCache:
        ReleaseMemory(answer);
        break;
    }
    if (answer.event >= 0 && request.kind != RequestKind::kStreamSync) CompareSegments(answer);
  }

  // An oversize release by the ladder (§ docs/policy.md) frees less than the whole cache: the first attempt to grow
  // is made to fail, and the ladder does the rest. Otherwise empty_cache leaves the same state.
  void ReleaseMemory(const RecordedAnswer& answer) {
    if (answer.release == Release::kMaybeLadder && FreedOnlyOversize(answer)) {
      device_.FailCall(0, absl::ResourceExhaustedError("recorded"));
      carried_from_ = answer.segments_from;
      return;
    }
    allocator_.EmptyCache();
  }

  bool FreedOnlyOversize(const RecordedAnswer& answer) const {
    for (std::int64_t i = answer.segments_from; i <= answer.event; ++i) {
      const Event& event = events_[static_cast<std::size_t>(i)];
      if (event.action == Action::kSegmentUnmap) return false;
      if (event.action != Action::kSegmentFree) continue;
      if (event.size_bytes < allocator_.options().max_split_size_bytes) return false;
    }
    return true;
  }

  void Allocate(const trace::Request& request, const RecordedAnswer& answer) {
    answers_ = answer.segments_from;
    answers_end_ = answer.event;
    device_.RefuseMemory(answer.is_oom);
    absl::StatusOr<core::Block*> block =
        allocator_.Allocate(request.bytes, request.stream, program_.requests.pools[request.pool]);
    device_.RefuseMemory(false);
    blocks_[request.id] = block.ok() ? *block : nullptr;
    const std::uint64_t address = block.ok() && *block != nullptr ? (*block)->address : 0;
    ++fidelity_.total;
    if (address == answer.address) {
      ++fidelity_.matched;
    } else if (!fidelity_.first_mismatch.has_value()) {
      fidelity_.first_mismatch = Mismatch{answer.event, answer.address, address};
    }
  }

  void CompareSegments(const RecordedAnswer& answer) {
    if (carried_from_.has_value() && sink_.decisions.empty()) return;
    const std::int64_t from = std::min(answer.segments_from, std::exchange(carried_from_, {}).value_or(INT64_MAX));
    std::vector<SegmentDecision> recorded;
    for (std::int64_t i = from; i <= answer.event; ++i) {
      const Event& event = events_[static_cast<std::size_t>(i)];
      if (IsSegmentEvent(event.action)) recorded.push_back(DecisionOf(event));
    }
    std::vector<SegmentDecision>& replayed = sink_.decisions;
    std::sort(recorded.begin(), recorded.end());
    std::sort(replayed.begin(), replayed.end());
    std::vector<SegmentDecision> same;
    std::set_intersection(recorded.begin(), recorded.end(), replayed.begin(), replayed.end(), std::back_inserter(same));
    fidelity_.segments_matched += same.size();
    fidelity_.segments_total += recorded.size() + replayed.size() - same.size();
  }

  absl::StatusOr<WarmReplay> Finish() {
    allocator_.SetSink(nullptr);
    absl::StatusOr<timeline::Timeline> made = sink_.timeline().Finish();
    if (!made.ok()) return made.status();
    const absl::Status final_state = timeline::CheckAgainstFinalState(made->StateAt(made->last_event()), snapshot_);
    fidelity_.final_state_matches = final_state.ok();
    fidelity_.final_state_difference = std::string(final_state.message());
    fidelity_.tails_inferred = program_.start.inferred_tails;
    return WarmReplay{fidelity_, *std::move(made), allocator_.stats(), device_.calls()};
  }

  const trace::Snapshot& snapshot_;
  const SnapshotProgram& program_;
  const std::vector<Event>& events_;
  device::SimDevice device_;
  core::CachingAllocator allocator_;
  WarmSink sink_;
  std::vector<core::Block*> blocks_;  // by id; nullptr = not live
  Fidelity fidelity_;
  std::int64_t answers_ = 0;  // the current request's unused recorded events: [answers_, answers_end_)
  std::int64_t answers_end_ = 0;
  std::optional<std::int64_t> carried_from_;  // recorded releases that the next request has to make
};

}  // namespace

absl::StatusOr<WarmReplay> RunWarmReplay(const trace::Snapshot& snapshot, const SnapshotProgram& program,
                                         const policy::Options& options) {
  return WarmReplayer(snapshot, program, options).Run();
}

}  // namespace ashlar::replay
