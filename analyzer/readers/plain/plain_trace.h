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
#ifndef ASHLAR_ANALYZER_READERS_PLAIN_PLAIN_TRACE_H_
#define ASHLAR_ANALYZER_READERS_PLAIN_PLAIN_TRACE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/request.h"
#include "analyzer/readers/read_limits.h"

namespace ashlar::readers {

// Errors (InvalidArgument) say line:column, what is wrong and the mend.
absl::StatusOr<trace::RequestTrace> ParsePlainTrace(absl::string_view text, const ReadLimits& limits = {});

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_PLAIN_PLAIN_TRACE_H_
