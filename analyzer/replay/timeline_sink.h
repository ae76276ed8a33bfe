// Turns a replay's decisions into a timeline: each event gets the stack and the time of the request it answers.
#ifndef ASHLAR_ANALYZER_REPLAY_TIMELINE_SINK_H_
#define ASHLAR_ANALYZER_REPLAY_TIMELINE_SINK_H_

#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "analyzer/replay/op_sink.h"
#include "analyzer/timeline/timeline_builder.h"

namespace ashlar::replay {

class TimelineSink final : public OpSink {
 public:
  explicit TimelineSink(const timeline::StartState& start) : builder_(start, timeline::Maker::kReplayed) {}

  // Room for about as many events: what is not written to takes no memory, and moving what is there would take as much
  // again.
  void Reserve(std::size_t events) { builder_.Reserve(events, events / 2); }
  // The timeline is to have no events.
  void LeaveOutEvents() { builder_.LeaveOutEvents(); }

  void SetOp(std::uint64_t op) override { op_ = op; }
  // Where the current request came from.
  void SetOrigin(trace::StackId stack, std::int64_t time_us) {
    stack_ = stack;
    time_us_ = time_us;
  }

  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    if (!status_.ok()) return;
    trace::Event located = event;
    located.stack = stack_;
    located.time_us = time_us_;
    timeline::EventFacts facts{.block_size_bytes = block_size_bytes};
    if (event.action == trace::Action::kSegmentMap) facts.is_small_pool = std::exchange(maps_small_pool_, std::nullopt);
    // One that was refused is asked for by no event.
    if (event.action == trace::Action::kSegmentAlloc && segment_asked_.bytes == event.size_bytes) {
      facts.is_small_pool = std::exchange(segment_asked_, {}).is_small_pool;
    }
    status_ = builder_.Add(located, facts);
  }
  void OnFact(const trace::AnyFact& fact) override {
    if (const auto* mapped = std::get_if<trace::fact::PagesMapped>(&fact)) maps_small_pool_ = mapped->is_small_pool;
    if (const auto* asked = std::get_if<trace::fact::PlannedSegmentAsked>(&fact)) segment_asked_ = *asked;
  }

  absl::StatusOr<timeline::Timeline> Finish() {
    if (!status_.ok()) return status_;
    return builder_.Finish();
  }

 private:
  timeline::TimelineBuilder builder_;
  absl::Status status_;
  std::uint64_t op_ = 0;
  trace::StackId stack_ = trace::kNoStack;
  std::int64_t time_us_ = trace::kNoTime;
  std::optional<bool> maps_small_pool_;             // the next event
  trace::fact::PlannedSegmentAsked segment_asked_;  // the last one
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_TIMELINE_SINK_H_
