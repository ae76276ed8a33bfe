// The exact log of a replay's decisions, one event a line, fields joined by one blank:
//
//   op action addr size stream            ("alloc" has a sixth field, the block's size)
//
// op is the position of the request in the trace. Runs of free_completed events of one op are sorted by address, as
// their order depends on how the framework walks its streams.
#ifndef ASHLAR_ANALYZER_REPLAY_EVENT_LOG_H_
#define ASHLAR_ANALYZER_REPLAY_EVENT_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/replay/op_sink.h"

namespace ashlar::replay {

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

#endif  // ASHLAR_ANALYZER_REPLAY_EVENT_LOG_H_
