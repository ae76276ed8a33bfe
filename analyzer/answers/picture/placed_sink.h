// The sink of a replay that may be drawn: its timeline, and the request that each event answers.
//
//   std::vector<std::uint32_t> ops;
//   PlacedSink sink(&ops, &origins);
//   replay.Run(requests, &sink);
//   ops[event];   // the request, as a position in the trace
//
// Not thread-safe.
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_PLACED_SINK_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_PLACED_SINK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/answers/picture/request_origins.h"
#include "analyzer/replay/timeline_sink.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

class PlacedSink final : public replay::OpSink {
 public:
  // nullptr: nobody asks for the requests; the requests have no origin. What is given must outlive it.
  explicit PlacedSink(std::vector<std::uint32_t>* ops, const RequestOrigins* origins = nullptr)
      : ops_(ops), origins_(origins), timeline_(timeline::StartState{}) {}

  void SetOp(std::uint64_t op) override {
    op_ = static_cast<std::uint32_t>(op);
    if (origins_ != nullptr) timeline_.SetOrigin(origins_->StackOf(op), origins_->TimeOf(op));
  }
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    if (ops_ != nullptr) ops_->push_back(op_);
    timeline_.OnEvent(event, block_size_bytes);
  }
  void OnFact(const trace::AnyFact& fact) override { timeline_.OnFact(fact); }

  // The timeline is to have no events: `ops` tell what they answer.
  void LeaveOutEvents() { timeline_.LeaveOutEvents(); }
  // Room for about as many events.
  void Reserve(std::size_t events) {
    timeline_.Reserve(events);
    if (ops_ != nullptr) ops_->reserve(events);
  }

  absl::StatusOr<timeline::Timeline> Finish() { return timeline_.Finish(); }

 private:
  std::vector<std::uint32_t>* ops_;
  const RequestOrigins* origins_;
  replay::TimelineSink timeline_;
  std::uint32_t op_ = 0;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_PLACED_SINK_H_
