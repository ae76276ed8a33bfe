// Writes requests as a plain text trace, which ParsePlainTrace reads (plain_trace.h).
#ifndef ASHLAR_ANALYZER_READERS_PLAIN_PLAIN_TRACE_WRITER_H_
#define ASHLAR_ANALYZER_READERS_PLAIN_PLAIN_TRACE_WRITER_H_

#include <cstdint>

#include "allocator/base/byte_sink.h"
#include "allocator/trace/request.h"

namespace ashlar::readers {

// What the format has no letter for.
struct PlainTraceLosses {
  std::uint64_t pool_requests = 0;  // in private pools, written as if in the default one; their emptying is left out
  std::uint64_t stream_syncs = 0;   // work of one stream that completed, written as the device's (y)
};

PlainTraceLosses WritePlainTrace(const trace::RequestTrace& requests, ByteSink& out);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_PLAIN_PLAIN_TRACE_WRITER_H_
