// Turns a replay's decisions into a timeline: each event gets the stack and the time of the request it answers.
#ifndef ASHLAR_ANALYZER_REPLAY_TIMELINE_SINK_H_
#define ASHLAR_ANALYZER_REPLAY_TIMELINE_SINK_H_

#include "absl/status/status.h"
#include "analyzer/replay/op_sink.h"
#include "analyzer/timeline/timeline_builder.h"

namespace ashlar::replay {

class TimelineSink final : public OpSink {
 public:
  explicit TimelineSink(const timeline::StartState& start) : builder_(start, timeline::Maker::kReplayed) {}

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
    status_ = builder_.Add(located, block_size_bytes);
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
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_TIMELINE_SINK_H_
