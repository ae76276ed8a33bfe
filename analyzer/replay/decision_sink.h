// The sink of a warm replay. It keeps the timeline of the decisions and the segment decisions of the request under way,
// and tells the device what was done and refused.
#ifndef ASHLAR_ANALYZER_REPLAY_DECISION_SINK_H_
#define ASHLAR_ANALYZER_REPLAY_DECISION_SINK_H_

#include <cstdint>
#include <vector>

#include "allocator/trace/sink.h"
#include "analyzer/replay/recorded_device.h"
#include "analyzer/replay/timeline_sink.h"
#include "analyzer/replay/warm_release.h"

namespace ashlar::replay {

class DecisionSink final : public trace::EventSink {
 public:
  DecisionSink(const timeline::StartState& start, RecordedDevice& device) : timeline_(start), device_(device) {}
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    if (IsSegmentEvent(event.action)) decisions.push_back(DecisionOf(event));
    device_.Saw(event);
    timeline_.OnEvent(event, block_size_bytes);
  }
  void OnFact(const trace::AnyFact& fact) override {
    if (trace::IsAny<trace::fact::GrowthRefused>(fact)) device_.SawRefusal();
  }
  TimelineSink& timeline() { return timeline_; }

  std::vector<SegmentDecision> decisions;

 private:
  TimelineSink timeline_;
  RecordedDevice& device_;
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_DECISION_SINK_H_
