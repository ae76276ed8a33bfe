// The first request of a replay that ran out of memory.
//
//   FirstFailure failure;
//   replay.Run(requests, &failure);
//   failure.op();                    // its position in the trace; nullopt where every request was served
#ifndef ASHLAR_ANALYZER_REPLAY_FIRST_FAILURE_H_
#define ASHLAR_ANALYZER_REPLAY_FIRST_FAILURE_H_

#include <cstdint>
#include <optional>

#include "allocator/trace/event.h"
#include "analyzer/replay/op_sink.h"

namespace ashlar::replay {

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

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_FIRST_FAILURE_H_
