// A sink that knows which request the following decisions answer.
#ifndef ASHLAR_ANALYZER_REPLAY_OP_SINK_H_
#define ASHLAR_ANALYZER_REPLAY_OP_SINK_H_

#include <cstdint>

#include "allocator/trace/sink.h"

namespace ashlar::replay {

class OpSink : public trace::EventSink {
 public:
  // `op` is the request's position in the trace.
  virtual void SetOp(std::uint64_t op) = 0;
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_OP_SINK_H_
