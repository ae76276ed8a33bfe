// A sink that knows which request the following decisions answer.
#ifndef ASHLAR_ANALYZER_REPLAY_OP_SINK_H_
#define ASHLAR_ANALYZER_REPLAY_OP_SINK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/event.h"
#include "allocator/trace/sink.h"

namespace ashlar::replay {

class OpSink : public trace::EventSink {
 public:
  // `op` is the request's position in the trace.
  virtual void SetOp(std::uint64_t op) = 0;
};

// The first request of a replay that ran out of memory.
//
//   FirstFailure failure;
//   replay.Run(requests, &failure);
//   failure.op();                    // its position in the trace; nullopt where every request was served
class FirstFailure final : public OpSink {
 public:
  void SetOp(std::uint64_t op) override { op_ = op; }
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (event.action == trace::Action::kOom && !failed_.has_value()) failed_ = op_;
  }
  const std::optional<std::uint64_t>& op() const { return failed_; }

 private:
  std::uint64_t op_ = 0;
  std::optional<std::uint64_t> failed_;
};

// The exact log of a replay's decisions, one event a line, fields joined by one blank:
//
//   op action addr size stream            ("alloc" has a sixth field, the block's size)
//
// op is the position of the request in the trace. Runs of free_completed events of one op are sorted by address, as
// their order depends on how the framework walks its streams.
class EventLog final : public OpSink {
 public:
  void SetOp(std::uint64_t op) override;
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override;
  // The log so far; the events of the current op are complete after the next SetOp or Finish.
  const std::string& Finish();

 private:
  void Flush();
  void Append(const trace::Event& event, std::uint64_t block_size_bytes);

  std::uint64_t op_ = 0;
  std::vector<trace::Event> completed_;  // the open run of free_completed events
  std::string text_;
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_OP_SINK_H_
