// What a replay decided, as it is told, and which kind of release a record shows.
#ifndef ASHLAR_ANALYZER_REPLAY_DECISIONS_H_
#define ASHLAR_ANALYZER_REPLAY_DECISIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/trace/event.h"
#include "allocator/trace/sink.h"
#include "analyzer/replay/recorded_device.h"
#include "analyzer/replay/timeline_sink.h"
#include "analyzer/replay/warm_replay.h"

namespace ashlar::replay {

// Tells which kind of release a record shows, by comparing what was released with what each kind would release.

// A decision about segments: action, address, size.
using SegmentDecision = std::tuple<trace::Action, std::uint64_t, std::uint64_t>;

bool IsSegmentEvent(trace::Action action);
bool IsRelease(trace::Action action);
SegmentDecision DecisionOf(const trace::Event& event);
// Adds to `fidelity` what one request decided, in whatever order, against what was recorded.
void CompareDecisions(std::vector<SegmentDecision> recorded, std::vector<SegmentDecision> replayed, Fidelity& fidelity);

// Tells the allocator that private pools whose segments were released had lost their users. `asking`: the pool of the
// request that the release may have made room for; it may release its own oversize segments while in use.
void ReleaseUsedPools(absl::Span<const trace::Event> released, PoolId asking, core::CachingAllocator& allocator);

// Whether emptying the cache would release just this, in whatever order.
bool IsWholeCache(absl::Span<const trace::Event> released, const core::CachingAllocator& allocator);

// The bytes to collect so that garbage collection releases the longest possible beginning of `released`; 0: none.
std::uint64_t GarbageBytes(absl::Span<const trace::Event> released, const core::CachingAllocator& allocator);

// The sink of a warm replay. It keeps the segment decisions of the request under way and, where asked for, the timeline
// of all decisions, and tells the device what was done and refused.
//
//   DecisionSink sink(program.start, device, /*keeps_timeline=*/false);
//   sink.Watch(allocator);                  // until allocator.SetSink(nullptr)
//
// Without a timeline it is told what is decided behind the allocator's lock: segments, frees that waited, refusals.
// What the cache serves on its own goes unseen, as it touches neither. Not thread-safe.
class DecisionSink final : public trace::EventSink {
 public:
  DecisionSink(const timeline::StartState& start, RecordedDevice& device, bool keeps_timeline) : device_(device) {
    if (keeps_timeline) timeline_.emplace(start);
  }

  void Watch(core::CachingAllocator& allocator) {
    if (timeline_.has_value()) {
      allocator.SetSink(this);
    } else {
      allocator.AddSink(this, &no_journals_);
    }
  }

  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    if (IsSegmentEvent(event.action)) decisions.push_back(DecisionOf(event));
    device_.Saw(event);
    if (timeline_.has_value()) timeline_->OnEvent(event, block_size_bytes);
  }
  void OnFact(const trace::AnyFact& fact) override {
    if (trace::IsAny<trace::fact::GrowthRefused>(fact)) device_.SawRefusal();
    if (timeline_.has_value()) timeline_->OnFact(fact);
  }

  // Where the requests from now on came from.
  void SetOrigin(trace::StackId stack, std::int64_t time_us) {
    if (timeline_.has_value()) timeline_->SetOrigin(stack, time_us);
  }

  // Empty where none was to be kept.
  absl::StatusOr<timeline::Timeline> Finish() {
    return timeline_.has_value() ? timeline_->Finish() : timeline::Timeline();
  }

  std::vector<SegmentDecision> decisions;

 private:
  class NoJournals final : public core::JournalKeeper {
   public:
    core::Journal* JournalOf(std::size_t) override { return nullptr; }
    void OnStill() override {}
  };

  std::optional<TimelineSink> timeline_;
  RecordedDevice& device_;
  NoJournals no_journals_;
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_DECISIONS_H_
