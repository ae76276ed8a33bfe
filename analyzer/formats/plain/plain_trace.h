// The plain text request trace: one request a line, fields separated by blanks.
//
//   a <id> <bytes> <stream> [<address>]   allocate; the recorded address, where there is one, is not used
//   f <id>                                free
//   r <id> <stream>                       record_stream
//   y                                     all device work recorded so far completes
//   e                                     empty_cache
//   S ... and c ...                       remarks of the recorder: skipped, not ops
//   # ...                                 comment; blank lines are skipped too
//
// Position in `requests` = op number = 0-based index among the a, f, r, y, e lines. Ids are any 64-bit numbers and
// come out dense, numbered by first appearance; an id may be allocated again after its free and keeps its number.
// Whether an allocation succeeds is not known here: a trace is valid whatever the allocator answers.
#ifndef ASHLAR_ANALYZER_FORMATS_PLAIN_PLAIN_TRACE_H_
#define ASHLAR_ANALYZER_FORMATS_PLAIN_PLAIN_TRACE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"
#include "allocator/trace/request.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

// Errors (InvalidArgument) say line:column, what is wrong and the mend.
absl::StatusOr<trace::RequestTrace> ParsePlainTrace(absl::string_view text, const ReadLimits& limits = {});

// Writes requests as a plain text trace, which ParsePlainTrace reads (plain_trace.h).

// What the format has no letter for.
struct PlainTraceLosses {
  std::uint64_t pool_requests = 0;  // in private pools, written as if in the default one; their emptying is left out
  std::uint64_t stream_syncs = 0;   // work of one stream that completed, written as the device's (y)
};

PlainTraceLosses WritePlainTrace(const trace::RequestTrace& requests, ByteSink& out);

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_PLAIN_PLAIN_TRACE_H_
